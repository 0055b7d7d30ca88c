"""Finding: one result of a run: the bounds of one dimension, with the trials that confirm them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Literal

from streamgauge.model.measurement import Verdict
from streamgauge.model.trial import TrialRequest
from streamgauge.model.units import format_count, format_value

_FIXED = re.compile(r"([a-z_]+)=([0-9.]+(?:e[+-]?[0-9]+)?)")
"""A part of the stored name of a series: a dimension and its value."""

Status = Literal[
    "bracketed",  # both bounds are confirmed and as close as requested
    "wide",  # the bounds are not as close as requested, or the search is complete and one could not be decided
    "all-hold",  # the whole range passes: move its hard end
    "none-holds",  # even the easiest value fails: move the easy end of the range
    "unfinished",  # the budget, the user or a disturbed machine ended it before both bounds were confirmed
    "invalid",  # the load driver or the machine failed too often
    "failed",  # the SUT did not start, produced wrong or no output, or failed even at the easiest value
    "measured",  # nothing was searched
]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A request of the search and the verdict of its trial: the only data that goes back to the search."""

    ask: TrialRequest
    verdict: Verdict
    trial: int
    load: float = 0.0
    """Mean of the planned events per second over the judged seconds, as in the measurement; 0: unknown."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound and the trials whose verdicts confirm it."""

    value: float
    trials: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """The result of the search after one start of the system under test; ``number`` counts from one."""

    number: int
    holds: float | None
    fails: float | None
    trials: int = 0

    @property
    def middle(self) -> float:
        """The middle of both bounds, or the only bound."""
        bounds = [bound for bound in (self.holds, self.fails) if bound is not None]
        return sum(bounds) / len(bounds)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one series of the search.

    ``holds`` is the hardest value that was confirmed to pass, ``fails`` the easiest harder
    value that was confirmed to fail.
    """

    line: str
    engine: str
    dimension: str
    unit: str
    status: Status
    holds: Bound | None
    fails: Bound | None
    sentence: str
    notes: tuple[str, ...] = ()
    trials: int = 0
    also: tuple[tuple[float, int], ...] = ()
    """(share, trial): the trials that measured this share of the passing value, in the order of ``search.also``."""
    starts: tuple[Start, ...] = ()
    """Every start of the system under test that has a result; several if the whole search was repeated."""

    @property
    def spread(self) -> float | None:
        """How far the results of several starts are apart, as a share of their median."""
        middles = sorted(start.middle for start in self.starts)
        return (middles[-1] - middles[0]) / median_low(middles) if len(middles) > 1 else None

    @property
    def width(self) -> float | None:
        """The precision that was reached: (fails − holds) / holds."""
        if self.holds is None or self.fails is None:
            return None
        return abs(self.fails.value - self.holds.value) / self.holds.value


def titles(findings: Sequence[Finding]) -> tuple[str, ...]:
    """A title for each finding: the label of the engine if there are several, and the series."""
    several = len({finding.engine for finding in findings}) > 1
    return tuple(" · ".join(part for part in (f.engine if several else "", f.line) if part) for f in findings)


def title_text(title: str, sentence: str = "") -> str:
    """A title as it is shown: ``load=200000`` is ``load 200k/s``. A series that the sentence names is omitted."""
    *engine, line = title.split(" · ")
    series = _series_text(line)
    return " · ".join([*engine, *([] if sentence and series in sentence else [series])])


def _series_text(line: str) -> str:
    """The dimensions that a series keeps constant, with their units; other text is returned as it is."""
    parts = [_FIXED.fullmatch(part) for part in line.split(", ")]
    return ", ".join(_fixed_text(part[1], float(part[2])) for part in parts if part) if all(parts) else line


def _fixed_text(dimension: str, value: float) -> str:
    if dimension == "instances":
        return f"{format_count(value)} instance{'' if value == 1 else 's'}"
    return f"{dimension} {format_value(value, 'rate' if dimension == 'load' else '')}"
