"""The log of the reference engine: when it took and released what. That log is the truth that others are held to."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamgauge.engines.toolkit import Ints, read_log, whole_numbers
from streamgauge.model.units import SECOND

BATCHES = "reference-batches.arrows"
"""A row per batch: taken, due for release and released (monotonic ns), whether the engine was busy without a pause
since the batch before, cut (µs since 1970), events, and all events until then."""
OUTPUTS = "reference-outputs.arrows"
"""A row per output that was sent; ``released_ns`` is monotonic, ``released_us`` the same moment since 1970."""


BATCH = whole_numbers("took_ns", "finish_ns", "released_ns", "saturated", "cut_us", "events", "total")
OUTPUT = whole_numbers("firing", "window_start", "gem_pack_id", "max_due_us", "released_ns", "released_us")


@dataclass(frozen=True, eq=False, slots=True)
class Truth:
    """What the reference engine did, in columns of BATCH and OUTPUT."""

    batches: dict[str, Ints]
    outputs: dict[str, Ints]

    def capacity(self) -> float | None:
        """Events per second over the longest stretch in which it was busy without a pause; None: there was none."""
        saturated = np.concatenate([[0], self.batches["saturated"], [0]])
        edges = np.flatnonzero(np.diff(saturated))
        if not len(edges):
            return None
        begins, ends = edges[::2], edges[1::2]
        longest = int(np.argmax(ends - begins))
        # the batch before the stretch is where its time begins
        low, high = max(0, int(begins[longest]) - 1), int(ends[longest])
        released, events = self.batches["released_ns"][low:high], self.batches["events"][low + 1 : high]
        return float(events.sum() * SECOND / (released[-1] - released[0])) if len(events) else None

    def latencies(self, start_ns: int | None = None, wall_ns: int = 0) -> Ints:
        """Event-time latency of every output in microseconds: released − maximum due.

        With the moment at which the load began, on both clocks, as the driver has it, the release is put on the
        driver's clock exactly; without it the engine's own wall clock counts.
        """
        released = self.outputs["released_us"]
        if start_ns is not None:
            released = (wall_ns + self.outputs["released_ns"] - start_ns) // 1_000
        return released - self.outputs["max_due_us"]

    def firings(self, start_ns: int | None = None, wall_ns: int = 0) -> Ints:
        """The latency of every firing: that of its latest event."""
        if not len(self.outputs["firing"]):
            return np.zeros(0, np.int64)
        first = np.flatnonzero(np.diff(self.outputs["firing"], prepend=-1))
        least: Ints = np.minimum.reduceat(self.latencies(start_ns, wall_ns), first)
        return least


def truth(folder: Path) -> Truth:
    """Read the log, as far as it is there: a crash may have torn off its end."""
    return Truth(read_log(folder / BATCHES), read_log(folder / OUTPUTS))
