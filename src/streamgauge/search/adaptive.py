"""Adaptive on a continuous range of the load: estimate, then prove both ends.

1. One overload trial at the hard end of the range; the rate at which the system drains is a first estimate. If it
   holds there, more is tried.
2. A short trial just above the estimate, because a system far beyond its limit may drain at another rate.
3. Full-length trials half a precision above and half a precision below the estimate, which grows sharper
   with every trial. What could not be decided, or contradicts the estimate, moves the ends.
"""

import math
from collections.abc import Iterator

from streamgauge.model.measurement import Estimate
from streamgauge.search.axes import Line
from streamgauge.search.history import EXTRA, Known, Step, Try
from streamgauge.search.supported import reachable, supported, why_wide

NEAR = 1.3
"""A trial at up to this many times its own estimate says how the system behaves near its limit."""
AWAY = (0.75, 1.0, 1.5, 2.5, 4.0)
"""Where an end goes, in precisions from the estimate, when nothing closer could be decided."""
STEPS = (1.0, 1.5, 2.0, 4.0, 8.0)
"""The same, in precisions from an end that contradicts the estimate."""
STRIDE = 1.25
DOUBT = 2.0
"""Standard errors of the estimate from which on a verdict on its wrong side is doubted."""
CLEAR = 0.3
"""How far, in precisions, an end must lie from the estimate to be worth a full-length trial."""
MISLED = 2.0
"""How far, in precisions, two full-length trials beyond the estimate refute it: something else is the limit."""
_SLACK = 5e-4  # rounding of a value must not make a bracket too wide


def next_step(wanted: Line, known: Known) -> Step | None:
    """The next trial, or the bracket; None where nothing can be estimated."""
    if not known.points:
        return Try(wanted.plain(wanted.hard), "estimate")
    pooled, near = pool(known)
    line = supported(wanted, pooled)
    narrow = known.holds and known.fails and line.narrow(known.holds.value, known.fails.value)
    if known.state(line.hard) or (narrow and not (pooled and _doubtful(known, pooled))):
        return _closed(wanted, line, known, pooled) if narrow else known.bracket()
    if pooled is None or _refuted(line, known, pooled.boundary):
        return None
    value = None if near else _nearer(supported(wanted, None), known, pooled.boundary)
    if value is not None:
        return Try(value, "estimate")
    value = _doubtful(known, pooled)
    if value is None:
        value = next(_candidates(line, known, pooled.boundary), None)
    if value is not None:
        return Try(value, "confirm")
    return known.bracket(_why_wide(line, known, pooled) or why_wide(wanted, line, pooled))


def _closed(wanted: Line, line: Line, known: Known, pooled: Estimate | None) -> Step:
    """The bracket that the trials support; the failing end once more where a sharper estimate could narrow it."""
    holds, fails = known.holds, known.fails
    assert holds is not None
    assert fails is not None
    if wanted.narrow(holds.value, fails.value):
        return known.bracket()
    if reachable(wanted) and len(fails.full) < known.repetitions + EXTRA:
        return Try(fails.value, "confirm")
    return known.bracket(why_wide(wanted, line, pooled))


def _doubtful(known: Known, pooled: Estimate) -> float | None:
    """An end that is asked again at full length: its trials disagree, or one put it beyond the estimate."""
    for end, side in ((known.holds, 1), (known.fails, -1)):
        if end is None:
            continue
        beyond = side * (end.value - pooled.boundary) > DOUBT * pooled.error
        disagree = len({t.verdict.holds for t in end.full}) > 1
        if (len(end.full) == 1 and beyond) or (len(end.full) == 2 and disagree):
            return end.value
    return None


def _refuted(line: Line, known: Known, boundary: float) -> bool:
    """Whether full-length trials put the boundary elsewhere, as a latency objective does that breaks before the lag."""
    for point in known.points:
        beyond = (point.value / boundary - 1) * (1 if point.state else -1)
        agree = len(point.full) > 1 and {t.verdict.holds for t in point.full} == {point.state}
        if point.state is not None and agree and beyond > MISLED * line.precision:
            return True
    return False


def _nearer(line: Line, known: Known, boundary: float) -> float | None:
    """A value just above the first estimate; further up while the system still holds there."""
    value = boundary * (1 + 2 * line.precision)
    if known.holds:
        value = max(value, known.holds.value * STRIDE)
    if line.easy < value < (known.fails.value if known.fails else line.hard):
        plain = line.plain(value)
        return plain if known.at(plain) is None else None
    return None


def pool(known: Known) -> tuple[Estimate | None, bool]:
    """All estimates in one, weighted by their precision; and whether any was taken near the boundary."""
    seen = [(t.ask.value, e) for t in known.answers if (e := t.verdict.estimate) is not None and e.boundary > 0]
    near = [e for value, e in seen if value <= NEAR * e.boundary]
    usable = near or [e for _, e in seen]
    if not usable:
        return None, False
    # an error of zero would silence all others; nothing is known better than a thousandth
    weights = [1 / max(e.error, 1e-3 * e.boundary) ** 2 for e in usable]
    total = sum(weights)
    mean = sum(w * e.boundary for w, e in zip(weights, usable, strict=True)) / total
    return Estimate(mean, total**-0.5), bool(near)


def _candidates(line: Line, known: Known, boundary: float) -> Iterator[float]:
    """Values worth a full-length trial, best first; none when both ends are as close as can be proven."""
    precision, fails, holds = line.precision, known.fails, known.holds
    reach = 1 + precision - _SLACK
    if holds and holds.value >= boundary:
        # it held where the estimate said it would not: go up in steps of the precision
        above = [holds.value * (1 + k * precision - _SLACK) for k in STEPS]
    else:
        above = [boundary * math.sqrt(1 + precision), *(boundary * (1 + k * precision) for k in AWAY)]
    # an end that fails is close enough if the other one can lie clear of the estimate
    if not (fails and fails.value / reach <= boundary * (1 - CLEAR * precision)):
        yield from _untried(line, known, above, upwards=True)
    if fails and fails.value <= boundary:
        below = [fails.value / (1 + k * precision - _SLACK) for k in STEPS]
    else:
        close = (
            fails.value / reach if fails and fails.value <= boundary * reach else boundary / math.sqrt(1 + precision)
        )
        below = [close, *(boundary / (1 + k * precision) for k in AWAY)]
    yield from _untried(line, known, below, upwards=False)


def _untried(line: Line, known: Known, values: list[float], *, upwards: bool) -> Iterator[float]:
    """The first value on this side that was not tried at full length, unless that side is proven already."""
    end = known.fails if upwards else known.holds
    for raw in values:
        value = line.plain(raw)
        proven = end is not None and (
            end.value <= value * (1 + _SLACK) if upwards else end.value >= value * (1 - _SLACK)
        )
        if proven:
            return
        point = known.at(value)
        if point is None or not (point.full or point.invalid):
            yield value
            return


def _why_wide(line: Line, known: Known, pooled: Estimate) -> str:
    error = pooled.error / pooled.boundary
    return (
        f"The limit is probably near {line.text(pooled.boundary)} (± {error * 100:.1f} %). Trials closer to it were "
        "too noisy to decide. Increase trial.limit or trial.repetitions"
        if known.undecided
        else ""
    )
