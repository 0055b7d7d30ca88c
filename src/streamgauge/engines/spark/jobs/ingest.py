"""Every event as it came, by its number."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from streamgauge.engines.spark.jobs.columns import event_stamps
from streamgauge.workloads.ingest import IngestParams


def pass_through(streams: Mapping[str, DataFrame], params: IngestParams) -> DataFrame:
    """The number and the moments of each event, without any computation."""
    purchases = streams["purchases"]
    return purchases.select("sequence", *event_stamps(purchases))
