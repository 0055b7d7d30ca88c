"""Seconds: the metrics of each second of a trial. The judge reads nothing else of a recording.

They are columns, with one row per second since the load began, so that thousands of simulated trials are
cheap and a PySpark aggregation produces the same table. Latencies are sparse counts in HDR's bucket
layout (stats/buckets.py): merging two recordings of one second is addition.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from streamgauge.model.streams import MAX_DUE, MAX_INGESTED, MEAN_PUBLISHED

Column = npt.NDArray[np.int64]
Kind = Literal[
    "event-time",  # one count per output row, in the second in which it was due
    "processing-time",
    "send-delay",  # one count per event: how late the generator sent it, in the second in which it was due
    "append-delay",  # the same until the broker had appended it; nothing on the queue
    "event-time-windows",  # one count per window result: its largest latency
    "processing-time-windows",
    "missing",  # one count per row that was due and never came: the time for which it has been missing
    "missing-windows",
    "publication-time",  # as event-time, from the mean publication of the events that a row was made from
    "publication-time-windows",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Everything that is counted by bucket. The order is part of the stored format."""
LATENCY_COLUMNS: dict[Kind, str] = {
    "event-time": MAX_DUE,
    "processing-time": MAX_INGESTED,
    "publication-time": MEAN_PUBLISHED,
}
"""The columns of outputs from which latencies are counted."""
OUTPUT_KINDS: tuple[Kind, ...] = tuple(LATENCY_COLUMNS)
"""Latencies of output rows."""
WINDOW_KINDS: dict[Kind, Kind] = {
    "event-time": "event-time-windows",
    "processing-time": "processing-time-windows",
    "publication-time": "publication-time-windows",
    "missing": "missing-windows",
}
"""If every row is a separate result, no window results are recorded, because the rows are the results."""


def _empty() -> Column:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False, slots=True)
class Latencies:
    """Counts of latencies: ``count[i]`` samples of second ``second[i]`` are in ``bucket[i]``.

    The second is the one in which an output was *due*, not the one in which it came. A system that hangs emits nothing,
    so its slowest outputs would otherwise be missing from the seconds that are judged.
    """

    second: Column = field(default_factory=_empty)
    bucket: Column = field(default_factory=_empty)
    count: Column = field(default_factory=_empty)

    def between(self, start: int, stop: int) -> "Latencies":
        """Only the seconds ``start … stop − 1``."""
        keep = (self.second >= start) & (self.second < stop)
        return Latencies(self.second[keep], self.bucket[keep], self.count[keep])


# What each column contains. "Sum" columns add up when two load drivers are merged, "max" columns keep the larger.
SUMMED = (
    "offered",  # events that are due in this second
    "published",  # events put into the queue, or confirmed by the broker
    "served",  # events passed to the SUT
    "acknowledged",  # events that the SUT has acknowledged
    "acks",  # acknowledgements (micro-batch ends)
    "outputs",  # output rows that arrived
    "firings",  # window results that were due in this second and came
    "negative",  # outputs whose latency came out negative; counted, never clamped
    "drops",  # connections to the queue that the SUT dropped
    "sut_cpu",  # microseconds of CPU used by the SUT
    "driver_cpu",  # microseconds of CPU used by the load driver
    "queue",  # largest number of events that waited (published − served); of several drivers the sum, an upper bound
)
LATEST = (
    "ack_time",  # nanoseconds since the load began of the last acknowledgement, −1 if none
    "ack_lag",  # events planned by that moment − acknowledged, −1 if none, wherever they wait
)
LARGEST = (
    "schedule_lag",  # nanoseconds: largest send delay (actual − planned time of sending)
    "run_delay",  # nanoseconds the load driver's threads waited for a CPU
    "hiccup",  # nanoseconds: longest time for which the load driver's process was not woken
    "collector_hiccup",  # nanoseconds: the same for the collector
    "skew",  # nanoseconds of due time: the largest distance between two partitions
    "clock_step",  # nanoseconds: wall clock against monotonic clock
    "foreign",  # parts per million of the SUT's cores that other processes used; only sums are above zero
    "steal",  # parts per million of the SUT core with the most steal time in the trial that the hypervisor used
)
COLUMNS = SUMMED + LATEST + LARGEST
SUMMED_BY_DRIVERS = ("offered", "published", "served", "acknowledged", "acks", "drops", "queue")
"""The SUMMED columns that each load driver records."""
LARGEST_OF_DRIVERS = ("schedule_lag", "hiccup", "skew", "clock_step")
"""The LARGEST columns that each load driver records."""


