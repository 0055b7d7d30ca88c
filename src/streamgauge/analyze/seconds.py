"""Per-second metrics of all load drivers, computed from their raw logs."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from streamgauge.analyze.journals import union_all
from streamgauge.model.facts import DRIVER, SUT
from streamgauge.model.seconds import LARGEST_OF_DRIVERS, LATENCY_COLUMNS, SUMMED_BY_DRIVERS, WINDOW_KINDS, Kind
from streamgauge.model.units import SECOND
from streamgauge.stats import buckets


def floor_division(top: Column, bottom: Column) -> Column:
    """⌊top / bottom⌋ for a positive ``bottom``; Spark's own ``div`` cuts towards zero instead."""
    return F.call_function("div", top - F.call_function("pmod", top, bottom), bottom)


def second_since_start(nanos: Column) -> Column:
    """The second in which a moment counts. What was before the load began counts in its first second."""
    return F.greatest(floor_division(nanos, F.lit(SECOND)), F.lit(0))


def second_that_ended(nanos: Column) -> Column:
    """The second that a snapshot at its end belongs to; snapshots are a little late or early."""
    return F.rint(nanos.cast("double") / F.lit(float(SECOND))).cast("long") - 1


def micros(column: Column, kind: str) -> Column:
    """A stamp in whole microseconds since 1970; ``kind`` is Spark's name of its type."""
    return F.unix_micros(column.cast("timestamp")) if kind.startswith("timestamp") else column.cast("long")


def bucket(latency: Column) -> Column:
    """The bucket of a latency in microseconds, as in ``stats/buckets.py``. Negative ones have none."""
    bits = F.length(F.bin(latency))  # a logarithm may round
    shift = F.greatest(bits - buckets.BITS, F.lit(0))
    return shift.cast("long") * buckets.HALF + F.call_function("shiftright", latency, shift)


_SAMPLED = ("offered", "served", "drops", "queue", "hiccup", "skew", "clock_step")


def sent(ticks: DataFrame) -> DataFrame:
    """Per load driver and second: events sent, and the largest send delay."""
    late = F.col("actual") - F.col("intended")
    return ticks.groupBy("driver", second_since_start(F.col("actual")).alias("second")).agg(
        F.sum("count").alias("published"), F.greatest(F.max(late), F.lit(0)).alias("schedule_lag")
    )


def confirmed(appends: DataFrame) -> DataFrame:
    """Per load driver and second: events that a broker confirmed."""
    return appends.groupBy("driver", second_since_start(F.col("confirmed")).alias("second")).agg(
        F.sum("count").alias("published")
    )


def delays(events: DataFrame, happened: str, reported: str, kind: Kind, samples: DataFrame) -> DataFrame:
    """Counts by second and bucket of how late events were, in the second in which their send interval was due.

    What was ``reported`` after the last second that its load driver has closed does not count.
    """
    ends = samples.groupBy("driver").agg(((F.max("second") + 1) * SECOND).alias("closed"))
    late = floor_division(F.greatest(F.col(happened) - F.col("intended"), F.lit(0)), F.lit(1_000))
    inside = events.join(F.broadcast(ends), "driver").where((F.col(reported) < F.col("closed")) & (F.col("count") > 0))
    second = floor_division(F.col("intended") - 1, F.lit(SECOND))
    by = (second.alias("second"), F.lit(kind).alias("kind"), bucket(late).alias("bucket"))
    return inside.groupBy(*by).agg(F.sum("count").alias("count"))


def acknowledged(acks: DataFrame) -> DataFrame:
    """Per load driver and second: how many acknowledgements, and the last one of them. Counts never go back."""
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


def driver_seconds(ticks: DataFrame, appends: DataFrame | None, acks: DataFrame, samples: DataFrame) -> DataFrame:
    """Per second: the sums of all load drivers. ``closed`` is the number of them that have closed it."""
    sources = [sent(ticks), acknowledged(acks), samples.select("driver", "second", *_SAMPLED)]
    if appends is not None:  # what a broker confirmed counts, not what was sent to it
        sources[:1] = [sources[0].drop("published"), confirmed(appends)]
    names = [name for source in sources for name in source.columns if name not in ("driver", "second")]
    # each source has at most one row of a load driver and second: the largest value is the only one
    single = union_all(sources).groupBy("driver", "second").agg(*(F.max(name).alias(name) for name in names))
    return _of_all_drivers(_since_before(single))


