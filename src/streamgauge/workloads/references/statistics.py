"""The six statistics of Theodolite per key and window, exact: count, sum, min, max, mean and population variance.

Events come in the order of their due times, so a window is a range of event numbers. Both ends of the range only move
forward from window to window. Counts and sums are updated by the events that enter and leave, which are made again when
they leave. A minimum cannot be updated so. It is that of two parts: the front, whose statistics of every suffix were
computed backwards and are restored step by step, and the back, to which new events are added. So an event is handled a
fixed number of times, however much the windows overlap, and no event is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.model.streams import TIME, Column, Schema
from streamgauge.workloads.contract import Columns, OutputContract
from streamgauge.workloads.data.sensors import HIGHEST_VALUE

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

STATISTICS: Schema = (
    Column("count", "int64"),
    Column("sum", "int64"),
    Column("min", "int32"),
    Column("max", "int32"),
    Column("mean", "float64"),
    Column("variance", "float64"),
)
"""The statistics of a key in a window. Values are whole numbers, so only the mean and the variance are not."""
WINDOW: Schema = (Column("window_start", TIME), Column("window_end", TIME))
STAMPS: Schema = (Column("max_due", TIME), Column("max_ingested", TIME))
MOST_EVENTS = (1 << 63) // (HIGHEST_VALUE + 1) ** 2
"""Events of one window whose squares can be summed in 64 bits: 9 * 10^10."""

_MICRO = 1_000
_LARGEST = np.iinfo(np.int64).max


class KeyedValues(Protocol):
    """Events as a statistic needs them."""

    @property
    def codes(self) -> int:
        """The keys are the whole numbers from 0 to below this one."""

    def keyed_values(self, start: int, stop: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Numbers, keys and values of the events ``start … stop − 1``, some at a time.

        An event can come many times, with other keys, or not at all. The columns may be overwritten by the next step.
        """


