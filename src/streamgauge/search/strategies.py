"""The search strategies: pure functions from the history of a series to the next step."""

from collections.abc import Callable
from dataclasses import replace

from streamgauge.model.experiment import Strategy
from streamgauge.search import adaptive, near_hint, peak
from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import AxisHistory, Bounds, NextTrial, Step
from streamgauge.search.supported import supported, why_uncertain, why_wide


def next_step(strategy: Strategy, axis: SearchAxis, history: AxisHistory) -> Step:
    """The next step of this strategy."""
    step = _next_step(strategy, axis, history)
    if isinstance(step, Bounds) and axis.may_peak:
        value = peak.next_value(axis, history)
        return step if value is None else NextTrial(value, "probe")
    if isinstance(step, Bounds) and not axis.continuous and step.holds is not None and step.fails is not None:
        return replace(step, reason=step.reason or why_uncertain(axis, history.pooled, step.holds, step.fails))
    return step


def _next_step(strategy: Strategy, axis: SearchAxis, history: AxisHistory) -> Step:
    if axis.continuous:
        if strategy == "adaptive" and axis.hint:
            return near_hint.next_step(axis, history)
        if strategy == "adaptive" and axis.dimension == "load":
            return adaptive.next_step(axis, history) or bisect(axis, history)
        return bisect(axis, history)
    return _LISTS[strategy](axis, history)


def linear(axis: SearchAxis, history: AxisHistory) -> Step:
    """Every value in ascending order, as Theodolite does: loads up to the first that fails, instances up to the first
    that passes."""
    untried = _untried(axis, history)
    if not untried:
        return history.bounds()
    return NextTrial(axis.values[untried[0] if axis.upwards else untried[-1]], "probe")


def from_above(axis: SearchAxis, history: AxisHistory) -> Step:
    """From the hardest value downwards until one passes, as Karimov does."""
    untried = _untried(axis, history)
    return NextTrial(axis.values[untried[-1]], "probe") if untried else history.bounds()


def binary(axis: SearchAxis, history: AxisHistory) -> Step:
    """The middle of the remaining values."""
    untried = _untried(axis, history)
    return NextTrial(axis.values[untried[len(untried) // 2]], "probe") if untried else history.bounds()


def full(axis: SearchAxis, history: AxisHistory) -> Step:
    """Every value at full length, in ascending order."""
    untried = [v for v in axis.values if history.at(v) is None]
    return NextTrial(min(untried), "confirm") if untried else history.bounds()


def adaptive_list(axis: SearchAxis, history: AxisHistory) -> Step:
    """Adaptive on a list: overload the system once, estimate the limit, then confirm a value on both sides of it."""
    untried = _untried(axis, history)
    if not untried:
        return history.bounds()
    if axis.dimension != "load":
        return binary(axis, history)
    if not history.entries:
        return NextTrial(axis.hard, "estimate")
    pooled = history.pooled
    if pooled is None:
        return binary(axis, history)
    below = sum(1 for v in axis.values if v <= pooled.boundary)
    beside = [i for i in (below - 1, below) if i in untried]
    # if both neighbours of the estimate are decided and the bounds are not found, the estimate was wrong: halve
    return NextTrial(axis.values[beside[0]], "probe") if beside else binary(axis, history)


def measure(axis: SearchAxis, history: AxisHistory) -> Step:
    """No search: every value once, in ascending order."""
    untried = [v for v in axis.values if history.at(v) is None]
    return NextTrial(min(untried), "measure") if untried else Bounds(None, None)


def bisect(wanted: SearchAxis, history: AxisHistory) -> Step:
    """Halve a range at its geometric mean, down to the precision that the trials support."""
    axis = supported(wanted, history.pooled)
    easy = history.holds.value if history.holds else axis.easy
    hard = history.fails.value if history.fails else axis.hard
    if history.holds and history.fails and axis.is_narrow(easy, hard):
        unwanted = not wanted.is_narrow(easy, hard)
        return history.bounds(why_wide(wanted, axis, history.pooled) if unwanted else "")
    # undecided values stay in the middle; the bounds come as close to them as they can be confirmed
    stretches = [(easy, hard)]
    if history.undecided:
        stretches = [(easy, history.undecided[0].value), (history.undecided[-1].value, hard)]
    for easier, harder in stretches:
        middle = None if axis.is_narrow(easier, harder) else axis.middle(easier, harder)
        if middle is not None and history.at(middle) is None:
            return NextTrial(middle, "probe")
    for value in (easy, hard):
        if history.at(value) is None:
            return NextTrial(value, "probe")
    return history.bounds()


_LISTS: dict[Strategy, Callable[[SearchAxis, AxisHistory], Step]] = {
    "linear": linear,
    "from-above": from_above,
    "binary": binary,
    "full": full,
    "adaptive": adaptive_list,
}


def _untried(axis: SearchAxis, history: AxisHistory) -> list[int]:
    """Indexes of the values between the bounds that have no trial, from easy to hard."""
    first, last = 0, len(axis.values)
    if history.holds:
        first = axis.values.index(history.holds.value) + 1
    if history.fails:
        last = axis.values.index(history.fails.value)
    return [i for i in range(first, last) if history.at(axis.values[i]) is None]
