"""The reference result of ``windowed-aggregation``: exact sums per window and gem pack, computed without an engine.

Events come in the order of their due times. So a window is a range of event numbers, its sums are the difference of
two running totals, and the latest event of a key before the window's end has its maximum due time. One pass over the
events serves all windows, however much they overlap.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.workloads.contract import Columns
from streamgauge.workloads.data.shopping import HIGHEST_PRICE, PURCHASE_STREAM, Purchases

Ints = npt.NDArray[np.int64]

COLUMNS = ("window_start", "gem_pack_id", "sum", "count", "max_due")
"""Columns of the result, all int64: times in microseconds since the epoch, sums in cents."""

_MICRO = 1_000
_COUNT_AT = 40  # sum below this bit, count above it: one addition per event serves both
_MAX_CHUNK = 1 << 22
assert _MAX_CHUNK * HIGHEST_PRICE < 1 << _COUNT_AT  # the sum never reaches into the count
assert _MAX_CHUNK << _COUNT_AT < 1 << 63


@dataclass(frozen=True, slots=True)
class _OpenWindow:
    """A window that is open, and the running totals when it opened."""

    start: int
    sums: Ints
    counts: Ints


class WindowSums:
    """The sums of the prices of one stream of purchases.

    Windows begin at multiples of the slide since the epoch and contain the events of [start, start + window), as those
    of Spark's ``window``. Nothing is computed before ``until`` is called.
    """

    def __init__(self, purchases: Purchases, window: int, slide: int, stream: str = PURCHASE_STREAM.name) -> None:
        """``window`` and ``slide`` are nanoseconds."""
        self.purchases, self._stream = purchases, stream
        self._window_ns, self._slide_ns = window, slide
        self.window, self.slide = window // _MICRO, slide // _MICRO
        """Microseconds."""
        self._totals: _RunningTotals | None = None

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if the stream ended after so many events: open windows contain what came until then.

        A call with more events than the one before continues where that one ended.
        """
        count = events[self._stream]
        if self._totals is None or count < self._totals.events:
            self._totals = self._start()
        self._totals.advance(count)
        return self._totals.result()

    def number(self, moment: int) -> int:
        """Number of the first event that is due at ``moment``, microseconds since the epoch, or after it."""
        plan = self.purchases.plan
        return int(plan.count(min(max(moment * _MICRO - self.purchases.origin, 0), plan.horizon)))

    def first_window(self, moment: int) -> int:
        """Start of the earliest window that contains ``moment``."""
        return ((moment - self.window) // self.slide + 1) * self.slide

    def due(self, numbers: npt.ArrayLike) -> Ints:
        """When events are due, in microseconds since the epoch."""
        return (self.purchases.origin + self.purchases.plan.due(numbers)) // _MICRO

    def _start(self) -> "_RunningTotals":
        if self._window_ns % _MICRO or self._slide_ns % _MICRO:
            raise ValueError("window and slide are whole microseconds, as the due times are")
        if not 0 < self.slide <= self.window:
            raise ValueError("the slide is longer than the window: events between two windows would be in no window")
        return _RunningTotals(self)


class _RunningTotals:
    """The sums and counts of each key over the first ``events`` events, and the windows that opened and closed."""

    def __init__(self, windows: WindowSums) -> None:
        self.events = 0
        self._windows, self._next = windows, windows.first_window(windows.purchases.origin // _MICRO)
        keys = windows.purchases.params.key_count
        self._sums, self._counts, self._last = (np.zeros(keys, np.int64) for _ in range(3))
        self._both = np.zeros(keys, np.int64)
        self._open: deque[_OpenWindow] = deque()
        self._closed: list[Columns] = []

    def advance(self, events: int) -> None:
        """Continue until the first ``events`` events are added."""
        while True:
            closing = self._open[0].start + self._windows.window if self._open else None
            if closing is not None and closing <= self._next:
                at = self._windows.number(closing)
                if at > events:
                    break
                self._add(at)
                self._closed.append(self._window_rows(self._open.popleft()))
            else:
                at = self._windows.number(self._next)
                if at >= events:
                    break
                if self._skip_empty(at):
                    continue
                self._add(at)
                self._open.append(_OpenWindow(self._next, self._sums.copy(), self._counts.copy()))
                self._next += self._windows.slide
        self._add(events)

    def _skip_empty(self, event: int) -> bool:
        """Leave out the windows that end before the next event: after a pause there may be millions."""
        first = self._windows.first_window(int(self._windows.due(event)))
        skipped = first > self._next
        self._next = max(first, self._next)
        return skipped

    def result(self) -> Columns:
        """Every window so far, in the order of start and key; those still open with what they have."""
        parts = [*self._closed, *(self._window_rows(each) for each in self._open)]
        if not parts:
            return {name: np.zeros(0, np.int64) for name in COLUMNS}
        return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}

    def _window_rows(self, window: _OpenWindow) -> Columns:
        counts = self._counts - window.counts
        packs = np.flatnonzero(counts)
        return {
            "window_start": np.full(len(packs), window.start, np.int64),
            "gem_pack_id": packs,
            "sum": self._sums[packs] - window.sums[packs],
            "count": counts[packs],
            "max_due": self._windows.due(self._last[packs]),
        }

    def _add(self, events: int) -> None:
        """Add the events up to number ``events`` to the running totals."""
        purchases = self._windows.purchases
        while self.events < events:
            stop = min(events, self.events + _MAX_CHUNK)
            for first, packs, both in purchases.keyed_prices(self.events, stop, more=1 << _COUNT_AT):
                np.add.at(self._both, packs, both)
                self._last[packs] = np.arange(first, first + len(packs))  # of equal keys the last one stays
            self._counts += self._both >> _COUNT_AT
            self._sums += self._both & ((1 << _COUNT_AT) - 1)
            self._both[:] = 0
            self.events = stop
