"""SUM(price) per gem pack over sliding windows, in two variants that give the same outputs."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.jobs.columns import interval, newest_stamps, window_bounds, window_of, with_watermark
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams


def naive(streams: Mapping[str, DataFrame], params: WindowedAggregationParams) -> DataFrame:
    """As the manual of Spark shows it: one copy of each row per window."""
    purchases = streams["purchases"]
    grouped = with_watermark(purchases, params.watermark).groupBy(window_of(params), "gem_pack_id")
    return _outputs(grouped.agg(F.sum("price").alias("sum"), F.count("*").alias("count"), *newest_stamps(purchases)))


def panes(streams: Mapping[str, DataFrame], params: WindowedAggregationParams) -> DataFrame:
    """Partial sums per slide, combined into windows: a row is aggregated once, however much windows overlap.

    Only if the slide divides the window, which is checked before a trial.
    """
    purchases = streams["purchases"]
    slide = F.window("due", interval(params.slide))
    pane = with_watermark(purchases, params.watermark).groupBy(slide, "gem_pack_id")
    sums = pane.agg(F.sum("price").alias("sum"), F.count("*").alias("count"), *newest_stamps(purchases))
    newest = [F.max(name).alias(name) for name in ("max_due", "max_ingested") if name in sums.columns]
    whole = sums.groupBy(window_of(params, F.col("window")), "gem_pack_id")
    return _outputs(whole.agg(F.sum("sum").alias("sum"), F.sum("count").alias("count"), *newest))


def _outputs(sums: DataFrame) -> DataFrame:
    """The columns of the workload's outputs."""
    rest = [name for name in ("sum", "count", "max_due", "max_ingested") if name in sums.columns]
    return sums.select("gem_pack_id", *window_bounds(), *rest)
