"""What is in the queue: partitions of ready Arrow batches, leased without copying. Pure: it gets the time."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from streamgauge.model.streams import Offsets, StreamPartition
from streamgauge.transports.ledger import Acknowledgement, Ledger, LedgerError, PartitionLedger

DUE = "due"
"""The column that every stream has: timestamp[us, UTC], never falling within a partition."""


class Disconnect(NamedTuple):
    """A stream that the system under test closed before its end and did not read again in time."""

    time_ns: int
    partition: StreamPartition
    start: int
    stop: int


class ConsistentOffsets(NamedTuple):
    """Offsets of all partitions at one due time; None before anything was published."""

    due_us: int | None
    offsets: dict[StreamPartition, int]


@dataclass(slots=True)
class _Lease:
    """A range that is being read and is not yet acknowledged."""

    partition: StreamPartition
    start: int
    stop: int


class QueueBuffer(Ledger[pa.RecordBatch]):
    """The events in the queue, and their counts."""

    def __init__(
        self,
        partitions: Iterable[StreamPartition],
        bound_events: int = 0,
        bound_bytes: int = 0,
        retry_ns: int = 10_000_000_000,
    ) -> None:
        """A bound of 0 is no bound. ``retry_ns`` is how long a stream that was closed early may wait for its retry."""
        super().__init__(partitions, bound_events, bound_bytes)
        self.retry_ns = retry_ns
        self.disconnects: list[Disconnect] = []
        self._cancelled: list[Disconnect] = []
        self._leases: dict[int, _Lease] = {}
        self._next_lease = 0
        self._schema: pa.Schema | None = None
        self._width = 0

    def publish(self, parts: Sequence[tuple[StreamPartition, pa.RecordBatch]], until_us: int) -> bool:
        """Put what becomes due into the queue: all events due before ``until_us`` are there now.

        False, and nothing is put, once a bound would be passed: the queue is ``full`` and stays so.
        """
        if not self._append_interval(parts, until_us):
            return False
        self.published = self.sent
        self.published_until_us = until_us
        self.longest = max(self.longest, self.waiting)
        return True

    def _append(
        self, partition: PartitionLedger[pa.RecordBatch], rows: pa.RecordBatch, size: int, until_us: int
    ) -> None:
        super()._append(partition, rows, size, until_us)
        partition.batches.append(rows)
        partition.published = partition.sent

    def size(self, rows: pa.RecordBatch) -> int:
        """Bytes of a batch.

        The width of a row is computed once, because Arrow needs as long for it as the rest of a send interval.
        """
        if self._schema is not rows.schema and self._schema != rows.schema:
            self._schema = rows.schema
            fixed = all(pa.types.is_primitive(kind) for kind in rows.schema.types)
            self._width = sum(kind.bit_width for kind in rows.schema.types) // 8 if fixed else 0
        return self._width * rows.num_rows if self._width else int(rows.nbytes)

    def consistent_offsets(self, due_us: int | None = None) -> ConsistentOffsets:
        """Offsets of all partitions at one due time: the number of events due before it. None: the latest."""
        until = self.published_until_us
        if due_us is None or until is None:
            return ConsistentOffsets(until, {each: self.partition(each).published for each in self.partitions})
        if due_us > until:
            raise LedgerError(f"events are published until {until} µs only, not until {due_us} µs")
        found = {each: self._offset_at(self.partition(each), due_us) for each in self.partitions}
        return ConsistentOffsets(due_us, found)

    def due_time_for(self, most: int) -> int | None:
        """The latest end of a send interval before which at most ``most`` events wait for their acknowledgement.

        At least one send interval, so that a bound below it delays nothing for ever. None: all of them may be read.
        """
        if self.lag <= most:
            return None
        last = self.published_until_us
        untils = {until for each in self.partitions for until in self.partition(each).untils}
        ends = sorted(until for until in untils if last is None or until <= last)
        if not ends:
            return None
        fitting = bisect_right(ends, most, key=self._unacknowledged_before)
        return ends[max(fitting - 1, 0)]

    def _unacknowledged_before(self, due_us: int) -> int:
        counts = [self.partition(each) for each in self.partitions]
        return sum(self._offset_at(each, due_us) - each.acknowledged for each in counts)

    def _offset_at(self, partition: PartitionLedger[pa.RecordBatch], due_us: int) -> int:
        interval = bisect_right(partition.untils, due_us)
        if interval == len(partition.starts):
            return partition.published
        due = partition.batches[interval].column(DUE).view(pa.int64()).to_numpy(zero_copy_only=True)
        inside = int(np.searchsorted(due, due_us, side="left"))
        return max(partition.acknowledged, partition.starts[interval] + inside)

    def lease(self, partition: StreamPartition, start: int, stop: int) -> tuple[int, list[pa.RecordBatch]]:
        """The events ``start … stop − 1`` of a partition, without copying, and the number of the lease."""
        counts = self.partition(partition)
        if not counts.acknowledged <= start <= stop <= counts.published:
            raise LedgerError(
                f"offsets {start} to {stop} of {partition.stream}/{partition.partition} are not there: "
                f"{counts.acknowledged} to {counts.published} are"
            )
        batches = self._range(counts, start, stop) if stop > start else []
        fresh = max(0, stop - max(start, counts.served))
        counts.served = max(counts.served, stop)
        self.served += fresh
        self.reread += stop - start - fresh
        self._cancelled = [c for c in self._cancelled if not (c.partition == partition and start <= c.start < stop)]
        self._next_lease += 1
        self._leases[self._next_lease] = _Lease(partition, start, stop)
        return self._next_lease, batches

    def _range(self, counts: PartitionLedger[pa.RecordBatch], start: int, stop: int) -> list[pa.RecordBatch]:
        first = bisect_right(counts.starts, start) - 1
        last = bisect_right(counts.starts, stop - 1) - 1
        batches = counts.batches[first : last + 1]
        batches[-1] = batches[-1].slice(0, stop - counts.starts[last])
        batches[0] = batches[0].slice(start - counts.starts[first])
        return batches

    def cancel(self, lease: int, now_ns: int) -> None:
        """A stream was closed before all of it was read. It is a disconnect unless it is read again or acknowledged in
        time."""
        gone = self._leases.pop(lease, None)
        if gone is None or gone.stop <= self.partition(gone.partition).acknowledged:
            return
        leases = self._leases.values()
        if not any(o.partition == gone.partition and o.start <= gone.start < o.stop for o in leases):
            self._cancelled.append(Disconnect(now_ns, gone.partition, gone.start, gone.stop))

    def acknowledge(self, offsets: Offsets, at_ns: int) -> Acknowledgement:
        """The same, and what is acknowledged is neither leased nor cancelled any more."""
        entry = super().acknowledge(offsets, at_ns)
        done = {each: self.partition(each).acknowledged for each in self.partitions}
        self._leases = {n: lease for n, lease in self._leases.items() if lease.stop > done[lease.partition]}
        self._cancelled = [c for c in self._cancelled if c.stop > done[c.partition]]
        return entry

    def expire_cancelled(self, now_ns: int) -> int:
        """Count streams that were closed early and not read again in time as disconnects. How many there are."""
        late = [c for c in self._cancelled if now_ns - c.time_ns > self.retry_ns]
        self.disconnects += late
        self._cancelled = [c for c in self._cancelled if c not in late]
        return len(self.disconnects)
