"""When a trend is decided: the sequential rule for short trials, and the rule for full-length ones.

Both compare the mean increment (stats/trend.py) with the threshold, in units of its standard error.

*Short trials* end as soon as the trend is clear. A few seconds cannot tell their own noise, so the rule
assumes at least ``NOISE`` per second with lag-1 correlation ``MEMORY``, estimates both, and takes the
larger error. A queue that stays flat is proof of another kind: a walk with that noise, pushed up by an
overload of ``OVERLOAD``, would have left so narrow a corridor. Loads closer to the boundary than that are
left to full-length trials: there a short one may lean either way, and is only a hint to the search.
``make bench`` prints the error rates: at most 1 % wrong from 3 % away from the boundary on.

*Full-length trials* prove. They take no margin, and are extended until the trend is clear or the limit is reached.
It is broken if the interval is above the threshold and the second half alone grows by more than that too, or if the
second half alone grows clearly. It holds if the level returned to its floor often enough, if the interval is below the
threshold, if the level is steady, or if it keeps returning to where it was or has come to rest. Each of K looks has the
confidence 1 − 2.5 % / K^⅔. Only the rule on returns to the floor assumes noise, at least ``NOISE`` with ``MEMORY``: a
level at its floor shows none.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from streamgauge.model.measurement import Floor, Holding, Interval
from streamgauge.stats.renewal import returns_needed
from streamgauge.stats.trend import quantile

NOISE = 0.05
MEMORY = 0.5
OVERLOAD = 0.03
MARGIN = 0.02
BEYOND = 0.025
"""Growth above the threshold, as a share of the load, that returns to the floor must refute."""
MISTAKEN = 0.01
"""Share of systems that grow so much and return to their floor as often as one that holds."""
BROKEN_SECONDS = 10
HOLDS_SECONDS = 20
CLEAR_BROKEN = 1.8
CLEAR_HOLDS = 2.8
CLEAR_FULL = 0.975
"""One-sided confidence of a full-length trial, over all looks at it: the 95 % interval is clear of the threshold."""
CLEAR_EARLY = 0.995
"""One-sided confidence with which a full-length trial is broken at half and at three quarters of its length."""
LATER_LOOKS = 1.15
"""A full-length trial that is not clear is looked at again each time it has grown by this factor."""
_ALIKE = 2 / 3
CLEAR_LEVEL = 1.8
RETURNS = -3.5
"""A level that returns so clearly has no trend; `make bench` prints how often an overloaded one seems to."""
RESOLUTION = 0.005
"""No trial sees less than this share of the load: the rest of a warm-up or a pause more or less is as large."""
RUNAWAY = 0.25

_SPREAD = NOISE**2 * (1 + MEMORY) / (1 - MEMORY)
"""Variance that the assumed noise adds to lag per second, in (seconds of load)²."""
ASSUMED_ERROR = math.sqrt(_SPREAD)
"""Standard error of a rate after one second of the assumed noise, as a share of the rate."""
_STRAY = 3.5
_CORRIDOR = 18.0
"""How improbable, in e-folds, the corridor must be for an overloaded system. Set by simulation: the exponent
below is that of one look, and a trial is looked at every second."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a stretch of a trial says about one trend; ``corridor`` is the range that the level stayed in."""

    trend: Interval | None
    threshold: float
    scale: float
    """What noise and margins are shares of: the load for lag, one for latency."""
    seconds: float
    corridor: float
    level_error: float = math.inf
    """Standard error of the growth if the level itself is steady, see ``level_error``."""
    reversion: float = 0.0
    """How clearly the level returns to where it was, see ``stats.trend.reversion``."""
    runaway: bool = False
    """Lag runs away: too few samples for an interval, but no noise explains it."""
    late: float | None = None
    """The trend of the second half alone; None: not known."""
    recent: Interval | None = None
    """The same with its error, see ``stats.trend.recent``; None: no micro-batches, or too few samples."""
    floor: Floor | None = None
    """How often the level was back at its floor; None: it has none."""

    @property
    def settles(self) -> bool:
        """Whether the level grows, but no longer in its second half.

        Micro-batches whose cost is a + b·load grow until they are large enough, over tens of seconds.
        """
        return self.late is not None and self.late <= self.threshold


def is_runaway(growth: float, span: float) -> bool:
    """Whether lag that grew by this share of the load, over a span of seconds, says enough by itself.

    An engine with micro-batches takes all that is there: far beyond its limit each batch takes many times
    as long as the one before, and a trial sees two or three of them.
    """
    return span >= BROKEN_SECONDS and growth >= RUNAWAY


def lean_short(seen: Evidence) -> Holding:
    """What the seconds of a short trial so far say, if they say something clearly."""
    trend, threshold, seconds = seen.trend, seen.threshold, seen.seconds
    if seen.runaway:
        return "broken"
    if trend is None:
        return "unclear"
    if seconds < BROKEN_SECONDS or seen.scale <= 0:
        return "unclear"
    error = max(trend.error, math.sqrt(_SPREAD / seconds) * seen.scale)
    if trend.mean - threshold >= CLEAR_BROKEN * error and not seen.settles:
        return "broken"
    if seconds < HOLDS_SECONDS or trend.mean > threshold:
        return "unclear"
    apart = threshold + MARGIN * seen.scale - trend.mean >= CLEAR_HOLDS * error
    return "holds" if apart or seen.corridor <= flat_corridor(seconds) * seen.scale else "unclear"


