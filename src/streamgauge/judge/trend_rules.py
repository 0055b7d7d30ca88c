"""Rules that decide a trend: the sequential rule for short trials, and the rule for full-length ones.

Both compare the mean increment (stats/trend.py) with the threshold, in units of its standard error.

*Short trials* end as soon as the trend is clear. A few seconds show too little of their noise. So the rule assumes at
least ``NOISE`` per second with the lag-1 correlation ``MEMORY``, estimates both, and uses the larger error. A queue
that stays flat is decided in another way: a random walk with that noise and an overload of ``OVERLOAD`` would have left
such a narrow corridor. At loads closer to the limit, the outcome of a short trial only guides the search, and
full-length trials decide. ``make bench`` prints the error rates: at most 1 % wrong at loads 3 % or more from the limit.

*Full-length trials* confirm. They have no margin, and are extended until the trend is clear or ``trial.limit`` is
reached. The objective is missed if the interval is above the threshold and the second half grows by more than the
threshold too, or if the second half grows clearly. It is met if the level returned to its floor often enough, if the
interval is below the threshold, if the level is steady, or if it keeps returning to its mean or has stabilized. Each
of K checks has the confidence 1 − 2.5 % / K^⅔. Only the rule on returns to the floor assumes noise, at least ``NOISE``
with ``MEMORY``, because a level at its floor shows none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.model.measurement import Floor, Interval, ObjectiveState
from streamgauge.stats.renewal import returns_needed
from streamgauge.stats.trend import quantile

NOISE = 0.05
"""Assumed standard deviation of the rate per second, as a share of the rate."""
MEMORY = 0.5
"""Assumed lag-1 correlation of the noise."""
OVERLOAD = 0.03
"""Overload, as a share of the load, that a flat queue must refute."""
MARGIN = 0.02
"""Growth above the threshold, as a share of the load, with which a short trial still meets the objective."""
REFUTED_GROWTH = 0.025
"""Growth above the threshold, as a share of the load, that returns to the floor must refute."""
MAX_FALSE_RETURNS = 0.01
"""Share of systems with that growth which return to their floor as often as one without growth."""
BROKEN_SECONDS = 10
HOLDS_SECONDS = 20
"""Judged seconds after which a short trial may miss or meet the objective."""
CLEAR_BROKEN = 1.8
CLEAR_HOLDS = 2.8
"""Standard errors between the trend and the threshold with which a short trial misses or meets the objective."""
FULL_CONFIDENCE = 0.975
"""One-sided confidence of a full-length trial over all its checks: the 95 % interval excludes the threshold."""
EARLY_CONFIDENCE = 0.995
"""One-sided confidence with which a full-length trial fails at half and at three quarters of its length."""
LATER_CHECKS = 1.15
"""A full-length trial that is not decided is checked again each time it has grown by this factor."""
_CHECK_EXPONENT = 2 / 3
CLEAR_LEVEL = 1.8
"""Level errors between the trend and the threshold with which a full-length trial meets the objective."""
CLEAR_REVERSION = -3.5
"""A level with a smaller statistic returns to its mean and has no trend; `make bench` prints the error rate."""
RESOLUTION = 0.005
"""No trial resolves less than this share of the load, because the rest of a warm-up or a pause is as large."""
RUNAWAY = 0.25
"""Growth of lag, as a share of the load, that counts as growth without bound."""

_SPREAD = NOISE**2 * (1 + MEMORY) / (1 - MEMORY)
"""Variance of lag per second by the assumed noise, in (seconds of load)²."""
ASSUMED_ERROR = math.sqrt(_SPREAD)
"""Standard error of a rate after one second of the assumed noise, as a share of the rate."""
_SPREAD_FACTOR = 3.5
_CORRIDOR_EXPONENT = 18.0
"""How improbable, in e-folds, the corridor must be for an overloaded system. The number was found by simulation,
because the exponent in ``flat_corridor`` is that of one check, and a trial is checked every second."""


@dataclass(frozen=True, slots=True)
class TrendEvidence:
    """The measurements on one trend; ``corridor`` is the largest minus the smallest level."""

    trend: Interval | None
    threshold: float
    scale: float
    """The base of noise and margins: the load for lag, one for latency."""
    seconds: float
    corridor: float
    level_error: float = math.inf
    """Standard error of the growth if the level is steady, see ``level_error``."""
    reversion: float = 0.0
    """How clearly the level returns to its mean, see ``stats.trend.reversion``."""
    runaway: bool = False
    """Whether lag grows without bound: there are few samples, but no noise explains the growth."""
    late: float | None = None
    """The trend of the second half only; None: unknown."""
    recent: Interval | None = None
    """The same with its error, see ``stats.trend.recent``; None: no micro-batches, or too few samples."""
    floor: Floor | None = None
    """How often the level returned to its floor; None: it has none."""

    @property
    def stops_growing(self) -> bool:
        """Whether the level grows, but no longer in its second half.

        Micro-batches whose cost is a + b·load grow until they are large enough, over tens of seconds.
        """
        return self.late is not None and self.late <= self.threshold


def is_runaway(growth: float, span: float) -> bool:
    """Whether lag that grew by this share of the load for this many seconds grows without bound.

    An engine with micro-batches reads all waiting events. Far beyond its limit, each batch takes many times as long as
    the one before, and a trial has only two or three of them.
    """
    return span >= BROKEN_SECONDS and growth >= RUNAWAY


def classify_short(evidence: TrendEvidence) -> ObjectiveState:
    """The state of an objective after the seconds of a short trial so far."""
    trend, threshold, seconds = evidence.trend, evidence.threshold, evidence.seconds
    if evidence.runaway:
        return "broken"
    if trend is None:
        return "unclear"
    if seconds < BROKEN_SECONDS or evidence.scale <= 0:
        return "unclear"
    error = max(trend.error, math.sqrt(_SPREAD / seconds) * evidence.scale)
    if trend.mean - threshold >= CLEAR_BROKEN * error and not evidence.stops_growing:
        return "broken"
    if seconds < HOLDS_SECONDS or trend.mean > threshold:
        return "unclear"
    apart = threshold + MARGIN * evidence.scale - trend.mean >= CLEAR_HOLDS * error
    return "holds" if apart or evidence.corridor <= flat_corridor(seconds) * evidence.scale else "unclear"


def flat_corridor(seconds: float) -> float:
    """Range of lag, in seconds of load, that an overloaded system would have left in this time.

    A random walk with variance s² per second, reflected at zero, stays below r for t seconds with probability
    ~ exp(−π² s² t / 8 r²). A drift d upwards reduces that by the factor exp(−d² t / 2 s²).
    """
    exponent = max(_CORRIDOR_EXPONENT - OVERLOAD**2 * seconds / (2 * _SPREAD), 0.5)
    return math.sqrt(math.pi**2 * _SPREAD * seconds / (8 * exponent))


def level_error(spread: float, span: float) -> float:
    """Error of the growth over a span, computed from the standard deviation of the level around its trend.

    After a pause, lag rises and falls again within seconds, so its increments are noisy but cancel. If the level is
    steady, the error is that of its first and last value, √2·spread/span. If the level is a random walk, its spread
    around a line is about 0.4 of the spread of the walk; ``_SPREAD_FACTOR`` covers that too.
    """
    return _SPREAD_FACTOR * math.sqrt(2) * spread / span if span > 0 else math.inf


def returned_to_floor(evidence: TrendEvidence, share: float = MAX_FALSE_RETURNS) -> bool:
    """Whether the level returned to its floor more often than a growing one does in all but ``share`` of cases.

    The growth is ``REFUTED_GROWTH`` above the threshold. The noise is that of the whole trial, at least the
    assumed one, because a level at its floor shows none.
    """
    floor = evidence.floor
    if floor is None or not floor.visits or not floor.before or evidence.scale <= 0:
        return False
    needed = returns_needed(
        evidence.threshold / evidence.scale + REFUTED_GROWTH,
        max(floor.noise, ASSUMED_ERROR),
        time=floor.before,
        step=floor.step,
        slack=floor.slack,
        share=share,
    )
    return floor.visits >= needed


def still_grows(evidence: TrendEvidence, confidence: float, resolution: float) -> bool:
    """Whether the level grows clearly in its second half.

    The micro-batches of an overloaded system grow, and longer batches process more events per second. So the growth of
    lag falls over the trial, which widens the interval of the whole trial.
    """
    if evidence.recent is None:
        return False
    excess = evidence.recent.mean - evidence.threshold
    return excess >= max(quantile(evidence.recent.freedom, confidence) * evidence.recent.error, resolution)


def has_stabilized(evidence: TrendEvidence, confidence: float, resolution: float) -> bool:
    """Whether the level grows no longer: its second half clearly grows by less than the threshold, or it returns to its
    mean.
    """
    if evidence.recent is None or evidence.threshold - evidence.recent.mean < resolution:
        return False
    apart = quantile(evidence.recent.freedom, confidence) * evidence.recent.error
    return evidence.reversion <= CLEAR_REVERSION or evidence.threshold - evidence.recent.mean >= apart


def classify_full(evidence: TrendEvidence, confidence: float = FULL_CONFIDENCE) -> ObjectiveState:
    """The state of an objective in a full-length trial; ``confidence`` is the one-sided confidence of this check."""
    if evidence.runaway:
        return "broken"
    if evidence.trend is None:
        return "unclear"
    excess = evidence.trend.mean - evidence.threshold
    apart = quantile(evidence.trend.freedom, confidence) * evidence.trend.error
    resolution = min(RESOLUTION * evidence.scale, evidence.threshold / 2) if evidence.threshold > 0 else 0.0
    clearly = excess >= max(apart, resolution) and not evidence.stops_growing
    if excess > 0 and (clearly or still_grows(evidence, confidence, resolution)):
        return "broken"
    if has_stabilized(evidence, confidence, resolution) or (excess <= 0 and returned_to_floor(evidence)):
        return "holds"
    if excess > 0:
        return "unclear"
    margin = 0.0 if evidence.reversion <= CLEAR_REVERSION else min(apart, CLEAR_LEVEL * evidence.level_error)
    return "holds" if -excess >= max(margin, resolution) else "unclear"


TrendRule = Callable[[TrendEvidence], ObjectiveState]


def max_checks(duration: float, limit: float) -> int:
    """The largest number of checks of a full-length trial: at its duration, and each time it has grown by 15 %."""
    return 1 + max(math.ceil(math.log(limit / duration) / math.log(LATER_CHECKS) - 1e-9), 0) if duration > 0 else 1


def confidence_of_each(count: int) -> float:
    """One-sided confidence of each of several checks, so that all of them together are wrong as often as one would be.

    The checks of one trial are similar, so their error rate is divided by less than their number. The exponent was
    found by simulation; ``make bench`` prints the resulting error rates.
    """
    return 1 - (1 - FULL_CONFIDENCE) / math.pow(count, _CHECK_EXPONENT)


def trend_rule_for(may_end_early: bool, duration: float, limit: float = 0.0) -> TrendRule:
    """The rule for a trial of this duration that may be extended to a limit, in seconds.

    A trial that may end early is decided by the rule for full-length trials once it has this length.
    """
    confidence = confidence_of_each(max_checks(duration, max(limit, duration)))

    def full(evidence: TrendEvidence) -> ObjectiveState:
        return classify_full(evidence, confidence)

    def either(evidence: TrendEvidence) -> ObjectiveState:
        state = classify_short(evidence)
        return full(evidence) if state == "unclear" and evidence.seconds >= duration else state

    return either if may_end_early else full
