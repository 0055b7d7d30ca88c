"""Strategies: pure functions from what is known of a line to the next step."""

from collections.abc import Callable
from dataclasses import replace

from streamgauge.model.experiment import Strategy
from streamgauge.search import adaptive, near_hint, peak
from streamgauge.search.axes import Line
from streamgauge.search.history import Bracket, Known, Step, Try
from streamgauge.search.supported import supported, why_uncertain, why_wide


def next_step(strategy: Strategy, line: Line, known: Known) -> Step:
    """What this strategy wants next on this line."""
    step = _next_step(strategy, line, known)
    if isinstance(step, Bracket) and line.may_peak:
        value = peak.next_value(line, known)
        return step if value is None else Try(value, "probe")
    if isinstance(step, Bracket) and not line.continuous and step.holds is not None and step.fails is not None:
        return replace(step, reason=step.reason or why_uncertain(line, known.pooled, step.holds, step.fails))
    return step


def _next_step(strategy: Strategy, line: Line, known: Known) -> Step:
    if line.continuous:
        if strategy == "adaptive" and line.hint:
            return near_hint.next_step(line, known)
        if strategy == "adaptive" and line.dimension == "load":
            return adaptive.next_step(line, known) or bisect(line, known)
        return bisect(line, known)
    return _LISTS[strategy](line, known)


def linear(line: Line, known: Known) -> Step:
    """Ascending in the dimension's own value, as Theodolite does: loads up to the first that fails,
    instances up to the first that holds."""
    open_ = _open(line, known)
    if not open_:
        return known.bracket()
    return Try(line.values[open_[0] if line.upwards else open_[-1]], "probe")


def from_above(line: Line, known: Known) -> Step:
    """From the hardest down until one holds, as Karimov does."""
    open_ = _open(line, known)
    return Try(line.values[open_[-1]], "probe") if open_ else known.bracket()


def binary(line: Line, known: Known) -> Step:
    """Halve what is still open."""
    open_ = _open(line, known)
    return Try(line.values[open_[len(open_) // 2]], "probe") if open_ else known.bracket()


def full(line: Line, known: Known) -> Step:
    """Every value at full length, ascending in the dimension's own value."""
    left = [v for v in line.values if known.at(v) is None]
    return Try(min(left), "confirm") if left else known.bracket()


def guess(line: Line, known: Known) -> Step:
    """Adaptive on a list: overload once, read off where the boundary lies, then prove it on both sides."""
    open_ = _open(line, known)
    if not open_:
        return known.bracket()
    if line.dimension != "load":
        return binary(line, known)
    if not known.points:
        return Try(line.hard, "estimate")
    pooled = known.pooled
    if pooled is None:
        return binary(line, known)
    below = sum(1 for v in line.values if v <= pooled.boundary)
    beside = [i for i in (below - 1, below) if i in open_]
    # An estimate whose both sides are settled, and yet the bracket is open, was wrong: halve instead.
    return Try(line.values[beside[0]], "probe") if beside else binary(line, known)


def measure(line: Line, known: Known) -> Step:
    """No search: every value once, ascending."""
    left = [v for v in line.values if known.at(v) is None]
    return Try(min(left), "measure") if left else Bracket(None, None)


def bisect(wanted: Line, known: Known) -> Step:
    """Binary on a continuous span, geometrically, down to the precision that the trials support."""
    line = supported(wanted, known.pooled)
    easy = known.holds.value if known.holds else line.easy
    hard = known.fails.value if known.fails else line.hard
    if known.holds and known.fails and line.narrow(easy, hard):
        unwanted = not wanted.narrow(easy, hard)
        return known.bracket(why_wide(wanted, line, known.pooled) if unwanted else "")
    # What could not be decided stays in the middle; the ends come as close to it as they can be proven.
    stretches = [(easy, hard)]
    if known.undecided:
        stretches = [(easy, known.undecided[0].value), (known.undecided[-1].value, hard)]
    for easier, harder in stretches:
        middle = None if line.narrow(easier, harder) else line.middle(easier, harder)
        if middle is not None and known.at(middle) is None:
            return Try(middle, "probe")
    for end in (easy, hard):
        if known.at(end) is None:
            return Try(end, "probe")
    return known.bracket()


_LISTS: dict[Strategy, Callable[[Line, Known], Step]] = {
    "linear": linear,
    "from-above": from_above,
    "binary": binary,
    "full": full,
    "adaptive": guess,
}


def _open(line: Line, known: Known) -> list[int]:
    """Places in the list, from easy to hard, that lie between the two ends and were never tried."""
    first, last = 0, len(line.values)
    if known.holds:
        first = line.values.index(known.holds.value) + 1
    if known.fails:
        last = line.values.index(known.fails.value)
    return [i for i in range(first, last) if known.at(line.values[i]) is None]
