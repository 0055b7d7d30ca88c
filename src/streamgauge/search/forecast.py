"""Forecast: how many trials a search takes, computed by simulating it with verdicts without noise."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.trial import TrialRequest
from streamgauge.search.axes import SearchAxis

_BOUNDARIES = 13  # limits that are simulated, from "none pass" to "all pass"
_MANY_TRIALS = 50  # with more trials than this, fewer limits are simulated
_HALF = 0.5
_MAX_TRIALS = 2_000
_ESTIMATE_ERROR = 0.01  # standard error of the simulated estimates
HINT_ERROR = 1.06  # the simulated limit, as a multiple of the hint


@dataclass(frozen=True, slots=True)
class Forecast:
    """The number of trials if the verdict of each is clear, and the number of full-length ones among them.

    It is not a maximum: trials that stay undecided, contradict each other or are INVALID are made in addition.
    """

    min_trials: int
    likely_trials: int
    max_trials: int
    min_full_length: int
    likely_full_length: int
    max_full_length: int

    def times(self, starts: int) -> "Forecast":
        """The forecast of several repetitions of the search."""
        return Forecast(*(starts * getattr(self, field.name) for field in fields(self)))


def forecast(
    axes: Sequence[SearchAxis], next_request: Callable[[Sequence[TrialResult]], TrialRequest | None]
) -> Forecast:
    """Simulate the search with the limit at several places of every axis, and count its trials."""
    halfway = _simulate(axes, next_request, _HALF)
    # the number of trials on a grid grows in proportion to the limit, so three limits are enough
    shares = (
        [0.0, 1.0]
        if halfway[0] > _MANY_TRIALS
        else [p / (_BOUNDARIES - 1) for p in range(_BOUNDARIES) if 2 * p != _BOUNDARIES - 1]
    )
    trials, full = zip(halfway, *(_simulate(axes, next_request, share) for share in shares), strict=True)
    return Forecast(min(trials), halfway[0], max(trials), min(full), halfway[1], max(full))


def _simulate(
    axes: Sequence[SearchAxis], next_request: Callable[[Sequence[TrialResult]], TrialRequest | None], share: float
) -> tuple[int, int]:
    boundaries = {(axis.dimension, axis.fixed): (axis, _boundary(axis, share)) for axis in axes}
    past: list[TrialResult] = []
    while len(past) < _MAX_TRIALS and (request := next_request(past)) is not None:
        axis, boundary = boundaries[request.dimension, request.fixed]
        past.append(TrialResult(request, _clear_verdict(axis, boundary, request.value), len(past) + 1))
    return len(past), sum(t.ask.purpose in ("confirm", "measure") for t in past)


def _boundary(axis: SearchAxis, share: float) -> float:
    """The limit if this share of the axis passes. With a hint, the limit for one half is near the hint."""
    if axis.hint and share == _HALF:
        return axis.hint * HINT_ERROR
    if axis.values:
        count = round(share * len(axis.values))
        if 0 < count < len(axis.values):
            return _between(axis.values[count - 1], axis.values[count])
        return axis.hard if count else _below_easiest(axis)
    low = min(axis.easy, axis.hard)
    if low > 0:
        return _below_easiest(axis) if share == 0 else axis.easy * (axis.hard / axis.easy) ** share
    return _below_easiest(axis) if share == 0 else axis.easy + (axis.hard - axis.easy) * share


def _between(easier: float, harder: float) -> float:
    return math.sqrt(easier * harder) if min(easier, harder) > 0 else (easier + harder) / 2


def _below_easiest(axis: SearchAxis) -> float:
    """A value that is easier than the easiest of the axis."""
    return axis.easy * (0.9 if axis.upwards else 1.1) - (0 if axis.easy else 1)


def _clear_verdict(axis: SearchAxis, boundary: float, value: float) -> Verdict:
    holds = not axis.harder(value, boundary)
    estimate = None if holds else _estimate(axis, boundary, value)
    kind = VerdictKind.SUSTAINED if holds else VerdictKind.OVERLOADED
    return Verdict(kind, (), estimate=estimate, carries=boundary if axis.hint else 0.0)


def _estimate(axis: SearchAxis, boundary: float, value: float) -> Estimate | None:
    """The estimate of an overloaded trial: of the limit, or of the load that its number of instances supports."""
    if axis.dimension == "load":
        return Estimate(boundary, _ESTIMATE_ERROR * abs(boundary))
    if not axis.may_peak or not axis.fixed:
        return None
    supported = axis.fixed[0][1] * value / boundary
    return Estimate(supported, _ESTIMATE_ERROR * supported)
