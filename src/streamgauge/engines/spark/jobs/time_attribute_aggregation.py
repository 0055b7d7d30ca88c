"""Statistics per sensor and time attribute over sliding windows, in two variants that give the same outputs."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.jobs.columns import interval, window_of, with_watermark
from streamgauge.engines.spark.jobs.statistics import combined, moments, outputs
from streamgauge.workloads.time_attribute_aggregation import FIRST_WEEKDAY, TimeAttributeParams

_KEYS = ("sensor_id", "attribute")
_SECONDS = "(unix_micros(due) div 1000000)"
_DAYS, _HOURS = f"({_SECONDS} div 86400)", f"({_SECONDS} div 3600)"
_ATTRIBUTES = {
    "hour-of-day": f"{_HOURS} % 24",
    "day-of-week": f"({_DAYS} + {FIRST_WEEKDAY}) % 7",
    "day-of-year": f"dayofyear(date_from_unix_date(cast({_DAYS} as int))) - 1",
    "hour-of-week": f"({_HOURS} + {24 * FIRST_WEEKDAY}) % 168",
    "second-mod-7": f"{_SECONDS} % 7",
}
"""The attribute of a reading, from whole seconds since 1970, so that no time zone of the session has an effect."""


def naive(streams: Mapping[str, DataFrame], params: TimeAttributeParams) -> DataFrame:
    """As the manual of Spark shows it: one copy of each row per window."""
    readings = _with_attribute(streams["readings"], params)
    return outputs(moments(readings.groupBy(window_of(params), *_KEYS), readings), *_KEYS)


def panes(streams: Mapping[str, DataFrame], params: TimeAttributeParams) -> DataFrame:
    """Partial moments per slide, combined into windows: a row is aggregated once, however much windows overlap.

    Only if the slide divides the window, which is checked before a trial.
    """
    readings = _with_attribute(streams["readings"], params)
    parts = moments(readings.groupBy(F.window("due", interval(params.period)), *_KEYS), readings)
    return outputs(combined(parts.groupBy(window_of(params, F.col("window")), *_KEYS), parts), *_KEYS)


def _with_attribute(readings: DataFrame, params: TimeAttributeParams) -> DataFrame:
    return with_watermark(readings, params.watermark).withColumn("attribute", attribute(params))


def attribute(params: TimeAttributeParams) -> Column:
    """The time attribute of a reading in the key."""
    return F.expr(f"cast(({_ATTRIBUTES[params.attribute]}) % {params.values} as int)")
