"""Line: one thing to find. Its values go from easy to hard, so that every question is the same one:
which is the hardest value that holds, and does the next harder one fail?
"""

import math
from dataclasses import dataclass

from streamgauge.model import units
from streamgauge.model.experiment import Span, Unit

LEAST_PRECISION = 1e-4
"""No search is finer than this: below it the grid of a range would not end."""

_FEW = 64  # a range of whole numbers is looked at one by one up to here
_ZERO = 1e-6  # a range that starts at zero is cut geometrically from this share of its end


@dataclass(frozen=True, slots=True)
class Taken:
    """A failure that needs no trial here: ``value`` and all harder ones failed at an easier place already."""

    value: float
    trials: tuple[int, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Line:
    """A dimension with everything else fixed: a list of values from easy to hard, or a continuous span."""

    dimension: str
    unit: Unit
    upwards: bool
    """Higher values are harder. False for instances, or the slide of a window."""
    easy: float
    hard: float
    values: tuple[float, ...] = ()
    """From easy to hard. Empty: every value between ``easy`` and ``hard`` may be asked for."""
    precision: float = 0.05
    fixed: tuple[tuple[str, float], ...] = ()
    taken: Taken | None = None
    hint: float = 0.0
    """A value near the boundary, where something hints at one; 0: nothing does."""

    @property
    def continuous(self) -> bool:
        return not self.values

    @property
    def may_peak(self) -> bool:
        """Whether an easier value may fail where a harder one holds: more instances can be slower."""
        return self.dimension == "instances"

    def order(self, value: float) -> float:
        """A number that grows from easy to hard."""
        return value if self.upwards else -value

    def harder(self, value: float, other: float) -> bool:
        """Is ``value`` harder than ``other``?"""
        return self.order(value) > self.order(other)

    def gap(self, easier: float, harder: float) -> float:
        """How far two values lie apart, as a share of the easier one: the precision of a bracket."""
        return abs(harder - easier) / abs(easier) if easier else math.inf

    def narrow(self, easier: float, harder: float) -> bool:
        """Are two values as close as the experiment asks for?"""
        return self.gap(easier, harder) <= self.precision * 1.0001

    def plain(self, value: float) -> float:
        """The value as one would write it, kept inside the line."""
        if value == 0 or not math.isfinite(value):
            return value
        low, high = sorted((self.easy, self.hard))
        return min(max(self.rounded(value), low), high)

    def rounded(self, value: float) -> float:
        """The value without digits beyond what the precision needs."""
        digits = max(4, math.ceil(-math.log10(self.precision)) + 2)
        return float(f"{value:.{digits - 1}e}")

    def middle(self, easier: float, harder: float) -> float | None:
        """A value halfway between two others, geometrically; None where there is none left."""
        low, high = sorted((easier, harder))
        middle = self.plain(math.sqrt(low * high) if low > 0 else (low + high) / 2)
        return middle if low < middle < high else None

    def text(self, value: float) -> str:
        """The value for a person, in the unit of the dimension."""
        return format_value(value, self.unit)

    def prose(self, value: float) -> str:
        """The value in a sentence: a rate says of what it is."""
        return f"{self.text(value).removesuffix('/s')} events/s" if self.unit == "rate" else self.text(value)


def format_value(value: float, unit: Unit) -> str:
    """A value of a dimension for a person: ``730k/s``, ``3``, ``8s``, ``25%``."""
    formats = {
        "rate": units.format_rate,
        "count": units.format_count,
        "duration": units.format_duration,
        "share": units.format_share,
    }
    return formats[unit](value)


def listed(span: Span, unit: Unit, precision: float) -> tuple[float, ...]:
    """The values of a span as an ascending list: its own, or a geometric grid of a range."""
    if span.between is None:
        return tuple(sorted(set(span.values)))
    low, high = sorted(span.between)
    if unit == "count":
        return _whole(math.ceil(low), math.floor(high), precision)
    return grid(low, high, precision)


def grid(low: float, high: float, precision: float) -> tuple[float, ...]:
    """low · (1 + precision)^k, up to and including high."""
    first = low if low > 0 else high * _ZERO
    ratio = 1 + max(precision, LEAST_PRECISION)
    values = [] if low > 0 else [low]
    k = 0
    while (value := float(f"{first * ratio**k:.9g}")) < high * (1 - 1e-9):
        values.append(value)
        k += 1
    return (*values, high)


def _whole(low: int, high: int, precision: float) -> tuple[float, ...]:
    if high - low < _FEW:
        return tuple(float(v) for v in range(low, high + 1))
    # Rounded down, neighbours are never further apart than asked for, except where they are consecutive.
    values = [low]
    while values[-1] < high:
        step = math.floor(values[-1] * (1 + max(precision, LEAST_PRECISION)))
        values.append(min(max(values[-1] + 1, step), high))
    return tuple(float(v) for v in values)
