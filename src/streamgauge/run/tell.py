"""From committed outputs to counts: latencies in buckets, rows and firings per second. Pure.

An output with the columns ``max_due`` and ``max_ingested`` (timestamps in µs) gets its latencies from them;
without them it counts as an output alone.
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


@dataclass(slots=True)
class Tally:
    """Counts of some outputs. Rows of one second may come in several tallies: they add up."""

    second: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    firings: list[int] = field(default_factory=list)
    negative: list[int] = field(default_factory=list)
    latencies: list[tuple[int, int, Ints, Ints]] = field(default_factory=list)
    """Second, kind (see KIND_NUMBER), buckets and their counts."""


def _micros(rows: pa.RecordBatch, name: str) -> Ints | None:
    if name not in rows.schema.names:
        return None
    column = rows.column(name)
    if pa.types.is_timestamp(column.type) and column.type.unit != "us":
        column = column.cast(pa.timestamp("us", column.type.tz))
    column = column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column.cast(pa.int64())
    if column.null_count:
        column = column.drop_null()
    micros: Ints = column.to_numpy(zero_copy_only=False)
    return micros


def sparse(latencies: Ints) -> tuple[Ints, Ints]:
    """Buckets of latencies that are not negative, each once, with their counts."""
    counts = np.bincount(buckets.index(latencies))
    found = np.flatnonzero(counts)
    return found.astype(np.int64), counts[found].astype(np.int64)


def tally(arrivals: Sequence[Arrival], origin_us: int, firing: str | None) -> Tally:
    """Count one commit. ``origin_us`` is when the load began; ``firing`` names the column that tells firings apart.

    All rows of one firing share one latency, so a firing counts once per commit, where it is first seen.
    Without such a column every row is its own firing.
    """
    result, seen = Tally(), np.zeros(0, np.int64)
    for rows, emitted in arrivals:
        second = (emitted - origin_us) // 1_000_000
        negative = 0
        for kind, name in STAMPS.items():
            stamps = _micros(rows, name)
            if stamps is None:
                continue
            latency = emitted - stamps
            below = latency < 0
            negative += int(below.sum()) if kind == "event-time" else 0
            found, counts = sparse(latency[~below])
            result.latencies.append((second, KIND_NUMBER[kind], found, counts))
        marks = _micros(rows, firing) if firing else None
        fired = rows.num_rows
        if marks is not None:
            fresh = np.setdiff1d(marks, seen)
            seen, fired = np.concatenate([seen, fresh]), len(fresh)
        result.second.append(second)
        result.outputs.append(rows.num_rows)
        result.firings.append(fired)
        result.negative.append(negative)
    return result


def stamped(arrivals: Sequence[Arrival], batch: int) -> pa.Table:
    """The rows as they are kept: with ``emitted_us`` and the number of their batch."""
    tables = []
    for rows, emitted in arrivals:
        table = pa.Table.from_batches([rows])
        table = table.append_column("emitted_us", pa.array(np.full(rows.num_rows, emitted, np.int64)))
        tables.append(table.append_column("batch", pa.array(np.full(rows.num_rows, batch, np.int64))))
    return pa.concat_tables(tables)
