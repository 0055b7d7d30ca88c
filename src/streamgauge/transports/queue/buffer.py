"""What the queue holds: partitions of ready Arrow batches, lent without copying. Pure: it is told the time."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streamgauge.transports.ledger import Ack, BacklogError, Books, Drop, Lane, Shelf

DUE = "due"
"""The column that every stream has: timestamp[us, UTC], never falling within a lane."""


@dataclass(slots=True)
class _Loan:
    """A range handed out and not yet acknowledged."""

    lane: Lane
    start: int
    stop: int


class Backlog(Books[pa.RecordBatch]):
    """The queue's content and books."""

    def __init__(
        self, lanes: Iterable[Lane], bound_events: int = 0, bound_bytes: int = 0, retry_ns: int = 10_000_000_000
    ) -> None:
        """Bounds of 0 are none. ``retry_ns`` is how long a cancelled stream may wait for its retry."""
        super().__init__(lanes, bound_events, bound_bytes)
        self.retry_ns = retry_ns
        self.drops: list[Drop] = []
        self._cancelled: list[Drop] = []
        self._loans: dict[int, _Loan] = {}
        self._next_loan = 0
        self._schema: pa.Schema | None = None
        self._width = 0

    def publish(self, parts: Sequence[tuple[Lane, pa.RecordBatch]], until_us: int) -> bool:
        """Put a tick into the queue: all events due before ``until_us`` are there now.

        False, and nothing is put, once a bound would be passed: the queue is ``full`` and stays so.
        """
        if not self._take(parts, until_us):
            return False
        self.published = self.handed
        self.until_us = until_us
        self.longest = max(self.longest, self.waiting)
        return True

    def _enter(self, shelf: Shelf[pa.RecordBatch], rows: pa.RecordBatch, size: int, until_us: int) -> None:
        super()._enter(shelf, rows, size, until_us)
        shelf.batches.append(rows)
        shelf.published = shelf.handed

    def size(self, rows: pa.RecordBatch) -> int:
        """Bytes of a batch. Asking Arrow takes as long as the rest of a tick, so a row's width is asked once."""
        if self._schema is not rows.schema and self._schema != rows.schema:
            self._schema = rows.schema
            fixed = all(pa.types.is_primitive(kind) for kind in rows.schema.types)
            self._width = sum(kind.bit_width for kind in rows.schema.types) // 8 if fixed else 0
        return self._width * rows.num_rows if self._width else int(rows.nbytes)

    def _within(self, shelf: Shelf[pa.RecordBatch], tick: int, due_us: int) -> int:
        due = shelf.batches[tick].column(DUE).view(pa.int64()).to_numpy(zero_copy_only=True)
        return int(np.searchsorted(due, due_us, side="left"))

    def lend(self, lane: Lane, start: int, stop: int) -> tuple[int, list[pa.RecordBatch]]:
        """The events ``start … stop − 1`` of a lane, without copying, and the number of the loan."""
        shelf = self._shelf(lane)
        if not shelf.acknowledged <= start <= stop <= shelf.published:
            raise BacklogError(
                f"offsets {start} to {stop} of {lane.stream}/{lane.partition} are not there: "
                f"{shelf.acknowledged} to {shelf.published} are"
            )
        batches = self._range(shelf, start, stop) if stop > start else []
        fresh = max(0, stop - max(start, shelf.served))
        shelf.served = max(shelf.served, stop)
        self.served += fresh
        self.reread += stop - start - fresh
        self._cancelled = [c for c in self._cancelled if not (c.lane == lane and start <= c.start < stop)]
        self._next_loan += 1
        self._loans[self._next_loan] = _Loan(lane, start, stop)
        return self._next_loan, batches

    def _range(self, shelf: Shelf[pa.RecordBatch], start: int, stop: int) -> list[pa.RecordBatch]:
        first = bisect_right(shelf.starts, start) - 1
        last = bisect_right(shelf.starts, stop - 1) - 1
        batches = shelf.batches[first : last + 1]
        batches[-1] = batches[-1].slice(0, stop - shelf.starts[last])
        batches[0] = batches[0].slice(start - shelf.starts[first])
        return batches

    def cancelled(self, loan: int, now_ns: int) -> None:
        """A stream ended before all of it was taken. It is a drop unless it is read again or acknowledged in time."""
        gone = self._loans.pop(loan, None)
        if gone is None or gone.stop <= self._shelf(gone.lane).acknowledged:
            return
        others = (o for o in self._loans.values() if o.lane == gone.lane and o.start <= gone.start < o.stop)
        if not any(others):
            self._cancelled.append(Drop(now_ns, gone.lane, gone.start, gone.stop))

    def acknowledge(self, offsets: Mapping[Lane, int], now_ns: int) -> Ack:
        """The same, and what is acknowledged is neither lent nor cancelled any more."""
        ack = super().acknowledge(offsets, now_ns)
        self._loans = {n: o for n, o in self._loans.items() if o.stop > self._shelf(o.lane).acknowledged}
        self._cancelled = [c for c in self._cancelled if c.stop > self._shelf(c.lane).acknowledged]
        return ack

    def settle(self, now_ns: int) -> int:
        """Turn cancelled streams that nobody read again in time into drops. How many drops there are."""
        late = [c for c in self._cancelled if now_ns - c.time_ns > self.retry_ns]
        self.drops += late
        self._cancelled = [c for c in self._cancelled if c not in late]
        return len(self.drops)
