"""The reference answer of ``windowed-aggregation``: exact sums per window and gem pack, of no engine's making.

Events come in the order of their due times. So a window is a stretch of event numbers, its sums are the
difference of two running totals, and the latest event of a key before the window's end has its maximum due
time. One pass over the events serves all windows, however much they overlap.
"""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.workloads.contract import Answer
from streamgauge.workloads.data.shopping import HIGHEST_PRICE, Buying, Purchases

Ints = npt.NDArray[np.int64]

ANSWER = ("window_start", "gem_pack_id", "sum", "count", "max_due")
"""Columns of the answer, all int64: times in microseconds since the epoch, sums in cents."""

_MICRO = 1_000
_COUNT_AT = 40  # sum below this bit, count above it: one addition per event serves both
_MOST_AT_ONCE = 1 << 22
assert _MOST_AT_ONCE * HIGHEST_PRICE < 1 << _COUNT_AT  # the sum never reaches into the count
assert _MOST_AT_ONCE << _COUNT_AT < 1 << 63


class Summing(Buying, Protocol):
    """The parameters of the workload; durations in nanoseconds."""

    @property
    def window(self) -> int: ...

    @property
    def slide(self) -> int: ...


@dataclass(frozen=True, slots=True)
class _Opened:
    """A window that is open, and the running totals when it opened."""

    start: int
    sums: Ints
    counts: Ints


class Reference:
    """The answer that an engine must give to a stream of purchases, which begins at ``origin`` nanoseconds.

    Windows begin at multiples of the slide since the epoch and hold the events of [start, start + window),
    as Spark's ``window`` has them.
    """

    def __init__(self, params: Summing, plan: Plan, seed: int, origin: int, stream: int = 0) -> None:
        if params.window % _MICRO or params.slide % _MICRO:
            raise ValueError("window and slide are whole microseconds, as the due times are")
        if not 0 < params.slide <= params.window:
            raise ValueError("the slide is longer than the window: events between two windows would be in none")
        self.plan, self.origin = plan, origin
        self.purchases = Purchases(params, plan, seed, stream, origin)
        self.window, self.slide = params.window // _MICRO, params.slide // _MICRO
        self._walk = self._from_the_beginning()

    def until(self, events: int) -> Answer:
        """The answer if the stream ended after ``events`` events: windows that are open then hold what came.

        Asked again with more events, it goes on from where it was.
        """
        if events < self._walk.events:
            self._walk = self._from_the_beginning()
        self._walk.advance(events)
        return self._walk.answer()

    def windows(self, start: int, stop: int, events: int | None = None) -> Answer:
        """The windows that begin in [start, stop), microseconds since the epoch, without what comes before them.

        ``events`` cuts the stream off, as in ``until``.
        """
        first = -(-start // self.slide) * self.slide
        walk = _Walk(self, self.number(first), first, stop)
        end = min(self.number(stop - 1 + self.window), self.plan.total if events is None else events)
        walk.advance(max(end, walk.events))
        return walk.answer()

    def number(self, moment: int) -> int:
        """Number of the first event that is due at ``moment``, microseconds since the epoch, or after it."""
        return int(self.plan.count(min(max(moment * _MICRO - self.origin, 0), self.plan.horizon)))

    def first_window(self, moment: int) -> int:
        """Start of the earliest window that holds ``moment``."""
        return ((moment - self.window) // self.slide + 1) * self.slide

    def due(self, numbers: npt.ArrayLike) -> Ints:
        """When events are due, in microseconds since the epoch."""
        return (self.origin + self.plan.due(numbers)) // _MICRO

    def _from_the_beginning(self) -> "_Walk":
        return _Walk(self, 0, self.first_window(self.origin // _MICRO), None)


class _Walk:
    """A walk along the stream that opens and closes windows; ``events`` is how far it has come."""

    def __init__(self, reference: Reference, events: int, start: int, stop: int | None) -> None:
        params = reference.purchases.params
        packs = 1 if params.distribution == "single" else params.gem_packs
        self.events = events
        self._reference, self._next, self._stop = reference, start, stop
        self._sums, self._counts, self._last = (np.zeros(packs, np.int64) for _ in range(3))
        self._both = np.zeros(packs, np.int64)
        self._open: deque[_Opened] = deque()
        self._closed: list[Answer] = []

    def advance(self, events: int) -> None:
        """Go on until ``events`` events have been seen."""
        while True:
            closing = self._open[0].start + self._reference.window if self._open else None
            if closing is not None and (self._no_more or closing <= self._next):
                at = self._reference.number(closing)
                if at > events:
                    break
                self._add(at)
                self._closed.append(self._content(self._open.popleft()))
            else:
                at = self._reference.number(self._next)
                if self._no_more or at >= events:
                    break
                if self._skip_empty(at):
                    continue
                self._add(at)
                self._open.append(_Opened(self._next, self._sums.copy(), self._counts.copy()))
                self._next += self._reference.slide
        self._add(events)

    def _skip_empty(self, event: int) -> bool:
        """Leave out the windows that end before the next event: after a pause there may be millions."""
        ref = self._reference
        first = ref.first_window(int(ref.due(event)))
        skipped = first > self._next
        self._next = max(first, self._next)
        return skipped

    def answer(self) -> Answer:
        """Every window so far, in the order of start and key; those still open with what they have."""
        parts = [*self._closed, *(self._content(opened) for opened in self._open)]
        if not parts:
            return {name: np.zeros(0, np.int64) for name in ANSWER}
        return {name: np.concatenate([part[name] for part in parts]) for name in ANSWER}

    @property
    def _no_more(self) -> bool:
        return self._stop is not None and self._next >= self._stop

    def _content(self, opened: _Opened) -> Answer:
        counts = self._counts - opened.counts
        packs = np.flatnonzero(counts)
        return {
            "window_start": np.full(len(packs), opened.start, np.int64),
            "gem_pack_id": packs,
            "sum": self._sums[packs] - opened.sums[packs],
            "count": counts[packs],
            "max_due": self._reference.due(self._last[packs]),
        }

    def _add(self, events: int) -> None:
        """Add the events up to number ``events`` to the running totals."""
        purchases = self._reference.purchases
        while self.events < events:
            stop = min(events, self.events + _MOST_AT_ONCE)
            for first, packs, both in purchases.keyed_prices(self.events, stop, more=1 << _COUNT_AT):
                np.add.at(self._both, packs, both)
                self._last[packs] = np.arange(first, first + len(packs))  # of equal keys the last one stays
            self._counts += self._both >> _COUNT_AT
            self._sums += self._both & ((1 << _COUNT_AT) - 1)
            self._both[:] = 0
            self.events = stop
