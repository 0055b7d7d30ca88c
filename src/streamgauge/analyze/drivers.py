"""What the drivers wrote down → the seconds of all of them: ticks, acknowledgements, and what was sampled."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streamgauge.analyze.arithmetic import second_since_start
from streamgauge.analyze.journals import together

_SAMPLED = ("offered", "served", "drops", "queue", "clock_step")
_SUMMED = ("offered", "published", "served", "acknowledged", "acks", "drops", "queue")


def published(ticks: DataFrame) -> DataFrame:
    """Per driver and second: events published, and the p99 by rank of how late the ticks were."""
    here = Window.partitionBy("driver", "second")
    late = ticks.select(
        "driver",
        second_since_start(F.col("actual")).alias("second"),
        (F.col("actual") - F.col("intended")).alias("late"),
        "count",
    )
    ranked = late.withColumns(
        {"rank": F.row_number().over(here.orderBy("late")), "last": F.ceil(F.lit(0.99) * F.count("*").over(here))}
    )
    return ranked.groupBy("driver", "second").agg(
        F.sum("count").alias("published"),
        F.max(F.when(F.col("rank") == F.col("last"), F.col("late"))).alias("schedule_lag"),
    )


def acknowledged(acks: DataFrame) -> DataFrame:
    """Per driver and second: how many acknowledgements, and the last one of them. Counts never go back."""
    last = F.max(F.struct("time", "acknowledged", "published", "lag"))
    found = acks.groupBy("driver", second_since_start(F.col("time")).alias("second")).agg(
        F.count("*").alias("acks"), last.alias("last")
    )
    return found.select(
        "driver",
        "second",
        "acks",
        F.col("last.acknowledged").alias("total"),
        F.col("last.time").alias("ack_time"),
        F.col("last.lag").alias("ack_lag"),
    )


def driven(ticks: DataFrame, acks: DataFrame, samples: DataFrame) -> DataFrame:
    """Per second: all drivers as one. ``closed`` says how many of them have closed it."""
    sources = [published(ticks), acknowledged(acks), samples.select("driver", "second", *_SAMPLED)]
    names = [name for source in sources for name in source.columns if name not in ("driver", "second")]
    # each source has at most one row of a driver and second: the largest value is the only one
    single = together(sources).groupBy("driver", "second").agg(*(F.max(name).alias(name) for name in names))
    return _together(_since_before(single))


def _since_before(single: DataFrame) -> DataFrame:
    """What a driver's second is by comparison with those before it: acknowledged since then, the lag last known."""
    order = Window.partitionBy("driver").orderBy("second")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = F.last(F.when(F.col("ack_lag") >= 0, F.col("ack_lag")), ignorenulls=True).over(so_far)
    single = single.withColumns(
        {"total": F.coalesce(F.max("total").over(so_far), F.lit(0)), "known_lag": F.coalesce(known, F.lit(0))}
    )
    return single.withColumn("acknowledged", F.col("total") - F.lag("total", 1, 0).over(order))


def _together(single: DataFrame) -> DataFrame:
    """Counts add up, extremes keep the larger; a driver without an acknowledgement keeps the lag of its last."""
    either = single.groupBy("second").agg(
        F.count("offered").alias("closed"),
        *(F.sum(F.coalesce(F.col(name), F.lit(0))).alias(name) for name in _SUMMED),
        *(F.max(F.coalesce(F.col(name), F.lit(0))).alias(name) for name in ("schedule_lag", "clock_step")),
        F.max(F.coalesce(F.col("ack_time"), F.lit(-1))).alias("ack_time"),
        F.sum("known_lag").alias("lags"),
    )
    lag = F.when(F.col("ack_time") >= 0, F.col("lags")).otherwise(-1)
    return either.withColumn("ack_lag", lag).drop("lags")
