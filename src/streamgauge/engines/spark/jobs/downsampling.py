"""Statistics per sensor over tumbling windows."""

from collections.abc import Mapping

from pyspark.sql import DataFrame

from streamgauge.engines.spark.jobs.columns import window_of, with_watermark
from streamgauge.engines.spark.jobs.statistics import moments, outputs
from streamgauge.workloads.downsampling import DownsamplingParams


def per_sensor(streams: Mapping[str, DataFrame], params: DownsamplingParams) -> DataFrame:
    """As the manual of Spark shows it."""
    readings = with_watermark(streams["readings"], params.watermark)
    return outputs(moments(readings.groupBy(window_of(params), "sensor_id"), readings), "sensor_id")