@dataclass(frozen=True, eq=False, slots=True)
class Seconds:
    """Consecutive seconds of one trial, from ``start`` on, as equally long columns."""

    start: int
    columns: dict[str, Column]
    latencies: dict[Kind, Latencies] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = set(self.columns) - set(COLUMNS)
        if unknown:
            raise ValueError(f"no such columns of a second: {sorted(unknown)}")
        if len({len(c) for c in self.columns.values()}) > 1:
            raise ValueError("the columns of Seconds have different lengths")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    @property
    def stop(self) -> int:
        """The second after the last one."""
        return self.start + len(self)

    def __getitem__(self, name: str) -> Column:
        """A column; one that was not recorded is all zero."""
        if name not in COLUMNS:
            raise KeyError(name)
        found = self.columns.get(name)
        return np.zeros(len(self), np.int64) if found is None else found

    def latency(self, kind: Kind) -> Latencies:
        """The counts of one kind; empty if none were recorded."""
        return self.latencies.get(kind) or Latencies()

    def rows(self, kind: Kind) -> Latencies:
        """Latencies of output rows; in event-time including rows that never came."""
        return _stack([self.latency(each) for each in _with_missing(kind)])

    def results(self, kind: Kind) -> Latencies:
        """Latencies of window results; if none are recorded, every row is a separate result."""
        windowed = any(each in self.latencies for each in WINDOW_KINDS.values())
        return _stack([self.latency(WINDOW_KINDS[each] if windowed else each) for each in _with_missing(kind)])

    def between(self, start: int, stop: int) -> "Seconds":
        """The seconds ``start … stop − 1`` of the trial."""
        low, high = max(start, self.start), min(stop, self.stop)
        cut = slice(low - self.start, max(low, high) - self.start)
        columns = {name: column[cut] for name, column in self.columns.items()}
        return Seconds(low, columns, {k: lat.between(low, high) for k, lat in self.latencies.items()})


def join(parts: Iterable[Seconds]) -> Seconds:
    """Consecutive parts of one trial as one value."""
    pieces = [p for p in parts if len(p)]
    if not pieces:
        return Seconds(0, {name: _empty() for name in COLUMNS})
    for before, after in pairwise(pieces):
        if before.stop != after.start:
            raise ValueError(f"seconds {before.stop} and {after.start} do not follow each other")
    names = [f for f in COLUMNS if any(f in p.columns for p in pieces)]
    columns = {name: np.concatenate([p[name] for p in pieces]) for name in names}
    kinds = [k for k in KINDS if any(k in p.latencies for p in pieces)]
    return Seconds(pieces[0].start, columns, {k: _stack([p.latency(k) for p in pieces]) for k in kinds})


def _with_missing(kind: Kind) -> tuple[Kind, ...]:
    return (kind, "missing") if kind == "event-time" else (kind,)


def _stack(parts: list[Latencies]) -> Latencies:
    columns = [np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Latencies)]
    return Latencies(*columns)


def merge(left: Seconds, right: Seconds) -> Seconds:
    """The same seconds recorded by two load drivers as one value: counts add up, extremes keep the larger."""
    if (left.start, len(left)) != (right.start, len(right)):
        raise ValueError("only recordings of the same seconds can be merged")
    columns = {}
    for name in COLUMNS:
        if name not in left.columns and name not in right.columns:
            continue
        a, b = left[name], right[name]
        columns[name] = a + b if name in SUMMED else np.maximum(a, b)
        if name == "ack_lag":  # each load driver has a part of the lag; −1: it had no acknowledgement
            columns[name] = np.where((a < 0) & (b < 0), -1, np.maximum(a, 0) + np.maximum(b, 0))
    kinds = {
        k: _stack([left.latency(k), right.latency(k)]) for k in KINDS if k in left.latencies or k in right.latencies
    }
    return Seconds(left.start, columns, kinds)


@dataclass(frozen=True, slots=True)
class Account:
    """The output check of a whole trial: numbers of outputs compared with the reference result."""

    expected: int = 0
    observed: int = 0
    lost: int = 0
    duplicate: int = 0
    wrong: int = 0
    late: int = 0
    not_reached: int = 0
    checked: bool = False
    """A reference result exists."""
    compared: int | None = field(default=None, compare=False)
    """Rows of the reference result that came or were due; None: not recorded."""
    first_close: int = field(default=0, compare=False)
    """Nanoseconds from the start of the load to the end of the first window; 0: unknown."""

    @property
    def rows_checked(self) -> int:
        """Number of rows of the reference result with which outputs were compared."""
        if not self.checked:
            return 0
        return self.expected - self.not_reached if self.compared is None else self.compared
