"""Why a trial cannot go on: a full queue, a system that stalls or drops its stream, a process that is gone."""

import time
from dataclasses import dataclass

from pyarrow import flight

from streamgauge.engines.contract import Deployment
from streamgauge.model.trial import Ending, Outcome
from streamgauge.model.units import format_count, format_duration
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import LineError
from streamgauge.processes.spec import LaunchError
from streamgauge.run.trial.processes import Stage
from streamgauge.transports.kafka.client.protocol import KafkaFailure

_GLANCE = 0.1
_LOG = 40
"""Lines of the log that are kept of a system that did not start."""


@dataclass(slots=True)
class Progress:
    """When the system under test last acknowledged something."""

    patience: int
    acknowledged: int = -1
    since: int = 0

    def stalled(self, acknowledged: int, lag: int, now: int) -> bool:
        """Whether nothing was acknowledged for too long, though events wait."""
        if acknowledged != self.acknowledged or not lag:
            self.acknowledged, self.since = acknowledged, now
        return now - self.since > self.patience


def why_broken(stage: Stage, system: Deployment, progress: Progress) -> tuple[Ending, str] | None:
    """Why the trial cannot go on, if it cannot."""
    gone = who_is_gone(stage, system)
    if gone:
        return gone
    try:
        status, now = stage.status(), Clock().monotonic_ns()
    except flight.FlightError as error:
        return why_unanswered(stage, system, error)
    if status["full"]:
        return "queue-full", f"{format_count(status['lag'])} events"
    if status["drops"]:
        return "dropped", "it closed a stream before its end and did not read it again"
    if progress.stalled(status["acknowledged"], status["lag"], now):
        return "stalled", no_acknowledgement(progress.patience)
    return None


def no_acknowledgement(patience: int) -> str:
    """What a system did that stalled."""
    return f"no acknowledgement for {format_duration(patience)} while events waited"


def who_is_gone(stage: Stage, system: Deployment) -> tuple[Ending, str] | None:
    """Who ended by itself. A system under test whose driver is gone dies too, so the driver is looked at later.

    A broker that is gone takes all others with it, so it is named first.
    """
    lives = system.alive()
    if not lives:
        time.sleep(_GLANCE)
    driver = _driver_side(stage)
    if driver:
        return "driver-failed", driver
    if lives:
        return None
    failure = system.failure()
    if failure is not None:
        return "crashed", failure.sentence
    codes = ", ".join(str(p.exit_code()) for p in system.processes())
    return "crashed", f"its process ended with exit code {codes}"


def _driver_side(stage: Stage) -> str:
    """A sentence on the process of the driver's side that ended by itself; nothing if all run."""
    if fallen := stage.fallen():
        return fallen
    for process in (*stage.drivers, stage.collector):
        if process is not None and not process.alive():
            last = " / ".join(process.tail(3))
            return f"{process.name} ended unexpectedly with exit code {process.exit_code()}: {last}"
    return ""


def why_unready(stage: Stage, error: LaunchError | LineError | flight.FlightError) -> Outcome:
    """Whose fault it is that the load of a trial could not begin.

    A system cannot start without its queue, so the driver's side is looked at first.
    """
    time.sleep(_GLANCE)  # a guard needs a moment to tell of an end
    driver = _driver_side(stage)
    if driver:
        return Outcome("driver-failed", driver)
    if isinstance(error, flight.FlightError):
        return Outcome("driver-failed", f"a load driver or the collector does not respond: {error}")
    return unstarted(error)


def unstarted(error: LaunchError | LineError) -> Outcome:
    """The outcome of a trial whose system did not start, with the end of its log."""
    if isinstance(error, LaunchError):
        return Outcome("crashed", f"it did not start: {error.sentence}", error.log[-_LOG:], unready=True)
    return Outcome("crashed", f"it did not start: {error}", unready=True)


def why_unanswered(stage: Stage, system: Deployment, error: flight.FlightError | KafkaFailure) -> tuple[Ending, str]:
    """A line to the driver's side is dead: whose, if its process is gone."""
    time.sleep(_GLANCE)  # a guard needs a moment to tell of an end
    gone = who_is_gone(stage, system)
    if gone and gone[0] == "driver-failed":
        return gone
    return "driver-failed", f"a load driver or the collector no longer responds: {error}"
