"""Committed outputs of one query → rows, firings and latencies per second."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.analyze.arithmetic import bucket, floor_division, micros
from streamgauge.model.seconds import WINDOW_KINDS, Kind
from streamgauge.model.units import SECOND

STAMPS: dict[Kind, str] = {"event-time": "max_due", "processing-time": "max_ingested"}
"""The column that a latency is counted from. The live path has the same table (``run/tell.py``)."""
_MICROS = 1_000_000


def stamped(outputs: DataFrame, origin_us: int, firing: str | None) -> DataFrame:
    """Every output with its second, the one in which it was due, its batch, its firing and its latencies in µs."""
    kinds = dict(outputs.dtypes)
    stamps = {kind: micros(F.col(stamp), kinds[stamp]) for kind, stamp in STAMPS.items() if stamp in kinds}
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


def counted(stamped: DataFrame) -> DataFrame:
    """Per second: output rows, and those of them with a negative latency in event-time."""
    below = F.col("`event-time`") < 0 if "event-time" in stamped.columns else F.lit(False)
    return stamped.groupBy("second").agg(
        F.count("*").alias("outputs"), F.sum(F.when(below, 1).otherwise(0)).cast("long").alias("negative")
    )


def results(stamped: DataFrame) -> DataFrame:
    """Window results: each once in a commit, due with its last event, with the largest latency of its rows."""
    largest = ("due", *(kind for kind in STAMPS if kind in stamped.columns))
    return stamped.groupBy("batch", "firing").agg(*(F.max(f"`{name}`").alias(name) for name in largest))


def fired(stamped: DataFrame) -> DataFrame:
    """Per second: the firings that were due in it. Without a name every row is one."""
    firings = results(stamped) if "firing" in stamped.columns else stamped
    return firings.groupBy(F.col("due").alias("second")).agg(F.count("*").alias("firings"))


def latencies(stamped: DataFrame) -> DataFrame:
    """Counts by second, kind and bucket, of rows and of window results."""
    of_rows = _by_bucket(stamped, {kind: kind for kind in STAMPS})
    return of_rows.unionByName(_by_bucket(results(stamped), WINDOW_KINDS)) if "firing" in stamped.columns else of_rows


def _by_bucket(samples: DataFrame, names: Mapping[Kind, Kind]) -> DataFrame:
    """Counts by second, kind and bucket. A negative latency has no bucket: it is counted apart."""
    found = [_cell(kind, names[kind]) for kind in STAMPS if kind in samples.columns]
    cells = F.explode(F.array(*found)) if found else F.explode(F.array(_cell(None, "")))
    each = samples.select(F.col("due").alias("second"), cells.alias("cell")).where("cell.latency >= 0")
    by = ("second", F.col("cell.kind").alias("kind"), bucket(F.col("cell.latency")).alias("bucket"))
    return each.groupBy(*by).agg(F.count("*").alias("count"))


def _cell(kind: Kind | None, name: str) -> Column:
    """A latency with the name of its kind; that of no kind is never counted."""
    latency = F.lit(-1).cast("long") if kind is None else F.col(f"`{kind}`")
    return F.struct(F.lit(name).alias("kind"), latency.alias("latency"))
