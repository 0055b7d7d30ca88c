"""The adaptive strategy with a hint: from an estimate by the warm-up to both bounds, in full-length trials.

The first trial is at the hint. Then the load is raised or lowered until both bounds are known. The steps begin with the
precision and grow, or follow the CPU time per event. After that, the range between the bounds is halved. A load that
could not be decided stays in the middle, because its neighbours could not be decided either.

One trial is not enough for the failing bound. It is repeated before it counts, and again if the two disagree. The same
applies to a failure below a load that passed, and to a passing bound that must be close to the failing one: halving
comes so close to the limit that every second trial passes by chance.

The processing rate of an overloaded system is not used. With micro-batches, an overloaded system processes more events
per second than with batches that are short enough for its objectives.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import AxisHistory, NextTrial, Step, ValueHistory
from streamgauge.search.supported import supported, why_wide

_STEP_GROWTH, _SAME_VERDICTS, _SAME_VERDICTS_WITH_ESTIMATE = 2, 2, 3
"""Steps grow by this factor for each further equal verdict after so many, because most hints are within 10 % of the
limit. With an estimate by CPU time, they grow one trial later."""
_SHORT_STEP = 0.5
"""Distance, in precisions, of a load above the estimate by CPU time, so that it fails; also of a load beyond one that
could not be decided."""
_MIN_TRIALS = 2
"""The minimum number of full-length trials of the failing bound."""
_MIN_PRECISION, _CLOSE_PRECISION = 0.02, 0.03
"""Bounds are not closer than the first value, because there is no estimate of the limit. Below the second value, the
passing bound is measured twice too."""
_MIN_DIFFERENCE = 1.5
"""Distance, in precisions, at which an estimate by CPU time is clearly less than a load."""
_MAX_STEP = 1.5
"""The largest ratio of a load to the last passing one. CPU time only estimates the limit."""
_LATEST_TRIALS = 2
"""The number of latest trials whose CPU time per event is used."""
_MAX_VALUES_BY_ESTIMATE = 5
"""After trials at so many values, the estimate by CPU time is not used any longer."""
_ROUNDING = 5e-4  # rounding of a value must not make the bounds too wide


def next_step(wanted: SearchAxis, history: AxisHistory) -> Step:
    """The next trial, or the bounds."""
    axis = supported(replace(wanted, precision=max(wanted.precision, _MIN_PRECISION)), None)
    value = to_repeat(history) if history.non_monotone else None
    value = (
        value
        or _next_value(axis, history)
        or to_repeat(history)
        or _repeat(history.holds if axis.precision < _CLOSE_PRECISION else None)
    )
    if value is not None:
        return NextTrial(value, "confirm")
    return history.bounds(_why_wide(axis, history) or why_wide(wanted, axis, None))


def to_repeat(history: AxisHistory) -> float | None:
    """The failing bound, or a value that is not monotone, if it needs another full-length trial before it counts.

    This applies to every strategy: the hint is closer to the limit than the first loads of a search without one, so
    more trials are close to it, and one of them alone would decide the failing bound.
    """
    return _repeat(history.fails, *history.non_monotone)


def _repeat(*entries: ValueHistory | None) -> float | None:
    """The first of these values that needs another full-length trial: it has one, or two that disagree."""
    for entry in entries:
        if entry is None or entry.inherited:
            continue
        verdicts = [result.verdict.holds for result in entry.full]
        if len(verdicts) < _MIN_TRIALS or (len(verdicts) == _MIN_TRIALS and len(set(verdicts)) > 1):
            return entry.value
    return None


def _next_value(axis: SearchAxis, history: AxisHistory) -> float | None:
    holds, fails = history.holds, history.fails
    if not history.entries:
        return axis.rounded_within(axis.hint)
    if holds and fails:
        return _between(axis, history, holds, fails)
    if fails or not holds:  # a value that could not be decided counts as failing
        return _step_outwards(axis, history.entries[::-1], -1)
    return _step_outwards(axis, history.entries, 1)


def _step_outwards(axis: SearchAxis, entries: Sequence[ValueHistory], direction: int) -> float | None:
    """The value one step beyond the last of these; None at the end of the axis.

    The first steps are one precision, because most hints are good. Later steps are larger, because this hint was not.
    With an estimate by CPU time, a step up goes a little beyond the estimate, and a step down goes to the estimate if
    it is clearly less. A value that could not be decided is close to the limit, so the first step from it is half a
    precision. If its neighbours could not be decided either, the noise is large, and so are the steps.
    """
    last = entries[-1]
    same = sum(p.state is last.state for p in entries)
    estimate, clear = _cpu_estimate(entries), 1 + _MIN_DIFFERENCE * axis.precision
    first = _SAME_VERDICTS if direction < 0 or not estimate else _SAME_VERDICTS_WITH_ESTIMATE
    steps = float(_STEP_GROWTH ** max(0, same - first))
    if last.state is None and same == 1:
        steps = _SHORT_STEP
    value = last.value * (1 + steps * axis.precision - _ROUNDING) ** direction
    if direction > 0 and estimate and last.state:
        value = min(max(value, estimate * (1 + _SHORT_STEP * axis.precision)), last.value * _MAX_STEP)
    elif direction < 0 and 0 < estimate < last.value / clear:
        value = min(value, estimate)
    value = axis.rounded_within(value)
    return value if (value > last.value if direction > 0 else value < last.value) else None


def _cpu_estimate(entries: Sequence[ValueHistory]) -> float:
    """An estimate of the limit by the CPU time per event in the latest of these trials; 0: unknown.

    Programs on a virtual machine become faster for minutes, so only the latest trials count. The measured limit of
    Spark is 1.00 to 1.04 times the estimate, in trials that fail or are close to the limit.
    """
    latest = sorted((t for p in entries for t in p.full), key=lambda t: t.trial)[-_LATEST_TRIALS:]
    estimates = [t.verdict.carries for t in latest]
    if not estimates or min(estimates) <= 0:
        return 0.0
    return math.exp(sum(map(math.log, estimates)) / len(estimates))


def _between(axis: SearchAxis, history: AxisHistory, holds: ValueHistory, fails: ValueHistory) -> float | None:
    """A value in the wider gap between a bound and the undecided values; None if both gaps are narrow enough.

    A gap is narrow enough if it is half as wide as the range of undecided values, because the bounds cannot be closer
    to each other than that range. With a single undecided value, the bounds can be as close as the precision.
    """
    if len(history.undecided) == 1 and not axis.is_narrow(holds.value, fails.value):
        closer = _beside_undecided(axis, history.undecided[0].value, holds.value, fails.value)
        if closer is not None:
            return closer
    undecided = [p.value for p in history.undecided] or [holds.value]
    spread = 1 + (undecided[-1] / undecided[0] - 1) / 2
    gaps = [(holds.value, undecided[0]), (undecided[-1], fails.value)]
    wide = [(low, high) for low, high in gaps if not axis.is_narrow(low, high) and high > spread * low]
    if not wide:
        return None
    low, high = max(wide, key=lambda gap: gap[1] / gap[0])
    step = 1 + axis.precision - _ROUNDING
    estimate, near, far = _cpu_estimate(history.entries), low * step, high / step
    if estimate and near * step < far and not history.undecided and len(history.entries) <= _MAX_VALUES_BY_ESTIMATE:
        return axis.rounded_within(min(max(estimate, near), far))
    return axis.middle(low, high)


def _beside_undecided(axis: SearchAxis, undecided: float, holds: float, fails: float) -> float | None:
    """A new bound at one precision from the other, and at a distance from the undecided load between; None: no room."""
    step, apart = 1 + axis.precision - _ROUNDING, 1 + axis.precision / 4
    low, high = axis.rounded_within(fails / step), axis.rounded_within(holds * step)
    if holds * (1 + _ROUNDING) < low < undecided / apart:
        return low
    return high if undecided * apart < high < fails / (1 + _ROUNDING) else None


def _why_wide(axis: SearchAxis, history: AxisHistory) -> str:
    if not history.undecided:
        return ""
    loads = " and ".join(axis.text(entry.value) for entry in history.undecided)
    return f"Trials at {loads} were too noisy to decide. Increase trial.limit or trial.repetitions"
