"""A run as the report needs it: only values, so that a run of any earlier version can be shown."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from streamgauge.model.experiment import Experiment
from streamgauge.model.facts import TrialFacts
from streamgauge.model.finding import Finding
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.trial import Outcome, Trial, TrialRequest


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    """A finished trial: its settings, its measurement and verdict, its length in seconds, and how it was run."""

    trial: Trial
    measurement: Measurement
    verdict: Verdict
    seconds: int
    outcome: Outcome = Outcome()
    facts: TrialFacts = TrialFacts()

    @property
    def number(self) -> int:
        return self.trial.number

    @property
    def load(self) -> float:
        """Events per second planned over the judged seconds, on average."""
        return self.measurement.load

    @property
    def virtual(self) -> bool:
        """Whether the trial was simulated."""
        return self.facts.engine.simulated

    @property
    def cores(self) -> int | None:
        """How many cores the system under test had; None if unknown."""
        facts = self.facts
        for value in (facts.sut_cores, facts.engine.settings.get("cores"), self.trial.options.get("cores")):
            if isinstance(value, (list, tuple)) and value:
                return len(value)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return None


@dataclass(frozen=True, slots=True)
class RunReport:
    """A whole run, as its folder has it."""

    run: str
    experiment: str
    findings: Sequence[Finding]
    trials: Sequence[JudgedTrial]
    ended: str = ""
    """Why it ended early; empty if it did not."""
    exit_code: int = 0
    asked: Experiment | None = None
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By label of an engine: its options as they are written in a file, with units. Without them, resolved values."""
    text: str = ""
    """The experiment file as the user wrote it."""
    environment: dict[str, Any] = field(default_factory=dict)
    created: datetime | None = None
    command: Sequence[str] = ()
    version: str = ""
    """Of the streamgauge that measured."""

    def trial(self, number: int) -> JudgedTrial | None:
        """One finished trial."""
        return next((t for t in self.trials if t.number == number), None)


def trials_of(finding: Finding, trials: Sequence[JudgedTrial]) -> list[JudgedTrial]:
    """The trials of a finding's line, in the order they were made."""
    return [t for t in trials if t.trial.engine == finding.engine and finding.line in _lines(t.trial.ask)]


def _lines(ask: TrialRequest) -> tuple[str, str]:
    """The names under which a trial belongs to a series: if nothing is searched, every value is a series."""
    point = f"{ask.dimension}={ask.value:g}"
    return ask.line, f"{ask.line}, {point}" if ask.line else point


def holding_trial(finding: Finding, trials: Sequence[JudgedTrial]) -> JudgedTrial | None:
    """The trial behind the passing bound: of several the longest, of equals the last."""
    return _longest(() if finding.holds is None else finding.holds.trials, trials)


def failing_trial(finding: Finding, trials: Sequence[JudgedTrial]) -> JudgedTrial | None:
    """The trial behind the failing bound."""
    return _longest(() if finding.fails is None else finding.fails.trials, trials)


def _longest(numbers: Sequence[int], trials: Sequence[JudgedTrial]) -> JudgedTrial | None:
    found = [t for t in trials if t.number in numbers]
    return max(found, key=lambda t: (t.measurement.judged_seconds, t.number), default=None)