def _since_before(single: DataFrame) -> DataFrame:
    """Changes of a load driver since the seconds before: what was acknowledged since then, the lag last known."""
    order = Window.partitionBy("driver").orderBy("second")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = F.last(F.when(F.col("ack_lag") >= 0, F.col("ack_lag")), ignorenulls=True).over(so_far)
    single = single.withColumns(
        {"total": F.coalesce(F.max("total").over(so_far), F.lit(0)), "known_lag": F.coalesce(known, F.lit(0))}
    )
    return single.withColumn("acknowledged", F.col("total") - F.lag("total", 1, 0).over(order))


def _of_all_drivers(single: DataFrame) -> DataFrame:
    """Counts add up, extremes keep the larger; a load driver without an acknowledgement keeps the lag of its last."""
    either = single.groupBy("second").agg(
        F.count("offered").alias("closed"),
        *(F.sum(F.coalesce(F.col(name), F.lit(0))).alias(name) for name in SUMMED_BY_DRIVERS),
        *(F.max(F.coalesce(F.col(name), F.lit(0))).alias(name) for name in LARGEST_OF_DRIVERS),
        F.max(F.coalesce(F.col("ack_time"), F.lit(-1))).alias("ack_time"),
        F.sum("known_lag").alias("lags"),
    )
    lag = F.when(F.col("ack_time") >= 0, F.col("lags")).otherwise(-1)
    return either.withColumn("ack_lag", lag).drop("lags")


_MILLION = 1_000_000


def _of_roles(roles: DataFrame) -> DataFrame:
    def of(role: str, name: str) -> Column:
        return F.when(F.col("role") == role, F.col(name))

    return roles.select(
        second_that_ended(F.col("time")).alias("second"),
        of(SUT, "cpu_us").alias("sut_cpu"),
        of(DRIVER, "cpu_us").alias("driver_cpu"),
        of(DRIVER, "run_delay_ns").alias("waited"),
    )


def _of_cores(cores: DataFrame, sut: Sequence[int], driver: Sequence[int]) -> DataFrame:
    def on(chosen: Sequence[int], name: str) -> Column:
        return F.when(F.col("core").isin(*chosen), F.col(name)) if chosen else F.lit(0).cast("long")

    # a micro-batch waits for its slowest core: steal time is that of the core with the most of it in the whole trial
    totals = cores.where(F.col("core").isin(*sut)).groupBy("core").agg(F.sum("steal_us").alias("total"))
    most = totals.agg(F.max(F.struct("total", (-F.col("core")).alias("reversed"))).alias("most"))
    most_stolen = F.col("core") == -F.col("most.reversed")
    return cores.crossJoin(F.broadcast(most)).select(
        second_that_ended(F.col("time")).alias("second"),
        on(sut, "foreign_us").alias("strange"),
        F.when(most_stolen, F.col("steal_us")).alias("stolen"),
        on(sut, "span_us").alias("span"),
        F.when(most_stolen, F.col("span_us")).alias("stolen_span"),
        on(driver, "foreign_us").alias("driver_strange"),
        on(driver, "steal_us").alias("driver_stolen"),
        on(driver, "busy_us").alias("driver_busy"),
    )


def monitor_seconds(roles: DataFrame, cores: DataFrame, sut: Sequence[int], driver: Sequence[int]) -> DataFrame:
    """Per second, rows in the second in which their snapshot ended."""
    seen = union_all([_of_roles(roles), _of_cores(cores, sut, driver)])
    sums = seen.groupBy("second").agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in seen.columns if name != "second")
    )
    # the load driver's threads also wait for each other: only the share of other processes counts
    disturbed = F.greatest("driver_strange", "driver_stolen", F.lit(0))
    share = F.col("waited") * F.least(disturbed, F.col("driver_busy"))
    return sums.select(
        "second",
        "sut_cpu",
        "driver_cpu",
        floor_division(share, F.greatest("driver_busy", F.lit(1))).alias("run_delay"),
        _parts_per_million("strange", "span").alias("foreign"),
        _parts_per_million("stolen", "stolen_span").alias("steal"),
    )


