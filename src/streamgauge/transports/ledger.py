"""The books of a driver's lanes: offsets, bounds and exact counts, whoever holds the events. Pure: it knows no time.

A lane is one partition of one stream. Event k of a lane has offset k. A tick goes to all lanes at once and says
``until`` which due time everything is there, so that a cut at one due time is the same moment in every lane.
"""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from streamgauge.model.streams import StreamPartition

Lane = StreamPartition


class BacklogError(ValueError):
    """A range or offset that cannot be; the sentence says why."""


class Ack(NamedTuple):
    """The counts at one acknowledgement (between two micro-batches). ``lag`` is planned − acknowledged after it."""

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


class Rows(Protocol):
    """Events of one lane that go out together."""

    @property
    def num_rows(self) -> int: ...


R = TypeVar("R", bound=Rows)


@dataclass(slots=True)
class Shelf(Generic[R]):
    """The ticks of one lane that wait. ``starts``, ``untils`` and ``sizes`` run beside each other, for bisection.

    ``batches`` are their events, where they are kept here.
    """

    starts: list[int] = field(default_factory=list)
    untils: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    batches: list[R] = field(default_factory=list)
    handed: int = 0
    published: int = 0
    served: int = 0
    acknowledged: int = 0

    def drop(self, ticks: int) -> None:
        """Forget the oldest ticks."""
        for column in (self.starts, self.untils, self.sizes, self.batches):
            del column[:ticks]


