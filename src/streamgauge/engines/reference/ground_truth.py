"""The log of the reference engine: when it took and released what. Measurements are compared with it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamgauge.engines.reference.schedule import work_begins
from streamgauge.model.units import SECOND
from streamgauge.store.journal import Ints, int64_schema, read_columns

BATCHES = "reference-batches.arrows"
"""A row per batch: taken, due for release and released (monotonic ns), whether the engine was busy without a pause
since the batch before, cut (µs since 1970), events, and all events until then."""
OUTPUTS = "reference-outputs.arrows"
"""A row per output that was sent; ``released_ns`` is monotonic, ``released_us`` the same moment since 1970."""
_LAST = SECOND
"""Nanoseconds at the end of a stretch that are searched for a batch that was on schedule."""
_IN_TIME = SECOND // 1000
"""Nanoseconds by which batches differ that are equally late."""

BATCH = int64_schema("took_ns", "finish_ns", "released_ns", "saturated", "cut_us", "events", "total")
OUTPUT = int64_schema("firing", "window_start", "gem_pack_id", "max_due_us", "released_ns", "released_us")


@dataclass(frozen=True, eq=False, slots=True)
class GroundTruth:
    """What the reference engine did, in columns of BATCH and OUTPUT."""

    batches: dict[str, Ints]
    outputs: dict[str, Ints]

    def capacity(self) -> float | None:
        """Events per second over the time in which more waited than it took; None: there was no such time.

        A stretch less than half as long as the longest does not count: in a short one a pause is all there is.
        """
        flags = np.concatenate([[0], self.batches["saturated"], [0]])
        edges = np.flatnonzero(np.diff(flags)).tolist()
        # without the batch before it, the beginning of the work of a stretch is unknown
        spans = [self._saturated(max(1, begin), end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
        least = max((time for _, time in spans), default=0) / 2
        events, time = (sum(span[i] for span in spans if span[1] >= least) for i in range(2))
        return events * SECOND / time if time else None

    def _saturated(self, begin: int, end: int) -> tuple[int, int]:
        """Events and nanoseconds of one stretch, the batches ``begin … end − 1``, as the schedule has its moments.

        The schedule makes a pause good by going faster than the capacity for a while, so both have to be inside.
        The time begins when the first batch should have been begun, and ends with a batch that was in time, or as
        near to it as any of the last ones: a pause at the very end is not made good any more.
        """
        if begin >= end:
            return 0, 0
        took, finish, released = (self.batches[name] for name in ("took_ns", "finish_ns", "released_ns"))
        since = work_begins(True, int(took[begin]), int(finish[begin - 1]))
        ends, late = released[begin:end], (released - finish)[begin:end]
        last_ones = int(np.searchsorted(ends, ends[-1] - min(_LAST, (ends[-1] - since) // 2)))
        stop = begin + int(np.flatnonzero(late <= late[last_ones:].min() + _IN_TIME)[-1])
        return int(self.batches["events"][begin : stop + 1].sum()), int(released[stop]) - since

    def latencies(self, start_ns: int | None = None, wall_ns: int = 0) -> Ints:
        """Event-time latency of every output in microseconds: released − maximum due.

        With the moment at which the load began, on both clocks of the load driver, the release is converted to
        its clock exactly; without it the engine's own wall clock counts.
        """
        released = self.outputs["released_us"]
        if start_ns is not None:
            released = (wall_ns + self.outputs["released_ns"] - start_ns) // 1_000
        return released - self.outputs["max_due_us"]


def read_ground_truth(folder: Path) -> GroundTruth:
    """Read the log, as far as it is there: a crash may have torn off its end."""
    return GroundTruth(read_columns(folder / BATCHES), read_columns(folder / OUTPUTS))
