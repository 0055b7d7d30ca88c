"""Why a trial cannot continue: a full queue, a system that stalls or disconnects, a process that ended."""

import time
from dataclasses import dataclass

from streamgauge.engines.contract import Deployment
from streamgauge.model.trial import Ending, Outcome
from streamgauge.model.units import duration_text, format_count
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import ControlError, ControlRefused
from streamgauge.processes.spec import LaunchError
from streamgauge.run.trial.processes import TrialProcesses
from streamgauge.transports.contract import TransportError

CHANNEL_ERRORS = (ControlError, ControlRefused, TransportError)
"""What a request to a load driver, the collector or the transport may raise."""
_POLL_INTERVAL = 0.1
_LOG_LINES = 40
"""Lines of the log that are kept of a system that did not start."""


@dataclass(slots=True)
class StallDetector:
    """When the system under test last acknowledged something."""

    timeout: int
    acknowledged: int = -1
    since: int = 0

    def stalled(self, acknowledged: int, lag: int, now: int) -> bool:
        """Whether nothing was acknowledged for too long, although events wait."""
        if acknowledged != self.acknowledged or not lag:
            self.acknowledged, self.since = acknowledged, now
        return now - self.since > self.timeout


def stop_reason(
    processes: TrialProcesses, deployment: Deployment, detector: StallDetector
) -> tuple[Ending, str] | None:
    """Why the trial cannot continue, if it cannot. The position of the system is passed on first."""
    gone = exited_process(processes, deployment)
    if gone:
        return gone
    try:
        processes.forward(deployment.position())
        status, now = processes.status(), Clock().monotonic_ns()
    except CHANNEL_ERRORS as error:
        return connection_lost(processes, deployment, error)
    if status.full:
        return "queue-full", f"{format_count(status.lag)} events"
    if status.disconnects:
        return "dropped", "it closed a stream before its end and did not read it again"
    if detector.stalled(status.acknowledged, status.lag, now):
        return "stalled", no_acknowledgement(detector.timeout)
    return None


def no_acknowledgement(timeout: int) -> str:
    """What a system did that stalled."""
    return f"no acknowledgement for {duration_text(timeout)} while events waited"


def exited_process(processes: TrialProcesses, deployment: Deployment) -> tuple[Ending, str] | None:
    """Which process ended by itself. A system whose load driver has ended ends too, so the load driver is named first.

    A broker that has ended ends all others, so it is named before them.
    """
    alive = deployment.alive()
    if not alive:
        time.sleep(_POLL_INTERVAL)
    driver = _driver_side(processes)
    if driver:
        return "driver-failed", driver
    if alive:
        return None
    failure = deployment.failure()
    if failure is not None:
        return "crashed", failure.message
    system = processes.setup.system
    processes_of_system = [p for group in (system.processes() if system else {}).values() for p in group]
    codes = [str(code) for p in processes_of_system if (code := p.exit_code()) is not None]
    return "crashed", f"its process ended with exit code {', '.join(codes)}"


def _driver_side(processes: TrialProcesses) -> str:
    """A sentence on the process of the load driver's side that ended by itself; empty if all run."""
    if failure := processes.failure():
        return failure
    for process in (*processes.drivers, processes.collector):
        if process is not None and not process.alive():
            last = " / ".join(process.tail(3))
            return f"{process.name} ended unexpectedly with exit code {process.exit_code()}: {last}"
    return ""


def not_ready(processes: TrialProcesses, error: LaunchError | ControlError | ControlRefused) -> Outcome:
    """Which side failed before the load of a trial could begin.

    A system cannot start without its queue, so the load driver's side is examined first.
    """
    time.sleep(_POLL_INTERVAL)  # a guard needs a moment to report an end
    driver = _driver_side(processes)
    if driver:
        return Outcome("driver-failed", driver)
    return not_started(error)


def not_started(error: LaunchError | ControlError | ControlRefused) -> Outcome:
    """The outcome of a trial whose system did not start, with the end of its log."""
    if isinstance(error, LaunchError):
        return Outcome("crashed", f"it did not start: {error.sentence}", error.log[-_LOG_LINES:], unready=True)
    return Outcome("crashed", f"it did not start: {error}", unready=True)


def connection_lost(processes: TrialProcesses, deployment: Deployment, error: Exception) -> tuple[Ending, str]:
    """A load driver or the collector does not respond: because its process has ended, or for another reason."""
    time.sleep(_POLL_INTERVAL)  # a guard needs a moment to report an end
    gone = exited_process(processes, deployment)
    if gone and gone[0] == "driver-failed":
        return gone
    return "driver-failed", f"a load driver or the collector no longer responds: {error}"