class Books(ABC, Generic[R]):
    """Counts, bounds and acknowledgements. Not safe for threads by itself: its server holds a lock."""

    def __init__(self, lanes: Iterable[Lane], bound_events: int = 0, bound_bytes: int = 0) -> None:
        """Bounds of 0 are none."""
        self._shelves: dict[Lane, Shelf[R]] = {lane: Shelf() for lane in lanes}
        self.bound_events, self.bound_bytes = bound_events, bound_bytes
        self.handed = self.published = self.served = self.reread = self.acknowledged = self.held_bytes = 0
        self.until_us: int | None = None
        self.full = False
        self.longest = 0
        """Most events that waited to be taken since somebody last set it."""
        self.planned: Callable[[int], int] = lambda now_ns: 0
        """Events that the plan has before a moment; a driver sets it. What is published is planned at least."""
        self.acks: list[Ack] = []
        """Acknowledgements that nobody has taken yet."""
        self.ack_count = 0
        self._answered: dict[Lane, int] = dict.fromkeys(self._shelves, 0)
        """What each lane had acknowledged before the last acknowledgement."""

    @property
    def lanes(self) -> tuple[Lane, ...]:
        return tuple(self._shelves)

    @property
    def lag(self) -> int:
        """Events published and not yet acknowledged."""
        return self.published - self.acknowledged

    @property
    def waiting(self) -> int:
        """Events published that the SUT has not taken yet."""
        return self.published - self.served

    @property
    def pending(self) -> int:
        """Events handed over and not yet acknowledged, also those that are on their way into the log."""
        return self.handed - self.acknowledged

    def _shelf(self, lane: Lane) -> Shelf[R]:
        shelf = self._shelves.get(lane)
        if shelf is None:
            raise BacklogError(f"this queue has no partition {lane.partition} of {lane.stream}")
        return shelf

    def _take(self, parts: "Parts[R]", until_us: int) -> bool:
        """Write a tick down. False, and nothing is, once a bound would be passed: it is ``full`` and stays so."""
        sizes = [self.size(rows) for _, rows in parts]
        if not self._fits(sum(rows.num_rows for _, rows in parts), sum(sizes), until_us):
            return False
        for (lane, rows), size in zip(parts, sizes, strict=True):
            if rows.num_rows:
                self._enter(self._shelf(lane), rows, size, until_us)
        return True

    def _fits(self, events: int, size: int, until_us: int) -> bool:
        last = self.last_us
        if last is not None and until_us < last:
            raise BacklogError(f"a tick until {until_us} cannot follow one until {last}")
        over_events = 0 < self.bound_events < self.pending + events
        self.full = self.full or over_events or 0 < self.bound_bytes < self.held_bytes + size
        return not self.full

    @property
    def last_us(self) -> int | None:
        """Until which due time ticks were handed over."""
        return self.until_us

    @abstractmethod
    def size(self, rows: R) -> int:
        """Bytes of events."""

    def _enter(self, shelf: Shelf[R], rows: R, size: int, until_us: int) -> None:
        """Write a tick of one lane down."""
        shelf.starts.append(shelf.handed)
        shelf.untils.append(until_us)
        shelf.sizes.append(size)
        shelf.handed += rows.num_rows
        self.handed += rows.num_rows
        self.held_bytes += size

    def offsets(self) -> dict[Lane, tuple[int, int, int]]:
        """Of each lane: acknowledged, served, published."""
        return {lane: (s.acknowledged, s.served, s.published) for lane, s in self._shelves.items()}

    def cut(self, due_us: int | None = None) -> tuple[int | None, dict[Lane, int]]:
        """Offsets of all lanes at one due time: the number of events due before it. None: the latest."""
        if due_us is None or self.until_us is None:
            return self.until_us, {lane: self._latest(s) for lane, s in self._shelves.items()}
        if due_us > self.until_us:
            raise BacklogError(f"events are published until {self.until_us} µs only, not until {due_us} µs")
        return due_us, {lane: self._cut_lane(s, due_us) for lane, s in self._shelves.items()}

    def _latest(self, shelf: Shelf[R]) -> int:
        return shelf.published

    def due_of(self, most: int) -> int | None:
        """The latest end of a tick before which at most ``most`` events wait for their acknowledgement.

        At least one tick, so that a bound below it delays nothing for ever. None: all of them may be taken.
        """
        if self.lag <= most:
            return None
        last = self.until_us
        ends = sorted({until for s in self._shelves.values() for until in s.untils if last is None or until <= last})
        if not ends:
            return None
        fitting = bisect_right(ends, most, key=self._waiting_before)
        return ends[max(fitting - 1, 0)]

    def _waiting_before(self, due_us: int) -> int:
        return sum(self._cut_lane(s, due_us) - s.acknowledged for s in self._shelves.values())

    def _cut_lane(self, shelf: Shelf[R], due_us: int) -> int:
        tick = bisect_right(shelf.untils, due_us)
        if tick == len(shelf.starts):
            return self._latest(shelf)
        return max(shelf.acknowledged, shelf.starts[tick] + self._within(shelf, tick, due_us))

    @abstractmethod
    def _within(self, shelf: Shelf[R], tick: int, due_us: int) -> int:
        """How many events of a tick are due before a moment inside it."""

    def acknowledge(self, offsets: Mapping[Lane, int], now_ns: int) -> Ack:
        """The SUT is done with everything below these offsets: memory is freed. One entry in the log."""
        for lane, offset in offsets.items():
            self._check_end(lane, offset)
        if any(offset > self._shelf(lane).acknowledged for lane, offset in offsets.items()):
            self._answered = {lane: shelf.acknowledged for lane, shelf in self._shelves.items()}
        for lane, offset in offsets.items():
            self._free(self._shelf(lane), offset)
        lag = max(self.planned(now_ns), self.published) - self.acknowledged
        ack = Ack(now_ns, self.published, self.served, self.acknowledged, lag)
        self.acks.append(ack)
        self.ack_count += 1
        return ack

    def take(self, offsets: Mapping[Lane, int]) -> None:
        """The SUT has taken everything below these offsets, and works on it; on the queue reading says so."""
        for lane, offset in offsets.items():
            self._check_end(lane, offset)
            shelf = self._shelf(lane)
            self.served += max(0, offset - shelf.served)
            shelf.served = max(shelf.served, offset)

    def _check_end(self, lane: Lane, offset: int) -> None:
        """Raise if so much was never published."""
        end = self._shelf(lane).published
        if offset > end:
            raise BacklogError(f"offset {offset} of {lane} was never published: {end} is the end")

    def _free(self, shelf: Shelf[R], offset: int) -> None:
        if offset <= shelf.acknowledged:
            return  # said again after a retry
        self.acknowledged += offset - shelf.acknowledged
        shelf.acknowledged = offset
        if offset > shelf.served:  # never read, yet acknowledged: the SUT jumped over it
            self.served += offset - shelf.served
            shelf.served = offset
        done = bisect_right(shelf.starts, offset) - 1
        if shelf.starts and offset == shelf.handed:
            done = len(shelf.starts)
        self.held_bytes -= sum(shelf.sizes[:done])
        shelf.drop(done)

    def answered(self, partitions: int) -> int:
        """So many events of the stream, from its first one on, were acknowledged before the last acknowledgement.

        What they close is out, also where windows that one micro-batch closes come out with the next. Event n is in
        partition n mod ``partitions``, and one partition may be further than another.
        """
        return min(offset * partitions + lane.partition for lane, offset in self._answered.items())

    def take_acks(self) -> list[Ack]:
        """The acknowledgements since the last time, to be written down; they are kept here no longer."""
        taken, self.acks = self.acks, []
        return taken

    def settle(self, now_ns: int) -> int:
        """How many streams were dropped by now."""
        return 0


Parts = Sequence[tuple[Lane, R]]
"""A tick: events of lanes."""
