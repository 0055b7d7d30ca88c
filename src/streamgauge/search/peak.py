"""The search for the best number of instances if more instances can be slower.

By the Universal Scalability Law, the load that n instances support rises up to a peak and falls beyond it. A search for
which more instances are easier goes to the end of the range, beyond the peak. If nothing passes there, this module
tries numbers of instances next to the fastest ones, until their neighbours are close.
"""

from itertools import pairwise

from streamgauge.model.measurement import Estimate
from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import AxisHistory, ValueHistory

_CLOSE_FACTOR = 1.25
"""No number of instances is tried between two that are closer than this factor. By the law, it would support at most
1 % more than the better of the two."""
_MAX_ERRORS = 2.0
"""Two estimates that are closer than this many standard errors count as equal."""


def next_value(axis: SearchAxis, history: AxisHistory) -> float | None:
    """The next number of instances to try; None if the peak is found, or a number passes."""
    if history.holds is not None:
        return None
    best = {entry.value for entry in _highest(history)}
    ends = sorted({axis.values[0], axis.values[-1], *(p.value for p in history.entries)})
    gaps = []
    for low, high in pairwise(ends):
        inside = [v for v in axis.values if low <= v <= high and history.at(v) is None]
        if inside and high > _CLOSE_FACTOR * low and best & {low, high}:
            gaps.append((high / low, min(inside, key=lambda v: abs(v * v - low * high))))
    return max(gaps)[1] if gaps else None


def fastest(history: AxisHistory) -> tuple[float, float] | None:
    """The fastest number of instances and its load, if more instances were clearly slower."""
    loads = {p.value: e for p in history.entries if (e := _best_estimate(p)) is not None}
    if not loads:
        return None
    best = max(loads, key=lambda n: loads[n].boundary)
    last = loads.get(max(loads))
    if last is None or max(loads) == best or _reaches(last, loads[best]):
        return None
    return best, loads[best].boundary


def _highest(history: AxisHistory) -> list[ValueHistory]:
    """The values that may be next to the peak, because none supported clearly more. A failed system shows nothing."""
    entries = [p for p in history.entries if not p.inherited and not p.crashed]
    loads = [e for p in entries if (e := _best_estimate(p)) is not None]
    top = max(loads, key=lambda e: e.boundary - _MAX_ERRORS * e.error, default=None)
    return [p for p in entries if top is None or (e := _best_estimate(p)) is None or _reaches(e, top)]


def _reaches(estimate: Estimate, top: Estimate) -> bool:
    return estimate.boundary + _MAX_ERRORS * estimate.error >= top.boundary - _MAX_ERRORS * top.error


def _best_estimate(entry: ValueHistory) -> Estimate | None:
    """The most precise estimate of the load that this number of instances supports; None: there is none."""
    if entry.state is None:
        return None
    estimates = [t.verdict.estimate for t in entry.results if t.verdict.estimate is not None]
    return min(estimates, key=lambda e: e.error, default=None)