def _parts_per_million(taken: str, span: str) -> Column:
    return floor_division(F.col(taken) * _MILLION, F.greatest(span, F.lit(1)))


_MICROS = 1_000_000


def with_latencies(outputs: DataFrame, origin_us: int, firing: str | None) -> DataFrame:
    """Every output with its second, the second it was due in, its batch, its window result and its latencies in µs."""
    kinds = dict(outputs.dtypes)
    stamps = {kind: micros(F.col(stamp), kinds[stamp]) for kind, stamp in LATENCY_COLUMNS.items() if stamp in kinds}
    emitted = micros(F.col("emitted_us"), kinds["emitted_us"])
    moments = {"second": emitted, "due": stamps.get("event-time", emitted)}
    columns = [floor_division(moment - origin_us, F.lit(_MICROS)).alias(name) for name, moment in moments.items()]
    columns.append(F.col("batch"))
    if firing in kinds:
        columns.append(F.col(f"`{firing}`").alias("firing"))
    columns += [(emitted - stamp).alias(kind) for kind, stamp in stamps.items()]
    return outputs.select(*columns)


def starved(health: DataFrame) -> DataFrame:
    """Per second: the longest time for which the collector was not woken."""
    second = floor_division(F.col("time"), F.lit(SECOND)).alias("second")
    return health.groupBy(second).agg(F.greatest(F.max("hiccup"), F.lit(0)).alias("collector_hiccup"))


def output_counts(outputs: DataFrame) -> DataFrame:
    """Per second: output rows, and those of them with a negative latency in event-time."""
    below = F.col("`event-time`") < 0 if "event-time" in outputs.columns else F.lit(False)
    return outputs.groupBy("second").agg(
        F.count("*").alias("outputs"), F.sum(F.when(below, 1).otherwise(0)).cast("long").alias("negative")
    )


def results(outputs: DataFrame) -> DataFrame:
    """Window results: each once in a commit, due with its last event, with the largest latency of its rows."""
    largest = ("due", *(kind for kind in LATENCY_COLUMNS if kind in outputs.columns))
    return outputs.groupBy("batch", "firing").agg(*(F.max(f"`{name}`").alias(name) for name in largest))


def firing_counts(outputs: DataFrame) -> DataFrame:
    """Per second: the window results that were due in it. Without a name every row is one."""
    firings = results(outputs) if "firing" in outputs.columns else outputs
    return firings.groupBy(F.col("due").alias("second")).agg(F.count("*").alias("firings"))


def latencies(outputs: DataFrame) -> DataFrame:
    """Counts by second, kind and bucket, of rows and of window results."""
    of_rows = _by_bucket(outputs, {kind: kind for kind in LATENCY_COLUMNS})
    return of_rows.unionByName(_by_bucket(results(outputs), WINDOW_KINDS)) if "firing" in outputs.columns else of_rows


def _by_bucket(samples: DataFrame, names: Mapping[Kind, Kind]) -> DataFrame:
    """Counts by second, kind and bucket. A negative latency has no bucket: it is counted apart."""
    found = [_cell(kind, names[kind]) for kind in LATENCY_COLUMNS if kind in samples.columns]
    cells = F.explode(F.array(*found)) if found else F.explode(F.array(_cell(None, "")))
    each = samples.select(F.col("due").alias("second"), cells.alias("cell")).where("cell.latency >= 0")
    by = ("second", F.col("cell.kind").alias("kind"), bucket(F.col("cell.latency")).alias("bucket"))
    return each.groupBy(*by).agg(F.count("*").alias("count"))


def _cell(kind: Kind | None, name: str) -> Column:
    """A latency with the name of its kind; that of no kind is never counted."""
    latency = F.lit(-1).cast("long") if kind is None else F.col(f"`{kind}`")
    return F.struct(F.lit(name).alias("kind"), latency.alias("latency"))
