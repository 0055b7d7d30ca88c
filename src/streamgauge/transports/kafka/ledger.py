"""What a driver on Kafka keeps of its lanes: everything but the events. Pure.

The broker holds the events. A partition of a trial's topic has one producer, so an offset in its log is the lane's
offset. ``published`` is what the broker has acknowledged; a cut is at the end of a tick, once all lanes have it.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamgauge.transports.kafka.client.producer import Part
from streamgauge.transports.ledger import BacklogError, Books, Lane, Shelf


class Append(NamedTuple):
    """Events of one send interval that a broker has confirmed. Nanoseconds since the load began."""

    intended_ns: int
    appended_ns: int
    """When the broker appended them (LogAppendTime), or confirmed them where it does not say."""
    confirmed_ns: int
    """When the driver heard of it."""
    events: int


@dataclass(frozen=True, slots=True)
class Payload:
    """Events of one lane as bytes, ready for the producer."""

    part: Part

    @property
    def num_rows(self) -> int:
        """How many they are."""
        return len(self.part.values)

    @property
    def nbytes(self) -> int:
        """Their bytes, as the log holds them before compression, a few to each record left out."""
        return self.part.values.size + (self.part.keys.size if self.part.keys is not None else 0)

    def slice(self, offset: int, length: int) -> "Payload":
        """Some of them, without copying."""
        span = slice(offset, offset + length)
        keys = None if self.part.keys is None else self.part.keys[span]
        return Payload(Part(keys, self.part.values[span], self.part.due_us[span]))


class Ledger(Books[Payload]):
    """Counts of events that a broker holds."""

    def __init__(self, lanes: Iterable[Lane], bound_events: int = 0, bound_bytes: int = 0) -> None:
        super().__init__(lanes, bound_events, bound_bytes)
        self._ticks: list[int] = []
        """Until which due time each tick was handed to the producer."""
        self._unconfirmed: deque[tuple[int, dict[Lane, int]]] = deque()
        """Ticks that the broker does not have whole, with the end of each lane in them."""
        self._whole: dict[Lane, int] = dict.fromkeys(self._shelves, 0)
        """The end of each lane in the last tick that the broker has whole."""
        self.appends: list[Append] = []
        """Events that the broker has confirmed and nobody has taken yet, to be written down."""
        self.skew_us = 0
        """How far one partition was behind another at most, in µs of due time, since somebody last set it."""

    @property
    def last_us(self) -> int | None:
        """Until which due time ticks were handed to the producer."""
        return self._ticks[-1] if self._ticks else None

    def size(self, rows: Payload) -> int:
        """Bytes of events."""
        return rows.nbytes

    def enter(self, parts: Sequence[tuple[Lane, Payload]], until_us: int) -> bool:
        """A tick goes to the producer now. False, and it must not go, once a bound would be passed."""
        if not self._take(parts, until_us):
            return False
        self._ticks.append(until_us)
        self._unconfirmed.append((until_us, {lane: shelf.handed for lane, shelf in self._shelves.items()}))
        self._advance()
        return True

    def confirm(self, counts: Mapping[Lane, int]) -> None:
        """The broker has acknowledged so many events of these lanes, all in all."""
        for lane, count in counts.items():
            shelf = self._shelf(lane)
            if count > shelf.handed:
                raise BacklogError(f"{count} events of {lane} were acknowledged, and {shelf.handed} were sent")
            self._reach(shelf, count)
        self._advance()
        self.longest = max(self.longest, self.waiting)
        self.skew_us = max(self.skew_us, self._apart())

    def _apart(self) -> int:
        """From the due time until which all partitions are there to the newest one that is there."""
        if self.until_us is None or not self._unconfirmed:
            return 0
        newest = self.until_us
        for shelf in self._shelves.values():
            tick = bisect_right(shelf.starts, shelf.published - 1) - 1
            newest = max(newest, shelf.untils[tick] if tick >= 0 else 0)
        return newest - self.until_us

    def take_appends(self) -> "list[Append]":
        """What was confirmed since the last time; it is kept here no longer."""
        taken, self.appends = self.appends, []
        return taken

    def _reach(self, shelf: Shelf[Payload], count: int) -> None:
        if count > shelf.published:
            self.published += count - shelf.published
            shelf.published = count

    def _advance(self) -> None:
        """Take note of the ticks that the broker has whole by now."""
        while self._unconfirmed:
            until, ends = self._unconfirmed[0]
            if any(self._shelves[lane].published < end for lane, end in ends.items()):
                return
            self.until_us, self._whole = until, ends
            self._unconfirmed.popleft()

    def cut(self, due_us: int | None = None) -> tuple[int | None, dict[Lane, int]]:
        """Offsets of all lanes at the end of the last tick before one due time, and that end. None: the latest.

        No event is here to look at, so inside a tick nobody could say which of its events are due before a moment.
        """
        if due_us is None or self.until_us is None:
            ends = self._whole.items()
            return self.until_us, {lane: max(end, self._shelves[lane].acknowledged) for lane, end in ends}
        before = bisect_right(self._ticks, due_us)
        found = super().cut(due_us)[1]
        return (self._ticks[before - 1] if before else None), found

    def _latest(self, shelf: Shelf[Payload]) -> int:
        """Ticks are entered in all lanes at once: a lane without one after the last whole tick ends there."""
        return shelf.handed

    def _within(self, shelf: Shelf[Payload], tick: int, due_us: int) -> int:
        """No event is here to look at: a tick is cut at its beginning."""
        return 0

    def _check_end(self, lane: Lane, offset: int) -> None:
        """What was read is in the log, though the broker's word may not have come yet."""
        shelf = self._shelf(lane)
        if offset > shelf.handed:
            raise BacklogError(f"offset {offset} of {lane} was never sent: {shelf.handed} is the end")
        self._reach(shelf, offset)
        self._advance()
