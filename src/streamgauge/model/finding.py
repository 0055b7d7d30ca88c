"""Finding: the answer, a bracket [holds, fails] of one dimension, with the trials that prove it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Literal

from streamgauge.model.measurement import Verdict
from streamgauge.model.trial import Ask

Status = Literal[
    "bracketed",  # both ends proven, as narrow as asked for
    "wide",  # both ends proven, but the noise or the truth forbids a narrower one
    "all-hold",  # the whole range holds: move the hard end
    "none-holds",  # not even the easiest value holds: move the easy end
    "unfinished",  # the budget or the user ended it first
    "invalid",  # the driver or the machine failed too often
    "failed",  # the SUT did not start, gave wrong or no output, or failed at the easiest value too
    "measured",  # nothing was searched
]


@dataclass(frozen=True, slots=True)
class Told:
    """A question of the search with its answer: the only thing that flows back to it."""

    ask: Ask
    verdict: Verdict
    trial: int


@dataclass(frozen=True, slots=True)
class End:
    """One end of the bracket and the trials whose verdicts prove it."""

    value: float
    trials: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """What the search found after one start of the system under test; ``number`` counts from one."""

    number: int
    holds: float | None
    fails: float | None
    trials: int = 0

    @property
    def middle(self) -> float:
        """The middle of both ends, or the only one."""
        ends = [end for end in (self.holds, self.fails) if end is not None]
        return sum(ends) / len(ends)


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer for one line of the search.

    ``holds`` is the hardest value proven to hold, ``fails`` the easiest one above it proven to fail.
    """

    line: str
    engine: str
    dimension: str
    unit: str
    status: Status
    holds: End | None
    fails: End | None
    sentence: str
    notes: tuple[str, ...] = ()
    trials: int = 0
    also: tuple[tuple[float, int], ...] = ()
    """(share, trial): the trials that measured this share of what holds, in the order in which they were asked for."""
    starts: tuple[Start, ...] = ()
    """Every start that has a result, where a search was made; several, if the whole search was repeated."""

    @property
    def spread(self) -> float | None:
        """How far the results of several starts are apart, as a share of the one in the middle."""
        middles = sorted(start.middle for start in self.starts)
        return (middles[-1] - middles[0]) / median_low(middles) if len(middles) > 1 else None

    @property
    def width(self) -> float | None:
        """(fails − holds) / holds, the precision reached."""
        if self.holds is None or self.fails is None:
            return None
        return abs(self.fails.value - self.holds.value) / self.holds.value


def titles(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What each finding is about, beside the others: the engine's label if there are several, and the series."""
    several = len({finding.engine for finding in findings}) > 1
    return tuple(" · ".join(part for part in (f.engine if several else "", f.line) if part) for f in findings)
