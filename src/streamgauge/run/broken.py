"""Why a trial cannot go on: a full queue, a system that stalls or drops its stream, a process that is gone."""

import time
from dataclasses import dataclass

from pyarrow import flight

from streamgauge.engines.base import Deployment
from streamgauge.model.trial import Ending
from streamgauge.model.units import format_count, format_duration
from streamgauge.run.clock import Clock
from streamgauge.run.stage import Stage
from streamgauge.transport.kafka.protocol import KafkaFailure

_GLANCE = 0.1


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
        return "dropped", "a stream was cancelled before its end and not read again"
    if progress.stalled(status["acknowledged"], status["lag"], now):
        return "stalled", f"no acknowledgement for {format_duration(progress.patience)} while events waited"
    return None


def who_is_gone(stage: Stage, system: Deployment) -> tuple[Ending, str] | None:
    """Who ended by itself. A system under test whose driver is gone dies too, so the driver is looked at later.

    A broker that is gone takes all others with it, so it is named first.
    """
    lives = system.alive()
    if not lives:
        time.sleep(_GLANCE)
    if fallen := stage.fallen():
        return "driver-failed", fallen
    for process in (*stage.drivers, stage.collector):
        if process is not None and not process.alive():
            last = " / ".join(process.tail(3))
            return "driver-failed", f"{process.name} ended by itself with {process.exit_code()}: {last}"
    if lives:
        return None
    failure = system.failure()
    if failure is not None:
        return "crashed", failure.sentence
    codes = ", ".join(str(p.exit_code()) for p in system.processes())
    return "crashed", f"its process ended with {codes}"


def why_unanswered(stage: Stage, system: Deployment, error: flight.FlightError | KafkaFailure) -> tuple[Ending, str]:
    """A line to the driver's side is dead: whose, if its process is gone."""
    time.sleep(_GLANCE)  # a guard needs a moment to tell of an end
    gone = who_is_gone(stage, system)
    if gone and gone[0] == "driver-failed":
        return gone
    return "driver-failed", f"a driver or the collector no longer answers: {error}"
