"""What the built-in jobs have in common: the watermark, windows, and the columns of the newest event of a row."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.workloads.parameters import Windowed

_MICRO = 1_000


def interval(nanoseconds: int) -> str:
    """A length of time as Spark reads it."""
    return f"{nanoseconds // _MICRO} microseconds"


def with_watermark(events: DataFrame, watermark: int, column: str = "due") -> DataFrame:
    """With a watermark if it is a stream; in batch every window is final anyway."""
    return events.withWatermark(column, interval(watermark)) if events.isStreaming else events


def newest_stamps(events: DataFrame) -> list[Column]:
    """The moments of the newest event that contributed; no ingestion time if events are not stamped."""
    moments = [F.max("due").alias("max_due")]
    return [*moments, F.max("ingested").alias("max_ingested")] if "ingested" in events.columns else moments


def event_stamps(events: DataFrame) -> list[Column]:
    """The moments of an event that is an output; no ingestion time if events are not stamped."""
    moments = [F.col("due").alias("max_due")]
    return [*moments, F.col("ingested").alias("max_ingested")] if "ingested" in events.columns else moments


def window_of(params: Windowed, over: str | Column = "due") -> Column:
    """The windows of a workload over a time, or over the windows of partial results."""
    if params.period == params.window:
        return F.window(over, interval(params.window))
    return F.window(over, interval(params.window), interval(params.period))


def window_bounds() -> list[Column]:
    """Where the window of a row begins and ends."""
    return [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]
