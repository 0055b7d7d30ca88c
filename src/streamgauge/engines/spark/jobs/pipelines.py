"""The built-in pipelines: plain functions from DataFrames to a DataFrame, the same in streaming and in batch.

The input has the columns of the workload's events, ``due`` and ``ingested``; the output carries ``max_due`` and
``max_ingested`` of what contributed, from which its latencies are measured.
"""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

Pipeline = Callable[[DataFrame, dict[str, Any]], DataFrame]
_MICRO = 1_000


def _interval(nanoseconds: int) -> str:
    return f"{nanoseconds // _MICRO} microseconds"


def _marked(events: DataFrame, params: dict[str, Any]) -> DataFrame:
    """With a watermark where it streams; in batch every window is final anyway."""
    return events.withWatermark("due", _interval(params["watermark"])) if events.isStreaming else events


def _latest(events: DataFrame) -> list[Column]:
    """The moments of the newest event that contributed; no ingestion time where events are not stamped."""
    moments = [F.max("due").alias("max_due")]
    return [*moments, F.max("ingested").alias("max_ingested")] if "ingested" in events.columns else moments


def _outputs(sums: DataFrame) -> DataFrame:
    """Rows as every engine gives them."""
    rest = [name for name in ("sum", "count", "max_due", "max_ingested") if name in sums.columns]
    window = [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]
    return sums.select("gem_pack_id", *window, *rest)


def naive(purchases: DataFrame, params: dict[str, Any]) -> DataFrame:
    """SUM(price) per gem pack over sliding windows, written as the manual says: a copy of a row per window."""
    window = F.window("due", _interval(params["window"]), _interval(params["slide"]))
    grouped = _marked(purchases, params).groupBy(window, "gem_pack_id")
    return _outputs(grouped.agg(F.sum("price").alias("sum"), F.count("*").alias("count"), *_latest(purchases)))


def panes(purchases: DataFrame, params: dict[str, Any]) -> DataFrame:
    """The same sums from panes of one slide each, so that a row is aggregated once whatever the overlap.

    Only where the slide divides the window, which is checked before a trial.
    """
    slide, window = _interval(params["slide"]), _interval(params["window"])
    pane = _marked(purchases, params).groupBy(F.window("due", slide), "gem_pack_id")
    sums = pane.agg(F.sum("price").alias("sum"), F.count("*").alias("count"), *_latest(purchases))
    stamped = "max_ingested" in sums.columns
    latest = [F.max("max_due").alias("max_due")]
    latest += [F.max("max_ingested").alias("max_ingested")] if stamped else []
    whole = sums.groupBy(F.window(F.col("window"), window, slide), "gem_pack_id")
    return _outputs(whole.agg(F.sum("sum").alias("sum"), F.sum("count").alias("count"), *latest))


def straight(purchases: DataFrame, params: dict[str, Any]) -> DataFrame:
    """Every event as it came, by its number."""
    moments = [F.col("due").alias("max_due")]
    moments += [F.col("ingested").alias("max_ingested")] if "ingested" in purchases.columns else []
    return purchases.select("sequence", *moments)


PIPELINES: dict[tuple[str, str], Pipeline] = {
    ("windowed-aggregation", "naive"): naive,
    ("windowed-aggregation", "panes"): panes,
    ("ingest", "naive"): straight,
    ("ingest", "panes"): straight,
}
"""By workload and variant."""
