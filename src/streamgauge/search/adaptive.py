"""The adaptive strategy on a range of loads: estimate the limit, then confirm a bound on both sides of it.

1. One trial at the hard end of the range overloads the system. Its processing rate is a first estimate of the limit.
2. A short trial just above the estimate follows, because a system far beyond its limit may process at another rate.
3. Full-length trials follow half a precision above and half a precision below the estimate, which becomes more precise
   with every trial. Loads that could not be decided, or contradict the estimate, move the bounds.
"""

import math
from collections.abc import Iterator

from streamgauge.model.measurement import Estimate
from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import EXTRA_REPEATS, AxisHistory, NextTrial, Step, pool
from streamgauge.search.supported import is_reachable, supported, why_wide

NEAR_FACTOR = 1.3
"""A trial at up to this multiple of the estimate of the trial itself counts as near the limit."""
DISTANCES = (0.75, 1.0, 1.5, 2.5, 4.0)
"""Distances of a bound from the estimate, in precisions, for when nothing closer could be decided."""
CONTRADICTED_STEPS = (1.0, 1.5, 2.0, 4.0, 8.0)
"""Distances from a bound that contradicts the estimate, in precisions."""
STEP_UP = 1.25
DOUBT_ERRORS = 2.0
"""A verdict that contradicts the estimate by more than this many of its standard errors is repeated."""
CLEAR_DISTANCE = 0.3
"""Distance from the estimate, in precisions, at which a load is worth a full-length trial."""
REFUTED_DISTANCE = 2.0
"""If two full-length trials contradict the estimate by more than this many precisions, something else is the limit."""
_MIN_ERROR = 1e-3
"""No estimate counts as more precise than this share of it."""
_ROUNDING = 5e-4  # rounding of a value must not make the bounds too wide


def next_step(wanted: SearchAxis, history: AxisHistory) -> Step | None:
    """The next trial, or the bounds; None if the limit cannot be estimated."""
    if not history.entries:
        return NextTrial(wanted.rounded_within(wanted.hard), "estimate")
    pooled, near = pool_near(history)
    axis = supported(wanted, pooled)
    narrow = history.holds and history.fails and axis.is_narrow(history.holds.value, history.fails.value)
    if history.state(axis.hard) or (narrow and not (pooled and _doubtful(history, pooled))):
        return _final_bounds(wanted, axis, history, pooled) if narrow else history.bounds()
    if pooled is None or _refuted(axis, history, pooled.boundary):
        return None
    value = None if near else _second_estimate(supported(wanted, None), history, pooled.boundary)
    if value is not None:
        return NextTrial(value, "estimate")
    value = _doubtful(history, pooled)
    if value is None:
        value = next(_candidates(axis, history, pooled.boundary), None)
    if value is not None:
        return NextTrial(value, "confirm")
    return history.bounds(_why_wide(axis, history, pooled) or why_wide(wanted, axis, pooled))


def _final_bounds(wanted: SearchAxis, axis: SearchAxis, history: AxisHistory, pooled: Estimate | None) -> Step:
    """The bounds that the trials support, or a repetition of the failing one if a better estimate could narrow them."""
    holds, fails = history.holds, history.fails
    assert holds is not None
    assert fails is not None
    if wanted.is_narrow(holds.value, fails.value):
        return history.bounds()
    if is_reachable(wanted) and len(fails.full) < history.repetitions + EXTRA_REPEATS:
        return NextTrial(fails.value, "confirm")
    return history.bounds(why_wide(wanted, axis, pooled))


def _doubtful(history: AxisHistory, pooled: Estimate) -> float | None:
    """A bound to repeat at full length: its trials disagree, or its only trial contradicts the estimate."""
    for bound, side in ((history.holds, 1), (history.fails, -1)):
        if bound is None:
            continue
        beyond = side * (bound.value - pooled.boundary) > DOUBT_ERRORS * pooled.error
        disagree = len({t.verdict.holds for t in bound.full}) > 1
        if (len(bound.full) == 1 and beyond) or (len(bound.full) == 2 and disagree):
            return bound.value
    return None


