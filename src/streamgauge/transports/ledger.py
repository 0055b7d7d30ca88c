"""The counts of one load driver: offsets, bounds and acknowledgements of its partitions. Pure: it gets the time.

Event k of a partition has offset k. What becomes due together is entered in all partitions together, with the due time
until which everything is there.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from streamgauge.model.streams import Offsets, StreamPartition


class LedgerError(ValueError):
    """A range or offset that is not possible; the message gives the reason."""


class Acknowledgement(NamedTuple):
    """The counts at one acknowledgement. ``lag`` is what was planned by then and is not acknowledged after it."""

    time_ns: int
    published: int
    served: int
    acknowledged: int
    lag: int


class Confirmation(NamedTuple):
    """Events of one send interval that a broker has confirmed. Nanoseconds since the load began."""

    intended_ns: int
    appended_ns: int
    """When the broker appended them (LogAppendTime), or confirmed them if it does not return that."""
    confirmed_ns: int
    """When the load driver received the confirmation."""
    events: int


class Rows(Protocol):
    """Events of one partition that are sent together."""

    @property
    def num_rows(self) -> int: ...


R = TypeVar("R", bound=Rows)


@dataclass(slots=True)
class PartitionLedger(Generic[R]):
    """What waits of one partition, by send interval. The lists run beside each other, for bisection.

    ``batches`` are the events, if they are kept here.
    """

    starts: list[int] = field(default_factory=list)
    untils: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    batches: list[R] = field(default_factory=list)
    sent: int = 0
    published: int = 0
    served: int = 0
    acknowledged: int = 0
    acknowledged_before_last: int = 0
    """What was acknowledged before the last acknowledgement that changed anything."""

    def drop(self, intervals: int) -> None:
        """Remove the oldest send intervals."""
        for column in (self.starts, self.untils, self.sizes, self.batches):
            del column[:intervals]


class StreamCounts(NamedTuple):
    """Events of a stream from its first one on, as far as no partition has a gap. Event n is in partition n mod P."""

    published: int
    acknowledged: int
    acknowledged_before_last: int


class Ledger(ABC, Generic[R]):
    """Counts, bounds and acknowledgements. Not safe for threads by itself: its users share a lock."""

    def __init__(self, partitions: Iterable[StreamPartition], bound_events: int = 0, bound_bytes: int = 0) -> None:
        """A bound of 0 is no bound."""
        self._partitions: dict[StreamPartition, PartitionLedger[R]] = {each: PartitionLedger() for each in partitions}
        self.bound_events, self.bound_bytes = bound_events, bound_bytes
        self.sent = self.published = self.served = self.reread = self.acknowledged = self.buffered_bytes = 0
        self.published_until_us: int | None = None
        self.sent_until_us: int | None = None
        self.full = False
        self.longest = 0
        """The most events that waited to be read since it was last reset."""
        self.planned: Callable[[int], int] | None = None
        """Events that the plan has before a moment since the load began; None: there is no plan to be late for."""
        self.acknowledgements: list[Acknowledgement] = []
        """Those that were not taken yet."""
        self._earliest_ns = 0

    @property
    def partitions(self) -> tuple[StreamPartition, ...]:
        return tuple(self._partitions)

    @property
    def lag(self) -> int:
        """Events published and not yet acknowledged."""
        return self.published - self.acknowledged

    @property
    def waiting(self) -> int:
        """Events published that the system under test has not begun to process."""
        return self.published - self.served

    @property
    def unacknowledged(self) -> int:
        """Events sent and not yet acknowledged, including those that are on their way into a log."""
        return self.sent - self.acknowledged

    def partition(self, partition: StreamPartition) -> PartitionLedger[R]:
        """The counts of one partition."""
        found = self._partitions.get(partition)
        if found is None:
            raise LedgerError(f"there is no partition {partition.partition} of {partition.stream} here")
        return found

    def stream_counts(self, partition_count: int) -> dict[str, StreamCounts]:
        """Of each stream, how far it is published and acknowledged without a gap in these partitions."""
        found: dict[str, StreamCounts] = {}
        for (stream, number), counts in self._partitions.items():
            offsets = (counts.published, counts.acknowledged, counts.acknowledged_before_last)
            reached = StreamCounts(*(offset * partition_count + number for offset in offsets))
            found[stream] = StreamCounts(*map(min, reached, found.get(stream, reached)))
        return found

    def _append_interval(self, parts: "Parts[R]", until_us: int) -> bool:
        """Enter what becomes due together. False, and nothing is entered, once a bound would be passed: then it is
        ``full`` and stays so."""
        sizes = [self.size(rows) for _, rows in parts]
        if not self._within_bounds(sum(rows.num_rows for _, rows in parts), sum(sizes), until_us):
            return False
        for (partition, rows), size in zip(parts, sizes, strict=True):
            if rows.num_rows:
                self._append(self.partition(partition), rows, size, until_us)
        self.sent_until_us = until_us
        return True

    def _within_bounds(self, events: int, size: int, until_us: int) -> bool:
        last = self.sent_until_us
        if last is not None and until_us < last:
            raise LedgerError(f"a send interval until {until_us} cannot follow one until {last}")
        over_events = 0 < self.bound_events < self.unacknowledged + events
        self.full = self.full or over_events or 0 < self.bound_bytes < self.buffered_bytes + size
        return not self.full

    @abstractmethod
    def size(self, rows: R) -> int:
        """Bytes of events."""

    def _append(self, partition: PartitionLedger[R], rows: R, size: int, until_us: int) -> None:
        partition.starts.append(partition.sent)
        partition.untils.append(until_us)
        partition.sizes.append(size)
        partition.sent += rows.num_rows
        self.sent += rows.num_rows
        self.buffered_bytes += size

    def acknowledge(self, offsets: Offsets, at_ns: int) -> Acknowledgement:
        """The system under test finished everything below these offsets at this moment since the load began.

        What it has finished is removed. The moment may be a little in the past, but not in a second that is closed.
        """
        for partition, offset in offsets.items():
            self._check_end(partition, offset)
        if any(offset > self.partition(each).acknowledged for each, offset in offsets.items()):
            for counts in self._partitions.values():
                counts.acknowledged_before_last = counts.acknowledged
        for partition, offset in offsets.items():
            self._release(self.partition(partition), offset)
        at_ns = max(at_ns, self._earliest_ns)
        known = self.published if self.planned is None else self.planned(at_ns)
        lag = max(0, known - self.acknowledged)
        entry = Acknowledgement(at_ns, self.published, self.served, self.acknowledged, lag)
        self.acknowledgements.append(entry)
        return entry

    def start_processing(self, offsets: Offsets) -> None:
        """The system under test has begun to process everything below these offsets."""
        for partition, offset in offsets.items():
            self._check_end(partition, offset)
            counts = self.partition(partition)
            self.served += max(0, offset - counts.served)
            counts.served = max(counts.served, offset)

    def _check_end(self, partition: StreamPartition, offset: int) -> None:
        """Raise if so much was never published."""
        end = self.partition(partition).published
        if offset > end:
            raise LedgerError(f"offset {offset} of {partition} was never published: {end} is the end")

    def _release(self, partition: PartitionLedger[R], offset: int) -> None:
        if offset <= partition.acknowledged:
            return  # a repetition after a retry
        self.acknowledged += offset - partition.acknowledged
        partition.acknowledged = offset
        if offset > partition.served:  # acknowledged without having been read
            self.served += offset - partition.served
            partition.served = offset
        done = bisect_right(partition.starts, offset) - 1
        if partition.starts and offset == partition.sent:
            done = len(partition.starts)
        self.buffered_bytes -= sum(partition.sizes[:done])
        partition.drop(done)

    def take_acknowledgements(self, closed_ns: int = 0) -> list[Acknowledgement]:
        """The acknowledgements since the last call, oldest first. From now on none is before ``closed_ns``."""
        taken, self.acknowledgements = self.acknowledgements, []
        self._earliest_ns = max(self._earliest_ns, closed_ns)
        return sorted(taken)

    def expire_cancelled(self, now_ns: int) -> int:
        """How many streams the system under test has closed early and not read again in time."""
        return 0


Parts = Sequence[tuple[StreamPartition, R]]
"""What becomes due together: events of partitions."""


def only_of(partitions: Iterable[StreamPartition], offsets: Offsets) -> dict[StreamPartition, int]:
    """The offsets of these partitions."""
    return {partition: offsets[partition] for partition in partitions if partition in offsets}


def offsets_to_json(offsets: Offsets) -> list[list[object]]:
    """Offsets as JSON has them."""
    return [[partition.stream, partition.partition, offset] for partition, offset in offsets.items()]


def offsets_from_json(rows: Sequence[Sequence[object]]) -> dict[StreamPartition, int]:
    """What ``offsets_to_json`` returned."""
    return {StreamPartition(str(stream), int(str(number))): int(str(at)) for stream, number, at in rows}
