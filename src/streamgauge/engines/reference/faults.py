"""Outputs that are lost, doubled or altered, exactly as many as ordered, at places that the seed decides. Pure."""

import numpy as np

from streamgauge.engines.reference.panes import Fired


class Faults:
    """Spoils outputs among the first ``firings`` firings; what finds no room there comes in the next ones."""

    def __init__(self, seed: int, firings: int, *, lose: int = 0, duplicate: int = 0, alter: int = 0) -> None:
        self._random = np.random.default_rng([seed, 0x5AB07A6E])
        kinds = ["lose"] * lose + ["duplicate"] * duplicate + ["alter"] * alter
        self._plan = sorted(zip(self._random.integers(0, firings, len(kinds)).tolist(), kinds, strict=True))
        self._firing = 0

    def spoil(self, fired: Fired) -> Fired:
        """One firing as it is sent. Each fault hits a row of its own."""
        due = [kind for at, kind in self._plan if at <= self._firing]
        self._firing += 1
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