def _refuted(axis: SearchAxis, history: AxisHistory, boundary: float) -> bool:
    """Whether full-length trials contradict the estimate, for example because a latency objective fails first."""
    for entry in history.entries:
        beyond = (entry.value / boundary - 1) * (1 if entry.state else -1)
        agree = len(entry.full) > 1 and {t.verdict.holds for t in entry.full} == {entry.state}
        if entry.state is not None and agree and beyond > REFUTED_DISTANCE * axis.precision:
            return True
    return False


def _second_estimate(axis: SearchAxis, history: AxisHistory, boundary: float) -> float | None:
    """A load just above the first estimate; a higher one if the system passes there."""
    value = boundary * (1 + 2 * axis.precision)
    if history.holds:
        value = max(value, history.holds.value * STEP_UP)
    if axis.easy < value < (history.fails.value if history.fails else axis.hard):
        rounded = axis.rounded_within(value)
        return rounded if history.at(rounded) is None else None
    return None


def pool_near(history: AxisHistory) -> tuple[Estimate | None, bool]:
    """All estimates as one, only those near the limit if there are any; and whether there are any."""
    estimates = [(t.ask.value, e) for t in history.results if (e := t.verdict.estimate) is not None and e.boundary > 0]
    near = [e for value, e in estimates if value <= NEAR_FACTOR * e.boundary]
    return pool(near or [e for _, e in estimates], _MIN_ERROR), bool(near)


def _candidates(axis: SearchAxis, history: AxisHistory, boundary: float) -> Iterator[float]:
    """Loads worth a full-length trial, best first; none if both bounds are as close as can be confirmed."""
    precision, fails, holds = axis.precision, history.fails, history.holds
    reach = 1 + precision - _ROUNDING
    if holds and holds.value >= boundary:
        # it passed although the estimate is lower: go up in steps of the precision
        above = [holds.value * (1 + k * precision - _ROUNDING) for k in CONTRADICTED_STEPS]
    else:
        above = [boundary * math.sqrt(1 + precision), *(boundary * (1 + k * precision) for k in DISTANCES)]
    # a failing bound is close enough if the passing one can be at a distance from the estimate
    if not (fails and fails.value / reach <= boundary * (1 - CLEAR_DISTANCE * precision)):
        yield from _untried(axis, history, above, upwards=True)
    if fails and fails.value <= boundary:
        below = [fails.value / (1 + k * precision - _ROUNDING) for k in CONTRADICTED_STEPS]
    else:
        close = (
            fails.value / reach if fails and fails.value <= boundary * reach else boundary / math.sqrt(1 + precision)
        )
        below = [close, *(boundary / (1 + k * precision) for k in DISTANCES)]
    yield from _untried(axis, history, below, upwards=False)


def _untried(axis: SearchAxis, history: AxisHistory, values: list[float], *, upwards: bool) -> Iterator[float]:
    """The first load on this side without a full-length trial, unless the bound on this side is confirmed."""
    bound = history.fails if upwards else history.holds
    for raw in values:
        value = axis.rounded_within(raw)
        is_confirmed = bound is not None and (
            bound.value <= value * (1 + _ROUNDING) if upwards else bound.value >= value * (1 - _ROUNDING)
        )
        if is_confirmed:
            return
        entry = history.at(value)
        if entry is None or not (entry.full or entry.invalid):
            yield value
            return


def _why_wide(axis: SearchAxis, history: AxisHistory, pooled: Estimate) -> str:
    error = pooled.error / pooled.boundary
    return (
        f"The limit is probably near {axis.text(pooled.boundary)} (± {error * 100:.1f} %). Trials closer to it were "
        "too noisy to decide. Increase trial.limit or trial.repetitions"
        if history.undecided
        else ""
    )
