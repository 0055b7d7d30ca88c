"""Forecast: how many trials a search takes, by playing it against answers without noise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from streamgauge.model.finding import Told
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.trial import Ask
from streamgauge.search.axes import Line

_PLACES = 13  # boundaries that are tried, from "none holds" to "all hold"
_LONG = 50  # trials from which on fewer boundaries are tried
_HALF = 0.5
_MOST_ASKS = 2_000
_ERROR = 0.01  # standard error of the imagined estimates
_OFF = 1.06  # by how much a hint is wrong, as a rule


@dataclass(frozen=True, slots=True)
class Forecast:
    """Number of trials if every one is clear, and of full-length ones among them. It is no bound: trials that stay
    undecided, contradict each other or are INVALID come on top."""

    least: int
    likely: int
    most: int
    full_least: int
    full_likely: int
    full_most: int

    def times(self, starts: int) -> "Forecast":
        """The same search so many times."""
        return Forecast(*(starts * getattr(self, field.name) for field in fields(self)))


def forecast(lines: Sequence[Line], ask: Callable[[Sequence[Told]], Ask | None]) -> Forecast:
    """Play the search with the boundary at several places of every line, and count."""
    halfway = _play(lines, ask, _HALF)
    # A search of a grid takes as many trials as values, in proportion: its ends and its middle tell all.
    shares = [0.0, 1.0] if halfway[0] > _LONG else [p / (_PLACES - 1) for p in range(_PLACES) if 2 * p != _PLACES - 1]
    trials, full = zip(halfway, *(_play(lines, ask, share) for share in shares), strict=True)
    return Forecast(min(trials), halfway[0], max(trials), min(full), halfway[1], max(full))


def _play(lines: Sequence[Line], ask: Callable[[Sequence[Told]], Ask | None], share: float) -> tuple[int, int]:
    boundaries = {(line.dimension, line.fixed): (line, _boundary(line, share)) for line in lines}
    past: list[Told] = []
    while len(past) < _MOST_ASKS and (question := ask(past)) is not None:
        line, boundary = boundaries[question.dimension, question.fixed]
        past.append(Told(question, _imagine(line, boundary, question.value), len(past) + 1))
    return len(past), sum(t.ask.purpose in ("confirm", "measure") for t in past)


def _boundary(line: Line, share: float) -> float:
    """The hardest value that holds when this share of the line does; half of it does where something hints."""
    if line.hint and share == _HALF:
        return line.hint * _OFF
    if line.values:
        count = round(share * len(line.values))
        if 0 < count < len(line.values):
            return _between(line.values[count - 1], line.values[count])
        return line.hard if count else _beyond(line)
    low = min(line.easy, line.hard)
    if low > 0:
        return _beyond(line) if share == 0 else line.easy * (line.hard / line.easy) ** share
    return _beyond(line) if share == 0 else line.easy + (line.hard - line.easy) * share


def _between(easier: float, harder: float) -> float:
    return math.sqrt(easier * harder) if min(easier, harder) > 0 else (easier + harder) / 2


def _beyond(line: Line) -> float:
    """A value easier than the easiest."""
    return line.easy * (0.9 if line.upwards else 1.1) - (0 if line.easy else 1)


def _imagine(line: Line, boundary: float, value: float) -> Verdict:
    holds = not line.harder(value, boundary)
    estimate = None if holds else _estimate(line, boundary, value)
    kind = VerdictKind.SUSTAINED if holds else VerdictKind.OVERLOADED
    return Verdict(kind, (), estimate=estimate, carries=boundary if line.hint else 0.0)


def _estimate(line: Line, boundary: float, value: float) -> Estimate | None:
    """What an overloaded trial sees: the boundary of the load; of instances, what so many of them carry."""
    if line.dimension == "load":
        return Estimate(boundary, _ERROR * abs(boundary))
    if not line.may_peak or not line.fixed:
        return None
    carried = line.fixed[0][1] * value / boundary
    return Estimate(carried, _ERROR * carried)
