"""Exact sums of panes: the stretches between two edges of windows, from which all windows are put together. Pure."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Whole = npt.NDArray[np.int32] | Ints

COLUMNS = ("gem_pack_id", "window_start", "window_end", "sum", "count", "max_due", "max_ingested")
"""Columns of fired windows, all int64: times in microseconds since the epoch, sums in cents."""
ClosedWindows = dict[str, Ints]


@dataclass(slots=True)
class _Pane:
    sums: Ints
    counts: Ints
    due: Ints
    ingested: Ints


class Panes:
    """Sums per key of the windows that begin at multiples of the slide since the epoch. Microseconds throughout."""

    def __init__(self, window: int, slide: int, keys: int) -> None:
        self.window, self.slide, self.keys = window, slide, keys
        self._panes: dict[int, _Pane] = {}
        self._next: int | None = None
        """Start of the earliest window that has not fired; None before the first event."""

    def pane(self, due: int) -> tuple[int, int]:
        """Begin and end of the pane of a moment. Edges are where windows begin and where they end."""
        rest = self.window % self.slide
        begins, ends = due // self.slide * self.slide, (due - rest) // self.slide * self.slide + rest
        return max(begins, ends), min(begins, ends) + self.slide

    def add(self, keys: Whole, prices: Whole, due: Whole, ingested: int) -> None:
        """Add events in the order of their due times, read at the moment ``ingested``."""
        low = 0
        while low < len(due):
            start, end = self.pane(int(due[low]))
            high = int(np.searchsorted(due, end, "left"))
            self._add_to(self._pane(start), keys[low:high], prices[low:high], due[low:high], ingested)
            low = high

    def _pane(self, start: int) -> _Pane:
        pane = self._panes.get(start)
        if pane is None:
            pane = self._panes[start] = _Pane(*(np.zeros(self.keys, np.int64) for _ in range(4)))
            first = self._first_window(start)  # another partition may have begun later than this one
            self._next = first if self._next is None else min(self._next, first)
        return pane

    def _first_window(self, moment: int) -> int:
        return ((moment - self.window) // self.slide + 1) * self.slide

    def _add_to(self, pane: _Pane, keys: Whole, prices: Whole, due: Whole, ingested: int) -> None:
        places = keys.astype(np.intp)
        counts = np.bincount(places, minlength=self.keys)
        pane.counts += counts
        # floats are exact here: one addition is far below 2^53 cents
        pane.sums += np.bincount(places, weights=prices, minlength=self.keys).astype(np.int64)
        latest = np.zeros(self.keys, np.int64)
        latest[places] = due  # of equal keys the last one stays
        np.maximum(pane.due, latest, out=pane.due)
        np.maximum(pane.ingested, np.where(counts > 0, ingested, 0), out=pane.ingested)

    def fire(self, until: int) -> ClosedWindows | None:
        """The windows that end at ``until`` or before and have not fired yet, in their order; None: there are none."""
        parts = []
        while self._next is not None and self._next + self.window <= until:
            start = self._next
            inside = [pane for at, pane in self._panes.items() if start <= at < start + self.window]
            if inside:
                parts.append(self._window(start, inside))
            self._next += self.slide
            for at in [at for at in self._panes if at < self._next]:
                del self._panes[at]
            # after a pause there may be millions of empty windows; before the next event nothing need be known
            self._next = self._resume(self._next)
        return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS} if parts else None

    def _resume(self, start: int) -> int | None:
        return max(start, self._first_window(min(self._panes))) if self._panes else None

    def _window(self, start: int, panes: list[_Pane]) -> ClosedWindows:
        counts = np.sum([pane.counts for pane in panes], axis=0)
        keys = np.flatnonzero(counts)
        return {
            "gem_pack_id": keys,
            "window_start": np.full(len(keys), start, np.int64),
            "window_end": np.full(len(keys), start + self.window, np.int64),
            "sum": np.sum([pane.sums[keys] for pane in panes], axis=0),
            "count": counts[keys],
            "max_due": np.max([pane.due[keys] for pane in panes], axis=0),
            "max_ingested": np.max([pane.ingested[keys] for pane in panes], axis=0),
        }


class Faults:
    """Corrupts outputs of the first window results; faults that exceed their rows hit the next ones."""

    def __init__(self, seed: int, window_results: int, *, lose: int = 0, duplicate: int = 0, alter: int = 0) -> None:
        self._random = np.random.default_rng([seed, 0x5AB07A6E])
        kinds = ["lose"] * lose + ["duplicate"] * duplicate + ["alter"] * alter
        self._plan = sorted(zip(self._random.integers(0, window_results, len(kinds)).tolist(), kinds, strict=True))
        self._sent = 0

    def corrupt(self, fired: ClosedWindows) -> ClosedWindows:
        """One window result as it is sent. Each fault hits a different row."""
        due = [kind for at, kind in self._plan if at <= self._sent]
        self._sent += 1
        rows = len(fired["sum"])
        hits = due[:rows]
        if not hits:
            return fired
        self._plan = self._plan[len(hits) :]
        places = self._random.choice(rows, len(hits), replace=False)
        by_kind = {kind: places[[k == kind for k in hits]] for kind in ("lose", "duplicate", "alter")}
        sums = fired["sum"].copy()
        sums[by_kind["alter"]] += 1
        kept = np.concatenate([np.delete(np.arange(rows), by_kind["lose"]), by_kind["duplicate"]])
        return {name: (sums if name == "sum" else column)[kept] for name, column in fired.items()}
