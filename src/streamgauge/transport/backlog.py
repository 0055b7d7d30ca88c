"""What the queue holds: partitions of ready Arrow batches, offsets, bounds and exact counts. Pure: it is told the time.

A lane is one partition of one stream. Event k of a lane has offset k. A tick publishes to all lanes at once
and says ``until`` which due time everything is there, so that a cut at one due time is exact in every lane.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

DUE = "due"
"""The column that every stream has: timestamp[us, UTC], never falling within a lane."""


class Lane(NamedTuple):
    """One partition of one stream."""

    stream: str
    partition: int


class BacklogError(ValueError):
    """A range or offset that cannot be; the sentence says why."""


class Ack(NamedTuple):
    """The counts at one acknowledgement (the end of a micro-batch). ``lag`` is published − acknowledged after it."""

    time_ns: int
    published: int
    served: int
    acknowledged: int
    lag: int


class Drop(NamedTuple):
    """A stream that was cancelled before its end and not read again in time."""

    time_ns: int
    lane: Lane
    start: int
    stop: int


@dataclass(slots=True)
class _Loan:
    """A range handed out and not yet acknowledged."""

    lane: Lane
    start: int
    stop: int


@dataclass(slots=True)
class _Shelf:
    """The batches of one lane. ``starts`` and ``untils`` run beside ``batches``, for bisection."""

    starts: list[int] = field(default_factory=list)
    untils: list[int] = field(default_factory=list)
    batches: list[pa.RecordBatch] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    published: int = 0
    served: int = 0
    acknowledged: int = 0


def _due_before(batch: pa.RecordBatch, due_us: int) -> int:
    """Number of events of the batch that are due before ``due_us``."""
    due = batch.column(DUE).view(pa.int64()).to_numpy(zero_copy_only=True)
    return int(np.searchsorted(due, due_us, side="left"))


class Backlog:
    """The queue's content and books. Not safe for threads by itself: its server holds a lock."""

    def __init__(
        self, lanes: Iterable[Lane], bound_events: int = 0, bound_bytes: int = 0, retry_ns: int = 10_000_000_000
    ) -> None:
        """Bounds of 0 are none. ``retry_ns`` is how long a cancelled stream may wait for its retry."""
        self._shelves = {lane: _Shelf() for lane in lanes}
        self.bound_events, self.bound_bytes, self.retry_ns = bound_events, bound_bytes, retry_ns
        self.published = self.served = self.reread = self.acknowledged = self.held_bytes = 0
        self.until_us: int | None = None
        self.full = False
        self.longest = 0
        self.acks: list[Ack] = []
        """Acknowledgements that nobody has taken yet."""
        self.ack_count = 0
        self.answered = 0
        """Events that were acknowledged before the last acknowledgement: what they close is out, also where windows
        that one micro-batch closes come out with the next."""
        self.drops: list[Drop] = []
        self._cancelled: list[Drop] = []
        self._loans: dict[int, _Loan] = {}
        self._next_loan = 0
        self._schema: pa.Schema | None = None
        self._width = 0

    @property
    def lanes(self) -> tuple[Lane, ...]:
        return tuple(self._shelves)

    @property
    def lag(self) -> int:
        """Events published and not yet acknowledged."""
        return self.published - self.acknowledged

    def _shelf(self, lane: Lane) -> _Shelf:
        shelf = self._shelves.get(lane)
        if shelf is None:
            raise BacklogError(f"this queue has no partition {lane.partition} of {lane.stream}")
        return shelf

    def publish(self, parts: Sequence[tuple[Lane, pa.RecordBatch]], until_us: int) -> bool:
        """Put a tick into the queue: all events due before ``until_us`` are there now.

        False, and nothing is put, once a bound would be passed: the queue is ``full`` and stays so.
        """
        if self.until_us is not None and until_us < self.until_us:
            raise BacklogError(f"a tick until {until_us} cannot follow one until {self.until_us}")
        sizes = [self._size(batch) for _, batch in parts]
        events, held = sum(batch.num_rows for _, batch in parts), self.held_bytes + sum(sizes)
        over_events = 0 < self.bound_events < self.lag + events
        self.full = self.full or over_events or 0 < self.bound_bytes < held
        if self.full:
            return False
        for (lane, batch), size in zip(parts, sizes, strict=True):
            if batch.num_rows:
                shelf = self._shelf(lane)
                shelf.starts.append(shelf.published)
                shelf.untils.append(until_us)
                shelf.batches.append(batch)
                shelf.sizes.append(size)
                shelf.published += batch.num_rows
        self.published += events
        self.held_bytes = held
        self.until_us = until_us
        self.longest = max(self.longest, self.lag)
        return True

    def _size(self, batch: pa.RecordBatch) -> int:
        """Bytes of a batch. Asking Arrow takes as long as the rest of a tick, so a row's width is asked once."""
        if self._schema is not batch.schema and self._schema != batch.schema:
            self._schema = batch.schema
            fixed = all(pa.types.is_primitive(kind) for kind in batch.schema.types)
            self._width = sum(kind.bit_width for kind in batch.schema.types) // 8 if fixed else 0
        return self._width * batch.num_rows if self._width else int(batch.nbytes)

    def offsets(self) -> dict[Lane, tuple[int, int, int]]:
        """Of each lane: acknowledged, served, published."""
        return {lane: (s.acknowledged, s.served, s.published) for lane, s in self._shelves.items()}

    def cut(self, due_us: int | None = None) -> tuple[int | None, dict[Lane, int]]:
        """Offsets of all lanes at one due time: the number of events due before it. None: the latest."""
        if due_us is None or self.until_us is None:
            return self.until_us, {lane: s.published for lane, s in self._shelves.items()}
        if due_us > self.until_us:
            raise BacklogError(f"events are published until {self.until_us} µs only, not until {due_us} µs")
        return due_us, {lane: self._cut_lane(s, due_us) for lane, s in self._shelves.items()}

    def due_of(self, most: int) -> int | None:
        """The latest end of a tick before which at most ``most`` events wait for their acknowledgement.

        At least one tick, so that a bound below it delays nothing for ever. None: all of them may be taken.
        """
        if self.lag <= most:
            return None
        ends = sorted({until for s in self._shelves.values() for until in s.untils})
        fitting = bisect_right(ends, most, key=self._waiting_before)
        return ends[max(fitting - 1, 0)]

    def _waiting_before(self, due_us: int) -> int:
        return sum(self._cut_lane(s, due_us) - s.acknowledged for s in self._shelves.values())

    def _cut_lane(self, shelf: _Shelf, due_us: int) -> int:
        block = bisect_right(shelf.untils, due_us)
        if block == len(shelf.batches):
            return shelf.published
        return max(shelf.acknowledged, shelf.starts[block] + _due_before(shelf.batches[block], due_us))

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

    def _range(self, shelf: _Shelf, start: int, stop: int) -> list[pa.RecordBatch]:
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
        """The SUT is done with everything below these offsets: memory is freed. One entry in the log."""
        for lane, offset in offsets.items():
            shelf = self._shelf(lane)
            if not offset <= shelf.published:
                raise BacklogError(f"offset {offset} of {lane} was never published: {shelf.published} is the end")
        if any(offset > self._shelf(lane).acknowledged for lane, offset in offsets.items()):
            self.answered = self.acknowledged
        for lane, offset in offsets.items():
            self._free(self._shelf(lane), offset)
        self._loans = {n: o for n, o in self._loans.items() if o.stop > self._shelf(o.lane).acknowledged}
        self._cancelled = [c for c in self._cancelled if c.stop > self._shelf(c.lane).acknowledged]
        ack = Ack(now_ns, self.published, self.served, self.acknowledged, self.lag)
        self.acks.append(ack)
        self.ack_count += 1
        return ack

    def _free(self, shelf: _Shelf, offset: int) -> None:
        if offset <= shelf.acknowledged:
            return  # said again after a retry
        self.acknowledged += offset - shelf.acknowledged
        shelf.acknowledged = offset
        if offset > shelf.served:  # never read, yet acknowledged: the SUT jumped over it
            self.served += offset - shelf.served
            shelf.served = offset
        done = bisect_right(shelf.starts, offset) - 1
        if shelf.starts and offset == shelf.published:
            done = len(shelf.starts)
        self.held_bytes -= sum(shelf.sizes[:done])
        for column in (shelf.starts, shelf.untils, shelf.batches, shelf.sizes):
            del column[:done]

    def take_acks(self) -> list[Ack]:
        """The acknowledgements since the last time, to be written down; they are kept here no longer."""
        taken, self.acks = self.acks, []
        return taken

    def settle(self, now_ns: int) -> int:
        """Turn cancelled streams that nobody read again in time into drops. How many drops there are."""
        late = [c for c in self._cancelled if now_ns - c.time_ns > self.retry_ns]
        self.drops += late
        self._cancelled = [c for c in self._cancelled if c not in late]
        return len(self.drops)
