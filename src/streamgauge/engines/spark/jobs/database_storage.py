"""Every reading as the row of a table, by its number."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.jobs.columns import event_stamps
from streamgauge.workloads.database_storage import SENSOR_DIGITS, SENSOR_PREFIX, UNIT, DatabaseStorageParams


def rows(streams: Mapping[str, DataFrame], params: DatabaseStorageParams) -> DataFrame:
    """The row of each reading: the name of its sensor, its value in whole units, and its moments."""
    readings = streams["readings"]
    number = F.lpad(F.col("sensor_id").cast("string"), SENSOR_DIGITS, "0")
    return readings.select(
        "sequence",
        F.concat(F.lit(SENSOR_PREFIX), number).alias("sensor"),
        (F.col("value") / UNIT).alias("value"),
        *event_stamps(readings),
    )
