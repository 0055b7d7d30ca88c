"""From a hint at the boundary to both ends of the bracket, in full-length trials.

A warm-up has shown about where a system falls behind. The first trial is there. Then the load goes up or down until
both ends are known, by steps that begin with the precision and grow, or as far as the CPU time that an event cost
says. What lies between the ends is halved. A load that could not be decided stays in the middle: its neighbours could
not be decided either.

One trial is never the failing end: it is measured a second time before it counts, and a third time if the two disagree.
So are points that are not monotone, a failure below a load that held, and a passing end that is to be close to the
failing one: halving comes so near to the limit that one trial in two passes by chance.

The rate at which an overloaded system drains is no measure of what it holds: with micro-batches it drains faster than
it can work at the length of batch that its objectives allow.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from streamgauge.search.axes import Line
from streamgauge.search.history import Known, Point, Step, Try
from streamgauge.search.supported import supported, why_wide

_GROWTH, _ALIKE, _ALIKE_KNOWN = 2, 2, 3
"""Steps grow by this factor while trials say the same, once so many do: hints are mostly within a tenth. One more if it
is known what the cores would carry."""
_BEYOND = 0.5
"""Steps of the precision by which a load is tried beyond what the cores would carry, because it is to be the failing
end, and beyond one that could not be decided."""
_TWICE = 2
"""Full-length trials of the failing end, at least."""
_NARROWEST, _CLOSE = 0.02, 0.03
"""Bounds that lie no closer together than the first, because no estimate says where the limit is; below the second the
passing end is measured twice as well."""
_CLEARLY = 1.5
"""Steps of the precision by which a guess must differ to be followed."""
_LEAP = 1.5
"""A value is at most so many times the last one that held: CPU time is no proof."""
_LATEST = 2
"""Trials whose cost per event counts."""
_TRUSTED = 5
"""A guess that so many trials have not borne out is not followed any longer."""
_SLACK = 5e-4  # rounding of a value must not make a bracket too wide


def next_step(wanted: Line, known: Known) -> Step:
    """The next trial, or the bracket."""
    line = supported(replace(wanted, precision=max(wanted.precision, _NARROWEST)), None)
    value = _again(known.fails, *known.beyond) if known.beyond else None
    value = value or _next_value(line, known) or _again(known.fails, known.holds if line.precision < _CLOSE else None)
    if value is not None:
        return Try(value, "confirm")
    return known.bracket(_why_wide(line, known) or why_wide(wanted, line, None))


def _again(*points: Point | None) -> float | None:
    """The first of these values whose full-length trials are not enough: one, or two that disagree."""
    for point in points:
        if point is None or point.taken:
            continue
        said = [told.verdict.holds for told in point.full]
        if len(said) < _TWICE or (len(said) == _TWICE and len(set(said)) > 1):
            return point.value
    return None


def _next_value(line: Line, known: Known) -> float | None:
    holds, fails = known.holds, known.fails
    if not known.points:
        return line.plain(line.hint)
    if holds and fails:
        return _between(line, known, holds, fails)
    if fails or not holds:  # what could not be decided does not hold either, as far as is known
        return _stepped(line, known.points[::-1], -1)
    return _stepped(line, known.points, 1)


def _stepped(line: Line, points: Sequence[Point], way: int) -> float | None:
    """A step further than the last of these values; None at the end of the line.

    The first steps are the precision, because the hint is mostly good; each further one is larger, because it was not.
    If it is known what the cores would carry, a step up goes a little beyond that, and a step down goes there if it is
    clearly less. What could not be decided is close to the boundary, so the first step from there is
    half the precision; if its neighbours could not be decided either, the noise is large, and so are the steps.
    """
    last = points[-1]
    alike = sum(p.state is last.state for p in points)
    guess, clear = _carried(points), 1 + _CLEARLY * line.precision
    steps = float(_GROWTH ** max(0, alike - (_ALIKE if way < 0 or not guess else _ALIKE_KNOWN)))
    if last.state is None and alike == 1:
        steps = _BEYOND
    value = last.value * (1 + steps * line.precision - _SLACK) ** way
    if way > 0 and guess and last.state:
        value = min(max(value, guess * (1 + _BEYOND * line.precision)), last.value * _LEAP)
    elif way < 0 and 0 < guess < last.value / clear:
        value = min(value, guess)
    value = line.plain(value)
    return value if (value > last.value if way > 0 else value < last.value) else None


def _carried(points: Sequence[Point]) -> float:
    """About what the system's cores can hold, by what an event cost in the latest of these trials; 0: nobody knows.

    Programs on a virtual machine become faster for minutes, so the latest trials say most. Measured on Spark, the limit
    is 1.00 to 1.04 times what the cores carry in a trial that fails or is close to it.
    """
    latest = sorted((t for p in points for t in p.full), key=lambda t: t.trial)[-_LATEST:]
    told = [t.verdict.carries for t in latest]
    return math.exp(sum(map(math.log, told)) / len(told)) if told and min(told) > 0 else 0.0


def _between(line: Line, known: Known, holds: Point, fails: Point) -> float | None:
    """A value in the wider of the gaps beside what could not be decided; None where both are narrow enough.

    Half as wide as what could not be decided is narrow enough: the ends cannot come closer to each other than that.
    A single load that could not be decided leaves room for ends that are as close as the precision.
    """
    if len(known.undecided) == 1 and not line.narrow(holds.value, fails.value):
        closer = _beside(line, known.undecided[0].value, holds.value, fails.value)
        if closer is not None:
            return closer
    fuzzy = [p.value for p in known.undecided] or [holds.value]
    spread = 1 + (fuzzy[-1] / fuzzy[0] - 1) / 2
    gaps = [(holds.value, fuzzy[0]), (fuzzy[-1], fails.value)]
    wide = [(low, high) for low, high in gaps if not line.narrow(low, high) and high > spread * low]
    if not wide:
        return None
    low, high = max(wide, key=lambda gap: gap[1] / gap[0])
    step = 1 + line.precision - _SLACK
    guess, near, far = _carried(known.points), low * step, high / step
    if guess and near * step < far and not known.undecided and len(known.points) <= _TRUSTED:
        return line.plain(min(max(guess, near), far))
    return line.middle(low, high)


def _beside(line: Line, fuzzy: float, holds: float, fails: float) -> float | None:
    """A new end, a precision away from the other one and clear of the load between them; None: there is no room."""
    step, apart = 1 + line.precision - _SLACK, 1 + line.precision / 4
    low, high = line.plain(fails / step), line.plain(holds * step)
    if holds * (1 + _SLACK) < low < fuzzy / apart:
        return low
    return high if fuzzy * apart < high < fails / (1 + _SLACK) else None


def _why_wide(line: Line, known: Known) -> str:
    if not known.undecided:
        return ""
    shown = " and ".join(line.text(point.value) for point in known.undecided)
    return f"Trials at {shown} were too noisy to decide. Increase trial.limit or trial.repetitions"
