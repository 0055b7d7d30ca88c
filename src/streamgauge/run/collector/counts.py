"""From committed outputs to counts: latencies in buckets, rows and window results per second. Pure.

An output with the columns ``max_due``, ``max_ingested`` and ``mean_published`` (timestamps, or µs since 1970) gets its
latencies from them; without them only the output is counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.model.seconds import LATENCY_COLUMNS, WINDOW_KINDS, Kind
from streamgauge.model.streams import MAX_DUE
from streamgauge.stats import buckets
from streamgauge.store.journal import LATENCIES, Ints

KIND_NUMBER: dict[Kind, int] = {
    "event-time": 0,
    "processing-time": 1,
    "event-time-windows": 4,
    "processing-time-windows": 5,
    "missing": 6,
    "missing-windows": 7,
    "publication-time": 8,
    "publication-time-windows": 9,
}
"""The numbers of the kinds in the journal of latencies."""
MICROS = 1_000_000

Cells = tuple[Ints, int, Ints, Ints]
"""Counts of one kind (see KIND_NUMBER): seconds, the kind, buckets and how many of each."""

FIRST_ROW, LAST_ROW = 2, 3
"""Numbers of two more kinds, where a window may be put out many times: the event-time latency of its first row and of
its last one."""


@dataclass(slots=True)
class OutputCounts:
    """Counts of some outputs. Rows of one second may be in several of them: they add up."""

    second: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    firings: list[int] = field(default_factory=list)
    negative: list[int] = field(default_factory=list)
    latencies: list[Cells] = field(default_factory=list)

    def add(self, seconds: Ints, **counts: Ints) -> None:
        """Add some counts of these seconds."""
        self.second += seconds.tolist()
        for name in ("outputs", "firings", "negative"):
            getattr(self, name).extend(counts[name].tolist() if name in counts else [0] * len(seconds))


def _micros(table: pa.Table, name: str) -> Ints:
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    micros: Ints = column.cast(pa.int64()).to_numpy()
    return micros


def countable(table: pa.Table) -> tuple[pa.Table, str]:
    """The outputs without the moments that cannot be used, and a sentence on these; nothing if all can be."""
    faults = {name: fault for name in LATENCY_COLUMNS.values() if (fault := _fault(table, name))}
    return table.drop_columns([*faults]), next(iter(faults.values()), "")


def _fault(table: pa.Table, name: str) -> str:
    """What is wrong with a column of moments; nothing if it is fine or not there."""
    if name not in table.schema.names:
        return ""
    column = table.column(name)
    if not (pa.types.is_timestamp(column.type) or pa.types.is_int64(column.type)):
        return f"the output column {name} is {column.type}: it must be a timestamp; cast or remove it"
    if column.null_count:
        rows = "1 row has" if column.null_count == 1 else f"{column.null_count} rows have"
        return f"the output column {name} has nulls ({rows} no value): set a value in every row, or remove the column"
    return ""


def bucket_counts(kind: int, due: Ints, latency: Ints, origin_us: int) -> Cells:
    """Counts of latencies by the second in which outputs were due and by bucket; negative ones have no bucket."""
    counted = latency >= 0
    second, bucket = (due[counted] - origin_us) // MICROS, buckets.index(latency[counted])
    if not len(bucket):
        return second, kind, bucket, bucket
    least, room = second.min(), bucket.max() + 1
    found, counts = np.unique((second - least) * room + bucket, return_counts=True)
    return found // room + least, kind, found % room, counts.astype(np.int64)


def latency_rows(cells: Sequence[Cells]) -> dict[str, Ints]:
    """Rows of a journal of latencies, at least one."""
    kinds = [np.full(len(found), kind) for _, kind, found, _ in cells]
    columns = ([c[0] for c in cells], kinds, [c[2] for c in cells], [c[3] for c in cells])
    return {name: np.concatenate(column) for name, column in zip(LATENCIES.names, columns, strict=True)}


def count_outputs(table: pa.Table, origin_us: int, firing: str | None) -> OutputCounts:
    """Count some outputs. ``origin_us`` is when the load began, the last argument the column of window results.

    Rows count in the second of their arrival, latencies in the one in which the output was due. Without such a column
    every row is a separate window result.
    """
    result = OutputCounts()
    if not table.num_rows:  # a batch may have no rows
        return result
    moments = _moments(table)
    emitted, due = moments["emitted_us"], moments["due"]
    for kind in LATENCY_COLUMNS:
        if kind in moments:
            result.latencies.append(bucket_counts(KIND_NUMBER[kind], due, moments[kind], origin_us))
    negative = moments["event-time"] < 0 if "event-time" in moments else np.zeros(len(emitted), bool)
    arrived, place = np.unique((emitted - origin_us) // MICROS, return_inverse=True)
    result.add(arrived, outputs=np.bincount(place), negative=np.bincount(place, negative).astype(np.int64))
    if firing is not None and firing in table.schema.names:
        results = WindowResultCounter(firing)
        results.add(table)
        return merged([result, results.counts(origin_us)])
    fired, counts = np.unique((due - origin_us) // MICROS, return_counts=True)
    result.add(fired, firings=counts)
    return result


def _moments(table: pa.Table) -> dict[str, Ints]:
    """When rows were emitted and due, and their latencies by kind, in µs. What has no due time is due when it comes."""
    emitted = _micros(table, "emitted_us")
    stamps = {kind: _micros(table, name) for kind, name in LATENCY_COLUMNS.items() if name in table.schema.names}
    latencies = {str(kind): emitted - stamp for kind, stamp in stamps.items()}
    return {"emitted_us": emitted, "due": stamps.get("event-time", emitted), **latencies}


class WindowResultCounter:
    """Window results: each counts once in a batch, in the second in which its last event was due, with the largest
    latency of its rows."""

    def __init__(self, firing: str) -> None:
        self._by = [firing, "batch"]
        self._parts: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Count some outputs."""
        moments = {name: pa.array(column) for name, column in _moments(table).items() if name != "emitted_us"}
        self._parts.append(self._largest(pa.table({**{name: table.column(name) for name in self._by}, **moments})))

    def _largest(self, rows: pa.Table) -> pa.Table:
        names = [name for name in rows.schema.names if name not in self._by]
        found = rows.group_by(self._by).aggregate([(name, "max") for name in names])
        return found.rename_columns([name.removesuffix("_max") for name in found.schema.names])

    def counts(self, origin_us: int) -> OutputCounts:
        """How many there were in each second, and their latencies."""
        result = OutputCounts()
        if not self._parts:
            return result
        whole = self._largest(pa.concat_tables(self._parts, promote_options="default"))
        due = whole.column("due").to_numpy()
        seconds, counts = np.unique((due - origin_us) // MICROS, return_counts=True)
        result.add(seconds, firings=counts)
        for kind, windows in WINDOW_KINDS.items():
            if kind in whole.schema.names:
                latency = whole.column(kind).to_numpy()
                result.latencies.append(bucket_counts(KIND_NUMBER[windows], due, latency, origin_us))
        return result


def merged(parts: Sequence[OutputCounts]) -> OutputCounts:
    """Several as one."""
    result = OutputCounts()
    for one in parts:
        for each in fields(OutputCounts):
            getattr(result, each.name).extend(getattr(one, each.name))
    return result


class UpdateTracker:
    """The first and the last row of every window and key, if it can be emitted many times.

    ``most`` rows wait before all between first and last ones are dropped: a topic can have far more than memory does.
    """

    def __init__(self, identity: tuple[str, ...], most: int = 500_000) -> None:
        self._identity, self._most = identity, most
        self._kept: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Take some outputs, in the order in which they were emitted."""
        if not {*self._identity, MAX_DUE} <= {*table.schema.names}:
            return
        self._kept.append(table.select([*self._identity, MAX_DUE, "emitted_us"]))
        if self.rows > self._most:
            rows, ends = self._first_and_last()
            self._kept = [rows.take(pc.unique(pa.concat_arrays(ends)).sort())]
            self._most = max(self._most, 2 * self.rows)  # with many windows this is not done for each part

    @property
    def rows(self) -> int:
        """Rows in memory."""
        return sum(map(len, self._kept))

    def _first_and_last(self) -> tuple[pa.Table, list[pa.Array]]:
        """The rows, and which of them are the first and the last of their window and key."""
        rows = pa.concat_tables(self._kept).combine_chunks()
        numbered = rows.append_column("row", pa.array(np.arange(len(rows))))
        found = numbered.group_by([*self._identity]).aggregate([("row", "min"), ("row", "max")])
        return rows, [found.column(f"row_{end}").combine_chunks() for end in ("min", "max")]

    def counts(self, origin_us: int) -> Iterator[OutputCounts]:
        """The latencies of first rows and of last rows."""
        if not self._kept:
            return
        rows, ends = self._first_and_last()
        for kind, chosen in zip((FIRST_ROW, LAST_ROW), ends, strict=True):
            moments = _moments(rows.take(chosen))
            latency = moments["emitted_us"] - moments["due"]
            yield OutputCounts(latencies=[bucket_counts(kind, moments["due"], latency, origin_us)])
