"""Committed outputs of one query → rows, firings and latencies per second."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from streamgauge.analyze.arithmetic import bucket, floor_division, micros
from streamgauge.model.seconds import Kind
from streamgauge.model.units import SECOND

STAMPS: dict[Kind, str] = {"event-time": "max_due", "processing-time": "max_ingested"}
"""The column that a latency is counted from. The live path has the same table (``run/tell.py``)."""
_MICROS = 1_000_000


def stamped(outputs: DataFrame, origin_us: int, firing: str | None) -> DataFrame:
    """Every output with its second, its batch, its firing where it has one, and its latencies in µs."""
    kinds = dict(outputs.dtypes)
    emitted = micros(F.col("emitted_us"), kinds["emitted_us"])
    columns = [floor_division(emitted - origin_us, F.lit(_MICROS)).alias("second"), F.col("batch")]
    if firing in kinds:
        columns.append(F.col(f"`{firing}`").alias("firing"))
    columns += [
        (emitted - micros(F.col(stamp), kinds[stamp])).alias(kind) for kind, stamp in STAMPS.items() if stamp in kinds
    ]
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


def fired(stamped: DataFrame) -> DataFrame:
    """Per second: firings. One counts once per commit, where it is first seen; without a name every row is one."""
    firings = stamped
    if "firing" in stamped.columns:
        firings = stamped.groupBy("batch", "firing").agg(F.min("second").alias("second"))
    return firings.groupBy("second").agg(F.count("*").alias("firings"))


def latencies(stamped: DataFrame) -> DataFrame:
    """Counts by second, kind and bucket. A negative latency has no bucket: it is counted apart."""
    found = [_cell(kind) for kind in STAMPS if kind in stamped.columns]
    cells = F.explode(F.array(*found)) if found else F.explode(F.array(_cell(None)))
    each = stamped.select("second", cells.alias("cell")).where("cell.latency >= 0")
    by = ("second", F.col("cell.kind").alias("kind"), bucket(F.col("cell.latency")).alias("bucket"))
    return each.groupBy(*by).agg(F.count("*").alias("count"))


def _cell(kind: Kind | None) -> Column:
    """A latency with its kind; that of no kind is never counted."""
    latency = F.lit(-1).cast("long") if kind is None else F.col(f"`{kind}`")
    return F.struct(F.lit(kind or "").alias("kind"), latency.alias("latency"))