def flat_corridor(seconds: float) -> float:
    """Range of lag, in seconds of load, that an overloaded system would not have stayed in for so long.

    A walk with variance s² per second, reflected at zero, stays below r for t seconds with probability
    ~ exp(−π² s² t / 8 r²), and a drift d upwards makes that less by exp(−d² t / 2 s²).
    """
    left = max(_CORRIDOR - OVERLOAD**2 * seconds / (2 * _SPREAD), 0.5)
    return math.sqrt(math.pi**2 * _SPREAD * seconds / (8 * left))


def level_error(spread: float, span: float) -> float:
    """Error of the growth over a span, from how far the level strays (standard deviation) around its trend.

    Lag that a pause throws up and a few seconds bring down again has noisy increments that cancel. If the
    level is steady, its two ends alone make the error, √2·spread/span. If it is a walk after all, its
    spread around a line is about 0.4 of the walk's own, give or take; ``_STRAY`` covers that too.
    """
    return _STRAY * math.sqrt(2) * spread / span if span > 0 else math.inf


def returned(seen: Evidence, share: float = MISTAKEN) -> bool:
    """Whether the level was back at its floor so often that one which grows would be in ``share`` of cases at most.

    The growth is ``BEYOND`` above the threshold. The noise is what the second half shows, and at least the assumed
    one: at its floor a level shows none.
    """
    floor = seen.floor
    if floor is None or not floor.visits or not floor.before or seen.scale <= 0:
        return False
    needed = returns_needed(
        seen.threshold / seen.scale + BEYOND,
        max(floor.noise, ASSUMED_ERROR),
        time=floor.before,
        step=floor.step,
        slack=floor.slack,
        share=share,
    )
    return floor.visits >= needed


def still_grows(seen: Evidence, clear: float, finest: float) -> bool:
    """Whether the level grows clearly in its second half alone.

    The micro-batches of an overloaded system grow, and the longer they are the more they get done: the growth of the
    whole stretch falls, which its interval takes for a long memory.
    """
    if seen.recent is None:
        return False
    over = seen.recent.mean - seen.threshold
    return over >= max(quantile(seen.recent.freedom, clear) * seen.recent.error, finest)


def has_settled(seen: Evidence, clear: float, finest: float) -> bool:
    """Whether the level has come to rest after its growth.

    In its second half it clearly grows by less than is allowed, or it does not grow and returns to where it rests.
    """
    if seen.recent is None or seen.threshold - seen.recent.mean < finest:
        return False
    apart = quantile(seen.recent.freedom, clear) * seen.recent.error
    return seen.reversion <= RETURNS or seen.threshold - seen.recent.mean >= apart


def lean_full(seen: Evidence, clear: float = CLEAR_FULL) -> Holding:
    """What a full-length trial says; ``clear`` is the one-sided confidence that this look at it needs."""
    if seen.runaway:
        return "broken"
    if seen.trend is None:
        return "unclear"
    over = seen.trend.mean - seen.threshold
    apart = quantile(seen.trend.freedom, clear) * seen.trend.error
    finest = min(RESOLUTION * seen.scale, seen.threshold / 2) if seen.threshold > 0 else 0.0
    clearly = over >= max(apart, finest) and not seen.settles
    if over > 0 and (clearly or still_grows(seen, clear, finest)):
        return "broken"
    if has_settled(seen, clear, finest) or (over <= 0 and returned(seen)):
        return "holds"
    if over > 0:
        return "unclear"
    shown = 0.0 if seen.reversion <= RETURNS else min(apart, CLEAR_LEVEL * seen.level_error)
    return "holds" if -over >= max(shown, finest) else "unclear"


Lean = Callable[[Evidence], Holding]


def looks(duration: float, limit: float) -> int:
    """How often a full-length trial is looked at, at most: at its duration, and each time it grew by 15 %."""
    return 1 + max(math.ceil(math.log(limit / duration) / math.log(LATER_LOOKS) - 1e-9), 0) if duration > 0 else 1


def clear_at(count: int) -> float:
    """One-sided confidence of each of so many looks, so that all of them together err as often as one would.

    Each look has the same share. Looks at one growing trial are much alike, so less than their number is spent; the
    exponent was found by simulation, and ``make bench`` prints what is realised.
    """
    return 1 - (1 - CLEAR_FULL) / math.pow(count, _ALIKE)


def lean_of(may_end_early: bool, duration: float, limit: float = 0.0) -> Lean:
    """The rule for a trial of this duration that may be extended to a limit, in seconds.

    One that may end early can still prove itself at its full length.
    """
    clear = clear_at(looks(duration, max(limit, duration)))

    def full(seen: Evidence) -> Holding:
        return lean_full(seen, clear)

    def either(seen: Evidence) -> Holding:
        lean = lean_short(seen)
        return full(seen) if lean == "unclear" and seen.seconds >= duration else lean

    return either if may_end_early else full
