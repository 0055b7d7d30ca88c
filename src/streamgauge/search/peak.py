"""More instances can be slower: where none of those that were tried holds, the best may be in between.

By the Universal Scalability Law the load that n instances carry rises up to a peak and falls beyond it. A search that
takes more instances as easier goes to the end of the range, past the peak. Once nothing is left to try there, this
looks beside the numbers of instances that carried the most, until their neighbours are close.
"""

from itertools import pairwise

from streamgauge.model.measurement import Estimate
from streamgauge.search.axes import Line
from streamgauge.search.history import Known, Point

_CLOSE = 1.25
"""Numbers of instances that are closer than this factor are not told apart: by the law, one in the middle carries at
most 1 % more than the better of the two."""
_ERRORS = 2.0
"""Standard errors within which two estimates do not differ."""


def next_value(line: Line, known: Known) -> float | None:
    """The next number of instances to try; None where the peak is enclosed, or something holds already."""
    if known.holds is not None:
        return None
    best = {point.value for point in _highest(known)}
    ends = sorted({line.values[0], line.values[-1], *(p.value for p in known.points)})
    gaps = []
    for low, high in pairwise(ends):
        inside = [v for v in line.values if low <= v <= high and known.at(v) is None]
        if inside and high > _CLOSE * low and best & {low, high}:
            gaps.append((high / low, min(inside, key=lambda v: abs(v * v - low * high))))
    return max(gaps)[1] if gaps else None


def most(known: Known) -> tuple[float, float] | None:
    """The number of instances that carried the most and how much that was, if more instances carried clearly less."""
    carried = {p.value: e for p in known.points if (e := _carried(p)) is not None}
    if not carried:
        return None
    best = max(carried, key=lambda n: carried[n].boundary)
    last = carried.get(max(carried))
    if last is None or max(carried) == best or _reaches(last, carried[best]):
        return None
    return best, carried[best].boundary


def _highest(known: Known) -> list[Point]:
    """The points that may be next to the peak: none carried clearly more. A crash says nothing of scaling."""
    points = [p for p in known.points if not p.taken and not p.crashed]
    carried = [e for p in points if (e := _carried(p)) is not None]
    top = max(carried, key=lambda e: e.boundary - _ERRORS * e.error, default=None)
    return [p for p in points if top is None or (e := _carried(p)) is None or _reaches(e, top)]


def _reaches(estimate: Estimate, top: Estimate) -> bool:
    return estimate.boundary + _ERRORS * estimate.error >= top.boundary - _ERRORS * top.error


def _carried(point: Point) -> Estimate | None:
    """What this number of instances carried, by the most precise of its trials; None: no trial tells."""
    if point.state is None:
        return None
    told = [t.verdict.estimate for t in point.answers if t.verdict.estimate is not None]
    return min(told, key=lambda e: e.error, default=None)
