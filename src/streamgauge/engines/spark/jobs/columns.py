"""What the built-in jobs have in common: the watermark, and the columns of the newest event that contributed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

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
