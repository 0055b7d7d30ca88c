"""The raw journals of one stored trial, as DataFrames. What is missing is an empty table, as for the live path."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.model.facts import TrialFacts
from streamgauge.store import journal
from streamgauge.store.journal import GROWING, WHOLE, read_rows
from streamgauge.store.trials import StoredTrial

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SQL_TYPES = {pa.int64(): "BIGINT", pa.string(): "STRING"}


def _ddl(schema: pa.Schema, *names: str) -> str:
    """Columns of a journal as Spark reads them."""
    return ", ".join(f"{name} {_SQL_TYPES[schema.field(name).type]}" for name in names)


TICKS = _ddl(journal.TICKS, "intended", "actual", "count")
ACKS = _ddl(journal.ACKS, "time", "published", "acknowledged", "lag")
APPENDS = _ddl(journal.APPENDS, "intended", "appended", "confirmed", "count")
SAMPLES = _ddl(journal.DRIVER_SECONDS, "second", "offered", "served", "drops", "queue", "hiccup", "skew", "clock_step")
HEALTH = _ddl(journal.COLLECTOR_HEALTH, "time", "hiccup")
LATENCIES = _ddl(journal.LATENCIES, "second", "kind", "bucket", "count")
ROLES = _ddl(journal.ROLES, "time", "role", "cpu_us", "run_delay_ns")
CORES = _ddl(journal.CORES, "time", "core", "span_us", "busy_us", "steal_us", "foreign_us")
_GLOB = re.compile(r"([\\*?\[\]{}])")
_SENTENCE = re.compile(r"the driver on core ([0-9, ]+), the system under test on core ([0-9, ]+)")


@dataclass(frozen=True, slots=True)
class Journals:
    """Where the journals of a trial lie, and what else must be known to count them."""

    folder: Path
    drivers: int
    stop: int
    """How many seconds count: the tail after them does not."""
    origin_us: int
    """When the load began, in µs since 1970 on the load driver's clock."""
    firing: str | None
    """The output column that identifies a window result."""
    driver_cores: tuple[int, ...]
    sut_cores: tuple[int, ...]

    @property
    def broker(self) -> bool:
        """Whether events count as published when a broker confirmed them."""
        return any(self.folder.glob("appends-*"))


def journals_of(stored: StoredTrial) -> Journals | None:
    """The journals of a trial on real processes; None if it was simulated, or whose load never began."""
    drivers = sum(bool(re.fullmatch(r"driver-[0-9]+\.json", name)) for name in stored.files)
    if not drivers or stored.facts.wall_ns is None:
        return None
    driver_cores, sut_cores = _cores(stored.facts)
    return Journals(
        folder=stored.path,
        drivers=drivers,
        stop=stored.extent.count,
        origin_us=stored.facts.wall_ns // 1_000,
        firing=_order(stored.path / "collector.json").get("firing"),
        driver_cores=driver_cores,
        sut_cores=sut_cores,
    )


def _order(path: Path) -> dict[str, Any]:
    try:
        order: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    return order


def _cores(facts: TrialFacts) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The cores of the load driver and of the SUT; early recordings have them only in a sentence."""
    if facts.driver_cores or facts.sut_cores:
        return facts.driver_cores, facts.sut_cores
    match = _SENTENCE.fullmatch(facts.placement)
    return (_numbers(match[1]), _numbers(match[2])) if match else ((), ())


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _plain(path: Path) -> str:
    """A path that Spark takes as it is, and not as a pattern."""
    return _GLOB.sub(r"\\\1", str(path.absolute()))


def rows(spark: "SparkSession", path: Path, schema: str) -> "DataFrame":
    """A journal by its path without an ending: Parquet, or what a crash has left of the stream."""
    if path.with_suffix(WHOLE).exists():
        return spark.read.schema(schema).parquet(_plain(path.with_suffix(WHOLE)))
    if path.with_suffix(GROWING).exists():
        table = read_rows(path)
        if table.num_rows:
            return spark.createDataFrame(table.select([column.split()[0] for column in schema.split(", ")]))
    return spark.createDataFrame([], schema)


def of_drivers(spark: "SparkSession", journals: Journals, name: str, schema: str) -> "DataFrame":
    """The same journal of every load driver as one table; ``name`` is, for example, ``ticks-{}``."""
    from pyspark.sql import functions as F  # noqa: PLC0415 (this file is also read where there is no Spark)

    def of(driver: int) -> "DataFrame":
        return rows(spark, journals.folder / name.format(driver), schema).withColumn("driver", F.lit(driver))

    return union_all([of(driver) for driver in range(journals.drivers)])


def union_all(parts: "Sequence[DataFrame]") -> "DataFrame":
    """Tables below each other, columns by name. They have a few rows per second, so one task saves every shuffle."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts).coalesce(1)


def outputs(spark: "SparkSession", journals: Journals) -> list["DataFrame"]:
    """The committed outputs, one table per query: queries need not have the same columns."""
    queries = sorted({part.parent for part in (journals.folder / "outputs").glob(f"*/part-*{WHOLE}")})
    return [_query(spark, folder) for folder in queries]


def _query(spark: "SparkSession", folder: Path) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: PLC0415

    found = spark.read.option("pathGlobFilter", f"part-*{WHOLE}").parquet(_plain(folder))
    schema = pq.read_schema(min(folder.glob(f"part-*{WHOLE}")))
    fine = [field.name for field in schema if pa.types.is_timestamp(field.type) and field.type.unit == "ns"]
    # Spark has no nanoseconds: they come as numbers
    return found.withColumns({name: F.timestamp_micros(F.expr(f"`{name}` div 1000")) for name in fine})