@dataclass(frozen=True)
class EventWindows:
    """Windows over a stream, as ranges of event numbers. They begin at multiples of the slide since the epoch."""

    plan: Plan
    origin: int
    window: int
    slide: int
    """Nanoseconds, as the origin."""

    def __post_init__(self) -> None:
        if self.window % _MICRO or self.slide % _MICRO:
            raise ValueError("window and slide are whole microseconds, as the due times are")
        if not 0 < self.slide <= self.window:
            raise ValueError("the slide is longer than the window: events between two windows would be in no window")

    def due(self, numbers: npt.ArrayLike) -> Ints:
        """When events are due, in microseconds since the epoch."""
        return (self.origin + self.plan.due(numbers)) // _MICRO

    def ranges(self, events: int) -> tuple[Ints, Ints, Ints]:
        """Start, first event and end of each window with some of the first ``events`` events, in their order."""
        window, slide = self.window // _MICRO, self.slide // _MICRO
        if not events:
            return (np.zeros(0, np.int64),) * 3
        begin, end = self.due([0, events - 1]).tolist()
        first = (begin - window) // slide + 1
        starts = np.arange(first, end // slide + 1) * slide
        low, high = (np.minimum(self._number(moments), events) for moments in (starts, starts + window))
        some = low < high
        return starts[some], low[some], high[some]

    def _number(self, moments: Ints) -> Ints:
        """Number of the first event that is due at each moment or after it."""
        return self.plan.count(np.clip(moments * _MICRO - self.origin, 0, self.plan.horizon))


def statistics_output(*keys: Column) -> OutputContract:
    """A row per window and key, with the statistics and the moments of the newest event that contributed."""
    return OutputContract((*keys, *WINDOW, *STATISTICS, *STAMPS), ("window_start", *(key.name for key in keys)))


class WindowStatistics:
    """The statistics of the values of one stream per key and window."""

    def __init__(self, source: KeyedValues, windows: EventWindows) -> None:
        self._source, self._windows = source, windows

    def until(self, events: int) -> Columns:
        """The expected rows if the stream ended after so many events: open windows contain what came until then.

        ``key`` is the code of a key. Rows are in the order of window and key.
        """
        starts, firsts, stops = self._windows.ranges(events)
        if len(starts) and int((stops - firsts).max()) > MOST_EVENTS:
            raise ValueError(f"a window has more than {MOST_EVENTS:,} events: the sum of their squares needs 64 bits")
        part, parts = _MovingRange(self._source, firsts), list[Columns]()
        for start, first, stop in zip(starts.tolist(), firsts.tolist(), stops.tolist(), strict=True):
            part.move(first, stop)
            parts.append(self._rows(start, part))
        if not parts:
            whole = {name: np.zeros(0, np.int64) for name in ("window_start", "key", "max_due")}
            return whole | {name: np.zeros(0, np.float64 if t == "float64" else np.int64) for name, t in STATISTICS}
        return {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}

    def _rows(self, start: int, part: "_MovingRange") -> Columns:
        keys = np.flatnonzero(part.count)
        count, total = part.count[keys], part.sum[keys]
        return {
            "window_start": np.full(len(keys), start, np.int64),
            "key": keys,
            "count": count,
            "sum": total,
            "min": np.minimum(part.front.low[keys], part.back.low[keys]),
            "max": np.maximum(part.front.high[keys], part.back.high[keys]),
            "mean": total / count,
            "variance": population_variance(count, total, part.squares[keys]),
            "max_due": self._windows.due(part.last[keys]),
        }


def population_variance(count: Ints, total: Ints, squares: Ints) -> Floats:
    """Σ(x − mean)² / n from n, Σx and Σx², rounded only at the end.

    (n*Σx² - (Σx)²) / n² loses every digit in floating point if the values are large and close to each other, so its
    numerator is computed in whole numbers: of 64 bits if they suffice, otherwise without a limit.
    """
    if not len(count):
        return np.zeros(0)
    if int(count.max()) * int(squares.max()) < _LARGEST:  # and (Σx)² is never more than n*Σx²
        numerator = (count * squares - total * total).astype(np.float64)
    else:
        exact = count.astype(object) * squares.astype(object) - total.astype(object) * total.astype(object)
        numerator = exact.astype(np.float64)
    divisor = count.astype(np.float64)
    result: Floats = numerator / (divisor * divisor)
    return result


class _Extremes:
    """Minimum and maximum of each key."""

    def __init__(self, codes: int) -> None:
        self.low, self.high = np.full(codes, _LARGEST), np.full(codes, -_LARGEST)

    def clear(self) -> None:
        self.low[:], self.high[:] = _LARGEST, -_LARGEST

    def add(self, keys: Ints, values: Ints) -> None:
        np.minimum.at(self.low, keys, values)
        np.maximum.at(self.high, keys, values)


@dataclass(frozen=True, slots=True, eq=False)
class _Undo:
    """How the front becomes that of the events from ``start`` on: these extremes of these keys."""

    start: int
    changes: tuple[tuple[Ints | slice, Ints, Ints], ...]
    """The last one first."""


class _MovingRange:
    """The statistics of each key over a range of events whose ends move forward."""

    def __init__(self, source: KeyedValues, firsts: Ints) -> None:
        """``firsts`` are all beginnings that the range will have, in ascending order."""
        self._source, self._firsts = source, firsts
        self.count, self.sum, self.squares, self.last = (np.zeros(source.codes, np.int64) for _ in range(4))
        self.front, self.back = _Extremes(source.codes), _Extremes(source.codes)
        self._first = self._stop = self._back_start = 0
        self._undo: list[_Undo] = []

    def move(self, first: int, stop: int) -> None:
        """To the events ``first … stop − 1``."""
        if first >= self._stop:
            for column in (self.count, self.sum, self.squares):
                column[:] = 0
            self._first = self._stop = first
        self._take_out(self._first, first)
        if first > self._back_start:
            self._start_again(first, stop)
        else:
            self._cut_front(first)
            self._add(self._stop, stop)
        self._first, self._stop = first, stop

    def _cut_front(self, first: int) -> None:
        """The front begins with ``first``; it is empty if the back begins there."""
        if first == self._back_start:
            self.front.clear()
            self._undo = []
        while self._undo and self._undo[-1].start <= first:
            self._restore(self._undo.pop())

    def _start_again(self, first: int, stop: int) -> None:
        """The front is the whole range. If no later window begins in it, it will not be cut, and is the back."""
        self.front.clear()
        self.back.clear()
        cuts = np.unique(self._firsts[np.searchsorted(self._firsts, first) : np.searchsorted(self._firsts, stop)])
        alone = len(cuts) == 1 and first == self._stop
        self._add(self._stop, stop, extremes=alone)
        if not alone:
            self._build_front([*cuts.tolist(), stop])
        self._back_start = first if alone else stop

    def _add(self, start: int, stop: int, *, extremes: bool = True) -> None:
        for numbers, keys, values in self._source.keyed_values(start, stop):
            np.add.at(self.count, keys, 1)
            np.add.at(self.sum, keys, values)
            np.add.at(self.squares, keys, values * values)
            self.last[keys] = numbers  # of equal keys the last one stays
            if extremes:
                self.back.add(keys, values)

    def _take_out(self, start: int, stop: int) -> None:
        for _, keys, values in self._source.keyed_values(start, stop):
            np.subtract.at(self.count, keys, 1)
            np.subtract.at(self.sum, keys, values)
            np.subtract.at(self.squares, keys, values * values)

    def _build_front(self, cuts: list[int]) -> None:
        """The front is that of the events from the first to the last cut; at each cut between them it can be cut."""
        self._undo = []
        for n in range(len(cuts) - 2, -1, -1):
            is_last = n == len(cuts) - 2
            changes = self._add_to_front(cuts[n], cuts[n + 1], remember=not is_last)
            if not is_last:
                self._undo.append(_Undo(cuts[n + 1], changes))

    def _add_to_front(self, start: int, stop: int, *, remember: bool) -> tuple[tuple[Ints | slice, Ints, Ints], ...]:
        """What the front was before, of the keys that change."""
        front, changes = self.front, list[tuple[Ints | slice, Ints, Ints]]()
        dense = stop - start >= len(front.low)
        if remember and dense:
            changes.append((slice(None), front.low.copy(), front.high.copy()))
        for _, keys, values in self._source.keyed_values(start, stop):
            if remember and not dense:
                changes.append((keys.copy(), front.low[keys], front.high[keys]))
            front.add(keys, values)
        return tuple(reversed(changes))

    def _restore(self, undo: _Undo) -> None:
        for keys, low, high in undo.changes:
            self.front.low[keys], self.front.high[keys] = low, high
