"""From a hint at the boundary to both ends of the bracket, in full-length trials.

A warm-up has shown about where a system falls behind. The first trial is there. Then the load goes up or down in
steps, beginning with the precision, until both ends are known, and what lies between them is halved. A load that
could not be decided stays in the middle: its neighbours could not be decided either.

The rate at which an overloaded system drains is no measure of what it holds: with micro-batches it drains faster
than it can work at the length of batch that its objectives allow. But nothing above that rate needs to be tried.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from streamgauge.search.known import Known, Point
from streamgauge.search.line import Line
from streamgauge.search.step import Step, Try

_SLACK = 5e-4  # rounding of a value must not make a bracket too wide


def next_step(line: Line, known: Known) -> Step:
    """The next trial, or the bracket."""
    value = _next_value(line, known)
    return known.bracket(_why_wide(line, known)) if value is None else Try(value, "confirm")


def _next_value(line: Line, known: Known) -> float | None:
    holds, fails = known.holds, known.fails
    if not known.points:
        return line.plain(line.hint)
    if holds and fails:
        return _between(line, holds, known.undecided, fails)
    if fails or not holds:  # what could not be decided does not hold either, as far as is known
        return _stepped(line, known.points[::-1], -1)
    return _stepped(line, known.points, 1)


def _stepped(line: Line, points: Sequence[Point], way: int) -> float | None:
    """A step further than the last of these values; None at the end of the line.

    Two steps of the precision, for the hint is mostly good; then they grow, for it was not. What could not be
    decided is close to the boundary: one step of the precision more.
    """
    last = points[-1]
    alike = sum(p.state is last.state for p in points) if last.state is not None else 0
    step = 1 + line.precision * 3 ** max(0, alike - 2) - _SLACK
    value = line.plain(min(last.value * step**way, _drained(line, last) if way < 0 else math.inf))
    return value if (value > last.value if way > 0 else value < last.value) else None


def _drained(line: Line, point: Point) -> float:
    """A step below what a system that failed here got done; no limit where nobody knows that."""
    drains = (t.verdict.estimate.boundary for t in point.deciding if point.state is False and t.verdict.estimate)
    return max(drains, default=math.inf) * (1 - line.precision)


def _between(line: Line, holds: Point, undecided: Sequence[Point], fails: Point) -> float | None:
    """The middle of the widest gap that is still too wide; None where there is none."""
    values = [holds.value, *(p.value for p in undecided), fails.value]
    wide = [(low, high) for low, high in pairwise(values) if not line.narrow(low, high)]
    return line.middle(*max(wide, key=lambda gap: gap[1] / gap[0])) if wide else None


def _why_wide(line: Line, known: Known) -> str:
    if not known.undecided:
        return ""
    shown = " and ".join(line.text(point.value) for point in known.undecided)
    return f"the noise forbids an answer at {shown} in the time allowed; raise trial.limit or trial.repetitions"
