"""Those who look on while a trial runs: the early rule, the store, and whoever tells the user."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Trial


class Watcher(Protocol):
    """The early rule: says when a trial may stop."""

    @property
    def silence(self) -> int:
        """Nanoseconds without an acknowledgement, where the trial went on until the next one came; else 0."""

    @property
    def stalled(self) -> bool:
        """Whether none came until the trial's limit on stalls."""

    def wants(self, stop: int) -> bool: ...

    def look(self, seconds: Seconds) -> bool: ...


class Keeper(Protocol):
    """Where the seconds of a growing trial are kept; its folder also takes logs and journals."""

    @property
    def path(self) -> Path: ...

    def append(self, seconds: Seconds) -> object: ...


@dataclass(frozen=True, slots=True)
class Unkept:
    """A keeper for seconds that nobody needs; the journals are in its folder."""

    path: Path

    def append(self, seconds: Seconds) -> None:
        """Nothing."""


class Listener(Protocol):
    """Somebody who is told how the run goes; it never answers."""

    def said(self, sentence: str) -> None:
        """Something that takes time besides the trials."""

    def begun(self, trial: Trial, expected_trials: int) -> None:
        """A trial begins; about ``expected_trials`` are to be made in all."""

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """The newest stretch of the running trial."""

    def judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """A trial is over and kept."""


class Silence:
    """A listener that says nothing."""

    def said(self, sentence: str) -> None:
        """Nothing."""

    def begun(self, trial: Trial, expected_trials: int) -> None:
        """Nothing."""

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """Nothing."""

    def judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """Nothing."""
