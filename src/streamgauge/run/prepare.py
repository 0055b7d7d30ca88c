"""Events made ahead of their due time, in the idle time between ticks, and cut to size when they are due."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from streamgauge.run.pace import Pace
from streamgauge.transport.books import Lane

LARGEST_CHUNK = 65_536
"""Rows made at once: below it the fixed cost of numpy shows, above it a tick waits for the chunk to end."""
SMALLEST_CHUNK = 4_096
_FIRST_GUESS = 50.0  # nanoseconds per row, until it was measured
_FORGET = 0.2


class Chunk(Protocol):
    """Ready events of one lane: an Arrow batch, or the bytes that go to a broker."""

    @property
    def num_rows(self) -> int: ...

    def slice(self, offset: int, length: int) -> "Chunk":
        """Some of them, without copying."""


class Makes(Protocol):
    """Makes the events of one stream."""

    def batch(self, partition: int, start: int, stop: int) -> Chunk:
        """The events at the offsets ``start … stop − 1`` of a partition."""


@dataclass(slots=True)
class Stock:
    """The ready events of one lane. ``taken`` and ``ready`` are offsets."""

    lane: Lane
    source: Makes
    pace: Pace
    taken: int = 0
    ready: int = 0
    chunks: deque[tuple[int, Chunk]] = field(default_factory=deque)

    def wanted(self, elapsed_ns: int) -> int:
        """Offset up to which events are due before this moment."""
        return self.pace.offset(elapsed_ns, self.lane.partition)

    def make(self, rows: int) -> None:
        """Make the next rows."""
        batch = self.source.batch(self.lane.partition, self.ready, self.ready + rows)
        self.chunks.append((self.ready, batch))
        self.ready += rows

    def take(self, stop: int) -> list[Chunk]:
        """The ready events up to offset ``stop``, as slices of what was made."""
        slices = []
        while self.taken < stop:
            start, batch = self.chunks[0]
            upto = min(stop - start, batch.num_rows)
            slices.append(batch.slice(self.taken - start, start + upto - self.taken))
            self.taken = start + upto
            if upto == batch.num_rows:
                self.chunks.popleft()
        return slices


class Preparation:
    """Keeps the stocks filled for ``ahead_ns``, without ever holding up a tick that could be on time."""

    def __init__(self, stocks: list[Stock], ahead_ns: int, now_ns: Callable[[], int]) -> None:
        self.stocks, self.ahead_ns, self._now = stocks, ahead_ns, now_ns
        self.row_ns = _FIRST_GUESS

    def _make(self, stock: Stock, rows: int) -> None:
        began = self._now()
        stock.make(rows)
        self.row_ns += _FORGET * ((self._now() - began) / rows - self.row_ns)

    def fill(self, elapsed_ns: int, until_ns: int, deadline_ns: int) -> None:
        """Use the time up to ``deadline_ns`` (of the clock) to make what is due before ``elapsed_ns + ahead``.

        Nothing new is made while half of it is still there, so that chunks stay large at low rates too.
        """
        horizon = min(elapsed_ns + self.ahead_ns, until_ns)
        half = min(elapsed_ns + self.ahead_ns // 2, until_ns)
        for stock in self.stocks:
            if stock.ready >= stock.wanted(half):
                continue
            target = stock.wanted(horizon)
            while stock.ready < target:
                fits = int((deadline_ns - self._now()) / self.row_ns)
                rows = min(target - stock.ready, LARGEST_CHUNK)
                if fits < rows and fits < SMALLEST_CHUNK:
                    return
                self._make(stock, min(rows, fits))

    def take(self, elapsed_ns: int) -> list[tuple[Lane, Chunk]]:
        """Everything due before this moment that was not taken yet; what is not ready is made now.

        Where ticks leave no time to fill, that is the only time there is: then half of what is made ahead is made at
        once. A few events for every tick would cost many times as much, and no tick would be on time again.
        """
        parts = []
        for stock in self.stocks:
            stop = stock.wanted(elapsed_ns)
            while stock.ready < stop:
                ahead = max(stop, stock.wanted(elapsed_ns + self.ahead_ns // 2))
                self._make(stock, min(ahead - stock.ready, LARGEST_CHUNK))
            parts += [(stock.lane, batch) for batch in stock.take(stop)]
        return parts
