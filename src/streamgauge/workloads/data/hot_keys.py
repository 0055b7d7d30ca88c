"""Hot keys that move: a share of the events goes to a few keys, and after each period to others.

The random word of an event decides whether it is hot and which of the hot keys it has; the time at which it is due
decides which keys are hot then. In period k they are the keys k × count … (k + 1) × count − 1, modulo the number of
keys, so each key becomes hot in turn.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.workloads.data.random import Words

Ints = npt.NDArray[np.int64]
Keyed = npt.NDArray[np.int32] | Ints

_HALF = np.uint64(32)
_SCATTER = np.uint64(0xA0761D6478BD642F)  # odd; users, gem packs and prices depend on other bits of a word


@dataclass(frozen=True, slots=True)
class HotKeys:
    """The hot keys of one stream of events."""

    share: float
    """Of the events."""
    count: int
    """How many keys are hot together."""
    period: int
    """Nanoseconds after which other keys become hot; the first period begins with the load."""
    keys: int
    plan: Plan
    """When each event is due."""

    def fill(self, words: Words, first: int, stride: int, out: Keyed) -> None:
        """Give the hot ones of the events ``first``, ``first + stride`` … their keys."""
        rows, chosen = self._chosen(words)
        self._assign(rows, chosen, first + stride * rows, out)

    def fill_at(self, words: Words, numbers: Ints, out: Keyed) -> None:
        """The same for events with these numbers, in rising order."""
        rows, chosen = self._chosen(words)
        self._assign(rows, chosen, numbers[rows], out)

    def _chosen(self, words: Words) -> tuple[Ints, Ints]:
        """The rows that are hot, and which of the hot keys each has."""
        limit = round(self.share * (1 << 32))
        place = words * _SCATTER
        place >>= _HALF
        rows = np.flatnonzero(place < limit)
        chosen = place[rows] * np.uint64(self.count) // np.uint64(max(limit, 1))
        return rows, chosen.astype(np.int64)

    def _assign(self, rows: Ints, chosen: Ints, numbers: Ints, out: Keyed) -> None:
        if len(rows):
            out[rows] = (self._periods(numbers) * self.count + chosen) % self.keys

    def _periods(self, numbers: Ints) -> Ints:
        """The period in which each event is due. Events after the end of the plan belong to its last period."""
        last = self.plan.total - 1
        if last < 0:
            return np.zeros(len(numbers), np.int64)
        low, high = (int(self.plan.due(min(int(number), last))) // self.period for number in (numbers[0], numbers[-1]))
        if high - low > len(numbers):  # more periods than events
            return self.plan.due(np.minimum(numbers, last)) // self.period
        begins = self.plan.count(np.arange(low + 1, high + 1, dtype=np.int64) * self.period)
        return low + np.searchsorted(begins, numbers, side="right")
