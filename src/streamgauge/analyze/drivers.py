"""What the drivers wrote down → the seconds of all of them: ticks, confirmations, acknowledgements, and samples."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from streamgauge.analyze.arithmetic import bucket, floor_division, second_since_start
from streamgauge.analyze.journals import together
from streamgauge.model.seconds import Kind
from streamgauge.model.units import SECOND

_SAMPLED = ("offered", "served", "drops", "queue", "hiccup", "skew", "clock_step")
_LARGEST = ("schedule_lag", "hiccup", "skew", "clock_step")
_SUMMED = ("offered", "published", "served", "acknowledged", "acks", "drops", "queue")


def sent(ticks: DataFrame) -> DataFrame:
    """Per driver and second: events sent, and the largest send delay."""
    late = F.col("actual") - F.col("intended")
    return ticks.groupBy("driver", second_since_start(F.col("actual")).alias("second")).agg(
        F.sum("count").alias("published"), F.greatest(F.max(late), F.lit(0)).alias("schedule_lag")
    )


def confirmed(appends: DataFrame) -> DataFrame:
    """Per driver and second: events that a broker confirmed."""
    return appends.groupBy("driver", second_since_start(F.col("confirmed")).alias("second")).agg(
        F.sum("count").alias("published")
    )


def delays(events: DataFrame, happened: str, told: str, kind: Kind, samples: DataFrame) -> DataFrame:
    """Counts by second and bucket of how late events were, in the second in which their send interval was due.

    What was ``told`` after the last second that its driver has closed does not count.
    """
    ends = samples.groupBy("driver").agg(((F.max("second") + 1) * SECOND).alias("closed"))
    late = floor_division(F.greatest(F.col(happened) - F.col("intended"), F.lit(0)), F.lit(1_000))
    inside = events.join(F.broadcast(ends), "driver").where((F.col(told) < F.col("closed")) & (F.col("count") > 0))
    second = floor_division(F.col("intended") - 1, F.lit(SECOND))
    by = (second.alias("second"), F.lit(kind).alias("kind"), bucket(late).alias("bucket"))
    return inside.groupBy(*by).agg(F.sum("count").alias("count"))


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


def driven(ticks: DataFrame, appends: DataFrame | None, acks: DataFrame, samples: DataFrame) -> DataFrame:
    """Per second: all drivers as one. ``closed`` says how many of them have closed it."""
    sources = [sent(ticks), acknowledged(acks), samples.select("driver", "second", *_SAMPLED)]
    if appends is not None:  # what a broker confirmed counts, not what was handed to it
        sources[:1] = [sources[0].drop("published"), confirmed(appends)]
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
        *(F.max(F.coalesce(F.col(name), F.lit(0))).alias(name) for name in _LARGEST),
        F.max(F.coalesce(F.col("ack_time"), F.lit(-1))).alias("ack_time"),
        F.sum("known_lag").alias("lags"),
    )
    lag = F.when(F.col("ack_time") >= 0, F.col("lags")).otherwise(-1)
    return either.withColumn("ack_lag", lag).drop("lags")
