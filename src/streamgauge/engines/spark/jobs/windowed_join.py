"""Purchases and ads with one user and gem pack in one window, in two variants that give the same pairs."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.engines.spark.jobs.columns import interval, newest_stamps, with_watermark
from streamgauge.workloads.windowed_join import WindowedJoinParams

_KEYS = ("user_id", "gem_pack_id")
_MOMENTS = ("max_due", "max_ingested")


def union(streams: Mapping[str, DataFrame], params: WindowedJoinParams) -> DataFrame:
    """One aggregation over the events of both streams: lists of both sides per window and key, then all their pairs.

    Each stream has a separate watermark, because one may be ahead of the other in a micro-batch.
    """
    purchases, ads = (with_watermark(streams[name], params.watermark) for name in ("purchases", "ads"))
    kept = [*_KEYS, "due", *(["ingested"] if "ingested" in purchases.columns else [])]
    bought = F.struct(F.col("sequence").alias("purchase"), "price")
    left = purchases.select(*kept, bought.alias("bought"), F.lit(None).cast("bigint").alias("ad"))
    right = ads.select(
        *kept, F.lit(None).cast("struct<purchase: bigint, price: int>").alias("bought"), F.col("sequence").alias("ad")
    )
    both = left.unionByName(right)
    groups = both.groupBy(_window(params), *_KEYS).agg(
        F.collect_list("bought").alias("bought"), F.collect_list("ad").alias("ads"), *newest_stamps(both)
    )
    found = groups.where((F.size("bought") > 0) & (F.size("ads") > 0))
    pairs = found.withColumn("bought", F.explode("bought")).withColumn("ad", F.explode("ads"))
    return pairs.select("bought.purchase", "ad", *_KEYS, "bought.price", *_bounds(), *_moments(pairs))


def stream_stream(streams: Mapping[str, DataFrame], params: WindowedJoinParams) -> DataFrame:
    """Spark's own join of two streams, on window, user and gem pack. A pair is emitted once both events are there.

    ``F.window`` copies the metadata of the watermark, and a stateful operator takes one column of event-time only. So
    the due time is a number beside the window.
    """

    def side(name: str, number: str) -> DataFrame:
        events = with_watermark(streams[name], params.watermark).withColumn("window", _window(params))
        due = events.withColumn("max_due", F.unix_micros("due")).drop("due")
        return due.withColumnsRenamed({"sequence": number, "ingested": "max_ingested"})

    purchases, ads = side("purchases", "purchase").alias("p"), side("ads", "ad").alias("a")
    pairs = purchases.join(ads, on=["window", *_KEYS], how="inner")
    newest = [F.timestamp_micros(F.greatest("p.max_due", "a.max_due")).alias("max_due")]
    if "max_ingested" in purchases.columns:
        newest.append(F.greatest("p.max_ingested", "a.max_ingested").alias("max_ingested"))
    return pairs.select("purchase", "ad", *_KEYS, "price", *_bounds(), *newest)


def _window(params: WindowedJoinParams) -> Column:
    return F.window("due", interval(params.window), interval(params.slide))


def _bounds() -> list[Column]:
    return [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]


def _moments(pairs: DataFrame) -> list[str]:
    return [name for name in _MOMENTS if name in pairs.columns]
