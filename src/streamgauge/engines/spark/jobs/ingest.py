"""Every event as it came, by its number."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.workloads.ingest import IngestParams


def pass_through(streams: Mapping[str, DataFrame], params: IngestParams) -> DataFrame:
    """The number and the moments of each event, without any computation."""
    purchases = streams["purchases"]
    moments = [F.col("due").alias("max_due")]
    moments += [F.col("ingested").alias("max_ingested")] if "ingested" in purchases.columns else []
    return purchases.select("sequence", *moments)
