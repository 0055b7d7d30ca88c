"""The end of a trial: the load ends, the last outputs arrive, and the counts of all parts are compared."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from streamgauge.engines.contract import Deployment
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock, wait_until
from streamgauge.run.monitor.monitor import Monitor
from streamgauge.run.trial.assemble import unwatched
from streamgauge.run.trial.processes import OutputCount, TrialProcesses, TrialStatus
from streamgauge.store.journal import WHOLE, read_rows
from streamgauge.transports.contract import TransportError

_POLL_INTERVAL = 0.05
_DRAIN = 20 * SECOND
_MAX_LAG, _MAX_BATCHES = 5 * SECOND, 2.5
"""Load in the queue from which on a trial is not drained, because it would take too long: so long, and so many of its
micro-batches. Two of them wait just before one ends on time."""
_MAX_BEHIND = 8
_MAX_UNMONITORED = 1.0
"""Seconds of a trial that the monitor may not have seen: its first reading may be late."""


class Drained(NamedTuple):
    """Events of each stream whose outputs must be out, and events that were published in the end."""

    acknowledged: Mapping[str, int]
    published: Mapping[str, int]
    complete: bool
    """Whether everything was acknowledged."""


def drain(
    processes: TrialProcesses, deployment: Deployment, drain_ns: int, batch_ns: int, *, wait: bool = True
) -> Drained:
    """Send the load of the drain phase and let the system finish it, unless it is far behind; without ``wait`` end the
    load together.

    Of a system that is far behind, the last micro-batch does not count: what it closes comes out with the next one,
    which has the whole backlog.
    """
    passed = Clock().monotonic_ns() - processes.start_ns
    load = processes.trial.profile.mean_between(processes.trial.warmup or 0, passed)
    limit = max(_MAX_LAG, _MAX_BATCHES * batch_ns) / SECOND * load
    finish = wait and processes.status().lag <= limit
    at = passed + drain_ns
    for control in processes.driver_controls:
        if finish:
            control.end(at)
        else:
            control.stop()

    def finished() -> bool:
        processes.forward(deployment.position())
        now = processes.status()
        return (now.done and (now.lag == 0 or not finish)) or not deployment.alive()

    wait_until(finished, (drain_ns + _DRAIN) / SECOND, _POLL_INTERVAL)
    return _drained(processes.status())


def _drained(status: TrialStatus) -> Drained:
    complete = status.lag == 0
    return Drained(
        {name: c.acknowledged if complete else c.acknowledged_before_last for name, c in status.streams.items()},
        {name: c.published for name, c in status.streams.items()},
        complete,
    )


def await_outputs(processes: TrialProcesses, deployment: Deployment, expected: int, timeout_ns: int) -> None:
    """Wait for so many outputs, as long as some still arrive: lost ones are not waited for."""
    await_count(processes.output_count, deployment.alive, expected, timeout_ns)


def await_count(count: Callable[[], OutputCount], alive: Callable[[], bool], expected: int, timeout_ns: int) -> None:
    """Return once an exact count is as high as expected, or the count has not changed for the timeout.

    A count that is not exact cannot show that all outputs are there: the log of a topic also has aborted records and
    the markers of transactions.
    """
    now = count()
    while expected and alive() and not (now.exact and now.committed >= expected):
        if not wait_until(
            lambda known=now: count() != known or not alive(),  # type: ignore[misc]
            timeout_ns / SECOND,
            _POLL_INTERVAL,
        ):
            return
        now = count()


def driver_problems(processes: TrialProcesses) -> tuple[str, ...]:
    """What went wrong on the load driver's side and leaves the counts of outputs as they are."""
    try:
        behind = read_rows(processes.folder / "collector-health")["behind"].to_numpy()
    except FileNotFoundError:
        return ()
    late = int((behind > _MAX_BEHIND).sum())
    if late <= 2:
        return ()
    return (
        f"the collector was behind schedule for {late} s; give the load driver more cores, or produce fewer outputs",
    )


def unaccounted(processes: TrialProcesses) -> tuple[str, ...]:
    """Why the counts of outputs show nothing about the system under test."""
    written = (processes.folder / "collector-health").with_suffix(WHOLE).exists()
    missing = () if written else ("the collector recorded nothing",)
    try:
        return (*missing, *processes.audit())
    except TransportError as error:
        return (*missing, f"the number of events on the broker is unknown: {error}")


def unmonitored(monitor: Monitor | None, folder: Path, stop: int) -> tuple[str, ...]:
    """Whether the monitor recorded the whole trial: missing seconds must not count as undisturbed."""
    if monitor is None:  # this system cannot be monitored, and the placement shows it
        return ()
    missing = unwatched(folder, stop)
    if monitor.error is not None:
        why = f"{type(monitor.error).__name__}: {monitor.error}"
        return (f"the monitor stopped ({why}) and {missing:.1f} s of {stop} s are not recorded; repeat the trial",)
    if missing <= _MAX_UNMONITORED:
        return ()
    return (
        f"the monitor recorded nothing for {missing:.1f} s of {stop} s (limit {_MAX_UNMONITORED:g} s), "
        "so the CPU time of other processes is unknown; repeat the trial",
    )
