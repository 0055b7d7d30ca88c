"""The outputs of a user's own job against the user's own reference: whole rows, each as often as it should come.

lost       a row of the reference whose window is closed (or that has no window) and that did not come
duplicate  a row that came more often than the reference has it
wrong      a row that the reference does not have: a wrong value is one row lost and one row wrong
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.engines.base import Expected
from streamgauge.model.seconds import Account
from streamgauge.workloads.base import EventStream, Workload

WINDOW_END = "window_end"
_STEP = 1_000_000
_HIDDEN = ("max_due", "max_ingested", "emitted_us", "batch")
"""Columns for latencies and of the collector's: a reference need not have them, and ingestion is never the same."""


class ReferenceFailed(ValueError):
    """The user's reference cannot be used; the sentence says why, and the cause is the user's own error."""


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """What the user's reference says, and up to which event-time (µs) it must be out."""

    rows: pa.Table
    closed: int

    def must(self) -> pa.Table:
        """The rows that must be out by now: those of closed windows, or all where there are no windows."""
        if WINDOW_END not in self.rows.column_names:
            return self.rows
        ends = pc.cast(pc.cast(self.rows[WINDOW_END], pa.timestamp("us", "UTC")), pa.int64())
        return self.rows.filter(pc.less_equal(ends, self.closed))

    def account(self, observed: pa.Table | None) -> Account:
        """Count what is lost, double or wrong, on the columns that the reference has."""
        names = [name for name in self.rows.column_names if name not in _HIDDEN]
        if observed is None:
            return Account(expected=len(self.rows), lost=len(self.must()), checked=True)
        absent = [name for name in names if name not in observed.column_names]
        if absent:
            raise ReferenceFailed(
                f"your reference has the column {absent[0]!r}, which your pipeline does not put out; "
                f"it puts out {', '.join(observed.column_names)}"
            )
        came, all_of_it, due = (_counted(each, names) for each in (observed, self.rows, self.must()))
        lost = sum(max(0, n - came.get(row, 0)) for row, n in due.items())
        extra = {row: n - all_of_it.get(row, 0) for row, n in came.items() if n > all_of_it.get(row, 0)}
        wrong = sum(n for row, n in extra.items() if row not in all_of_it)
        return Account(
            expected=len(self.rows),
            observed=len(observed),
            lost=lost,
            duplicate=sum(extra.values()) - wrong,
            wrong=wrong,
            not_reached=max(0, len(self.rows) - len(self.must())),
            checked=True,
        )


def _counted(table: pa.Table, names: list[str]) -> dict[tuple[object, ...], int]:
    """How often each row comes. Whole numbers and moments compare whatever their width."""
    columns = [_plain(table[name].combine_chunks()) for name in names]
    plain = pa.table(dict(zip(names, columns, strict=True))).group_by(names).aggregate([([], "count_all")])
    values = [plain[name].to_pylist() for name in (*names, "count_all")]
    return {tuple(row): int(count) for *row, count in zip(*values, strict=True)}


def _plain(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def events(workload: Workload, stream: EventStream, count: int) -> pa.Table:
    """The first ``count`` events of a trial as a table, as the user's pipeline saw them."""
    return pa.Table.from_batches(list(_batches(workload, stream, count)), _schema(workload))


def _schema(workload: Workload) -> pa.Schema:
    kinds = {"timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"), "int32": pa.int32(), "int64": pa.int64()}
    return pa.schema([(name, kinds.get(kind, pa.float64())) for name, kind in workload.schema])


def _batches(workload: Workload, stream: EventStream, count: int) -> Iterator[pa.RecordBatch]:
    schema = _schema(workload)
    for low in range(0, count, _STEP):
        columns = stream.events(low, min(low + _STEP, count))
        arrays = [pa.array(np.asarray(columns[field.name])).view(field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def ask(expected: Expected, table: pa.Table, params: dict[str, object]) -> pa.Table:
    """What the user's reference answers; anything it raises is the user's."""
    try:
        answer = expected(table, params)
    # The user's code may fail in any way.
    except Exception as error:
        raise ReferenceFailed(f"your reference failed: {type(error).__name__}: {error}") from error
    if not isinstance(answer, pa.Table):
        raise ReferenceFailed(f"your reference returned {type(answer).__name__}: it returns a pyarrow.Table")
    return answer
