"""SearchAxis: the values of one series, ordered from easy to hard.

With this order, every search has the same task: find the hardest value that passes and the next harder one that fails.
"""

import math
from dataclasses import dataclass

from streamgauge.model.experiment import Span, Unit
from streamgauge.model.units import format_value

MIN_PRECISION = 1e-4
"""The smallest precision of a search. With a smaller one, the grid of a range would have no end."""

_MAX_LISTED = 64  # a range with at most so many whole numbers is listed completely
_FIRST_SHARE = 1e-6  # the first value of a grid that starts at zero, as a share of its end


@dataclass(frozen=True, slots=True)
class InheritedFailure:
    """A failure that needs no trial: ``value`` failed at a lower load, so it and all harder values fail here."""

    value: float
    trials: tuple[int, ...]
    where: str


@dataclass(frozen=True, slots=True)
class SearchAxis:
    """One dimension whose value is searched: a list of values from easy to hard, or a range."""

    dimension: str
    unit: Unit
    upwards: bool
    """Whether higher values are harder. False for instances, or the slide of a window."""
    easy: float
    hard: float
    values: tuple[float, ...] = ()
    """From easy to hard. Empty: every value between ``easy`` and ``hard`` may be requested."""
    precision: float = 0.05
    fixed: tuple[tuple[str, float], ...] = ()
    inherited: InheritedFailure | None = None
    hint: float = 0.0
    """An estimate of the limit from the warm-up; 0: there is none."""

    @property
    def continuous(self) -> bool:
        """Whether the axis is a range and not a list."""
        return not self.values

    @property
    def may_peak(self) -> bool:
        """Whether an easier value may fail although a harder one passes: more instances can be slower."""
        return self.dimension == "instances"

    def difficulty(self, value: float) -> float:
        """A number that grows from easy to hard."""
        return value if self.upwards else -value

    def harder(self, value: float, other: float) -> bool:
        """Whether ``value`` is harder than ``other``."""
        return self.difficulty(value) > self.difficulty(other)

    def gap(self, easier: float, harder: float) -> float:
        """The distance of two values as a share of the easier one: the precision of bounds."""
        return abs(harder - easier) / abs(easier) if easier else math.inf

    def is_narrow(self, easier: float, harder: float) -> bool:
        """Whether two values are as close as the experiment requests."""
        return self.gap(easier, harder) <= self.precision * 1.0001

    def rounded_within(self, value: float) -> float:
        """The rounded value, limited to the range of the axis."""
        if value == 0 or not math.isfinite(value):
            return value
        low, high = sorted((self.easy, self.hard))
        return min(max(self.rounded(value), low), high)

    def rounded(self, value: float) -> float:
        """The value without digits beyond what the precision needs."""
        digits = max(4, math.ceil(-math.log10(self.precision)) + 2)
        return float(f"{value:.{digits - 1}e}")

    def middle(self, easier: float, harder: float) -> float | None:
        """The geometric mean of two values; None if rounding leaves no value between them."""
        low, high = sorted((easier, harder))
        middle = self.rounded_within(math.sqrt(low * high) if low > 0 else (low + high) / 2)
        return middle if low < middle < high else None

    def text(self, value: float) -> str:
        """The value as text, in the unit of the dimension."""
        return format_value(value, self.unit)

    def prose(self, value: float) -> str:
        """The value as text in a sentence: a rate has the unit events/s."""
        return f"{self.text(value).removesuffix('/s')} events/s" if self.unit == "rate" else self.text(value)


def listed(span: Span, unit: Unit, precision: float) -> tuple[float, ...]:
    """The values of a span in ascending order: its list, or a geometric grid of its range."""
    if span.between is None:
        return tuple(sorted(set(span.values)))
    low, high = sorted(span.between)
    if unit == "count":
        return _whole_numbers(math.ceil(low), math.floor(high), precision)
    return grid(low, high, precision)


def grid(low: float, high: float, precision: float) -> tuple[float, ...]:
    """The values low · (1 + precision)^k, up to and including ``high``."""
    first = low if low > 0 else high * _FIRST_SHARE
    ratio = 1 + max(precision, MIN_PRECISION)
    values = [] if low > 0 else [low]
    k = 0
    while (value := float(f"{first * ratio**k:.9g}")) < high * (1 - 1e-9):
        values.append(value)
        k += 1
    return (*values, high)


def _whole_numbers(low: int, high: int, precision: float) -> tuple[float, ...]:
    if high - low < _MAX_LISTED:
        return tuple(float(v) for v in range(low, high + 1))
    # rounded down, so that neighbours are not further apart than requested, unless they are consecutive
    values = [low]
    while values[-1] < high:
        step = math.floor(values[-1] * (1 + max(precision, MIN_PRECISION)))
        values.append(min(max(values[-1] + 1, step), high))
    return tuple(float(v) for v in values)
