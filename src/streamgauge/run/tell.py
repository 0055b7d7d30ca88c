"""From committed outputs to counts: latencies in buckets, rows and firings per second. Pure.

An output with the columns ``max_due`` and ``max_ingested`` (timestamps, or µs since 1970) gets its latencies from them;
without them only the output is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.model.seconds import Kind
from streamgauge.stats import buckets
from streamgauge.transport.attempts import Arrival

Ints = npt.NDArray[np.int64]
STAMPS: dict[Kind, str] = {"event-time": "max_due", "processing-time": "max_ingested"}
KIND_NUMBER: dict[Kind, int] = {"event-time": 0, "processing-time": 1}


FIRST_ROW, LAST_ROW = 2, 3
"""Numbers of two more kinds, where a window may be put out many times: the event-time latency of its first row and of
its last one."""


@dataclass(slots=True)
class Tally:
    """Counts of one commit. Rows of one second may come in several tallies: they add up."""

    second: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    firings: list[int] = field(default_factory=list)
    negative: list[int] = field(default_factory=list)
    latencies: list[tuple[int, int, Ints, Ints]] = field(default_factory=list)
    """Second, kind (see KIND_NUMBER), buckets and their counts."""


def gather(arrivals: Sequence[Arrival], batch: int) -> pa.Table:
    """The rows of a commit as they are kept: with ``emitted_us`` and the number of their batch."""
    table = pa.Table.from_batches([arrival.rows for arrival in arrivals]).combine_chunks()
    emitted = np.repeat([a.emitted_us for a in arrivals], [a.rows.num_rows for a in arrivals]).astype(np.int64)
    table = table.append_column("emitted_us", pa.array(emitted))
    return table.append_column("batch", pa.array(np.full(len(emitted), batch, np.int64)))


def _micros(table: pa.Table, name: str) -> Ints:
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    micros: Ints = column.cast(pa.int64()).to_numpy()
    return micros


def countable(table: pa.Table) -> tuple[pa.Table, str]:
    """The outputs without the moments that cannot be used, and a sentence on these; nothing if all can be."""
    faults = {name: fault for name in STAMPS.values() if (fault := _fault(table, name))}
    return table.drop_columns([*faults]), next(iter(faults.values()), "")


def _fault(table: pa.Table, name: str) -> str:
    """What is wrong with a column of moments; nothing if it is fine or not there."""
    if name not in table.schema.names:
        return ""
    column = table.column(name)
    if not (pa.types.is_timestamp(column.type) or pa.types.is_int64(column.type)):
        return f"the output column {name} is {column.type}: it must be a timestamp, or leave it out"
    if column.null_count:
        rows = "1 row has" if column.null_count == 1 else f"{column.null_count} rows have"
        return f"the output column {name} has nulls ({rows} no value): give every row a value, or leave the column out"
    return ""


def sparse(latencies: Ints) -> tuple[Ints, Ints]:
    """Buckets of latencies that are not negative, each once, with their counts."""
    counts = np.bincount(buckets.index(latencies))
    found = np.flatnonzero(counts)
    return found.astype(np.int64), counts[found].astype(np.int64)


def tally(table: pa.Table, origin_us: int, firing: str | None) -> Tally:
    """Count one commit. ``origin_us`` is when the load began; ``firing`` names the column that tells firings apart.

    All rows of one firing share one latency, so a firing counts once per commit, in the second where it is first
    seen. Without such a column every row is its own firing.
    """
    result, seen = Tally(), set[object]()
    if not table.num_rows:  # a task may send a batch without rows
        return result
    seconds = (_micros(table, "emitted_us") - origin_us) // 1_000_000
    for second in range(int(seconds.min()), int(seconds.max()) + 1):  # nearly always one or two
        here = seconds == second
        rows = table if here.all() else table.filter(pa.array(here))
        if not rows.num_rows:
            continue
        negative = _count_latencies(rows, second, result)
        fired = rows.num_rows
        if firing in table.schema.names:
            fresh = set(rows.column(firing).unique().to_pylist()) - seen
            seen, fired = seen | fresh, len(fresh)
        result.second.append(second)
        result.outputs.append(rows.num_rows)
        result.firings.append(fired)
        result.negative.append(negative)
    return result


def _count_latencies(rows: pa.Table, second: int, into: Tally) -> int:
    """Add the latencies of one second; the number of negative ones in event-time, which have no bucket."""
    emitted, negative = _micros(rows, "emitted_us"), 0
    for kind, name in STAMPS.items():
        if name not in rows.schema.names:
            continue
        latency = emitted - _micros(rows, name)
        if latency.min() < 0:
            negative += int((latency < 0).sum()) if kind == "event-time" else 0
            latency = latency[latency >= 0]
        into.latencies.append((second, KIND_NUMBER[kind], *sparse(latency)))
    return negative
