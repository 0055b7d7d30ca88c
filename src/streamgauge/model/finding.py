"""Finding: the answer, a bracket [holds, fails] of one dimension, with the trials that prove it."""

from collections.abc import Sequence
from dataclasses import dataclass
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
