"""Execute: Trial → Recording.

A virtual engine is imagined second by second, as far as somebody looks. An engine with processes of its
own will be deployed here in the same shape: stretches of seconds come in, are kept, are looked at, and
the trial ends when the watch says so or when the system under test does.
"""

from dataclasses import replace
from typing import Protocol

from streamgauge.engines.base import Engine, Imagination, VirtualEngine
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.seconds import Seconds, join
from streamgauge.model.trial import Outcome, Recording, Trial
from streamgauge.model.units import SECOND
from streamgauge.run.clock import Pace


class Watcher(Protocol):
    """The early rule: says when a trial may stop."""

    def wants(self, stop: int) -> bool: ...

    def look(self, seconds: Seconds) -> bool: ...


class Keeper(Protocol):
    """Where the seconds of a growing trial are kept."""

    def append(self, seconds: Seconds) -> object: ...


class Listener(Protocol):
    """Somebody who is told how the run goes; it never answers."""

    def begun(self, trial: Trial, expected_trials: int) -> None:
        """A trial begins; about ``expected_trials`` are to be made in all."""

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """The newest stretch of the running trial."""

    def judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """A trial is over and kept."""


class Silence:
    """A listener that says nothing."""

    def begun(self, trial: Trial, expected_trials: int) -> None:
        """Nothing."""

    def progressed(self, trial: Trial, seconds: Seconds) -> None:
        """Nothing."""

    def judged(self, trial: Trial, measurement: Measurement, verdict: Verdict) -> None:
        """Nothing."""


class CannotExecute(Exception):
    """An engine that this version knows no way to run."""


def execute(
    trial: Trial,
    engine: Engine,
    work: float,
    watch: Watcher,
    partial: Keeper,
    *,
    listener: Listener,
    pace: Pace,
) -> Recording:
    """Run one trial to its end and return what happened in it."""
    if not isinstance(engine, VirtualEngine):
        raise CannotExecute(f"engine {engine.name!r} has no way to run a trial: it neither imagines nor deploys one")
    imagination = engine.imagine(trial, work)
    stretches, stopped = list[Seconds](), False
    for stretch in imagination.seconds():
        stretches.append(stretch)
        partial.append(stretch)
        listener.progressed(trial, stretch)
        pace.wait(len(stretch))
        if watch.wants(stretch.stop):
            stretches = [join(stretches)]
            stopped = watch.look(stretches[0])
        if stopped:
            break
    so_far = join(stretches)
    return Recording(trial, so_far, _outcome(imagination, so_far, stopped, trial), engine.describe(trial.options))


def _outcome(imagination: Imagination, seconds: Seconds, stopped: bool, trial: Trial) -> Outcome:
    """How it ended; a trial that the watch stopped before its length was ``decided``."""
    outcome = imagination.outcome(seconds.stop)
    short = seconds.stop * SECOND < (trial.warmup or 0) + trial.duration
    return replace(outcome, ending="decided") if stopped and short and outcome.ending == "completed" else outcome
