"""The end of a trial: the load ends, what is still to come arrives, and what went wrong on our side is told."""

import time
from collections.abc import Callable
from pathlib import Path

from streamgauge.engines.contract import Deployment
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock
from streamgauge.run.monitor.monitor import Monitor
from streamgauge.run.trial.assemble import unwatched
from streamgauge.run.trial.processes import Stage
from streamgauge.store.journal import WHOLE, read_rows
from streamgauge.transports.kafka.client.protocol import KafkaFailure

_GLANCE = 0.05
_DRAIN = 20 * SECOND
_LONG_LAG, _LONG_BATCHES = 5 * SECOND, 2.5
"""Load in the queue from which on a trial is not drained, for it would take too long: so long, and so many of its
micro-batches. Two of them wait just before one ends in time."""
_MOST_BEHIND = 8
_MOST_UNWATCHED = 1.0
"""Seconds of a trial that the monitor may not have seen: its first look may be late."""


def settle(stage: Stage, system: Deployment, tail: int, trigger: int, *, drain: bool = True) -> tuple[int, int]:
    """Send the tail and let the system finish it, unless it is far behind; without ``drain`` end the load at once.

    Events whose windows must be out, and events published in the end. Of a system that is far behind, the last
    micro-batch does not count: what it closes comes out with the next one, which holds the whole backlog.
    """
    passed = Clock().monotonic_ns() - stage.start_ns
    load = stage.trial.profile.mean_between(stage.trial.warmup or 0, passed)
    most = max(_LONG_LAG, _LONG_BATCHES * trigger) / SECOND * load
    drained = drain and stage.status()["lag"] <= most
    at = passed + tail
    for line in stage.lines:
        if drained:
            line.end(at)
        else:
            line.stop()

    def settled() -> bool:
        now = stage.status()
        return bool(now["done"] and (now["lag"] == 0 or not drained)) or not system.alive()

    _await(settled, tail + _DRAIN)
    status = stage.status()
    return status["acknowledged" if status["lag"] == 0 else "answered"], status["published"]


def _committed(stage: Stage) -> int:
    return int(stage.output.status()["committed"]) if stage.output else 0


def arrive(stage: Stage, system: Deployment, wanted: int, patience: int) -> None:
    """Wait for so many outputs, as long as some still come: what is lost is not waited for."""
    committed = -1
    while committed < (now := _committed(stage)) < wanted and system.alive():
        committed = now
        _await(lambda: _committed(stage) > now or not system.alive(), patience)


def _await(ready: Callable[[], bool], patience: int) -> None:
    """Wait until it is so, at most so many nanoseconds."""
    ends = time.monotonic() + patience / SECOND
    while not ready() and time.monotonic() < ends:
        time.sleep(_GLANCE)


def disturbances(stage: Stage) -> tuple[str, ...]:
    """What else went wrong on the driver's side, and leaves the counts of outputs as they are."""
    return _behind(stage)


def unaccounted(stage: Stage) -> tuple[str, ...]:
    """Why the counts of outputs say nothing about the system under test."""
    written = (stage.folder / "collector-health").with_suffix(WHOLE).exists()
    return (*(() if written else ("the collector recorded nothing",)), *_unequal(stage))


def unmonitored(monitor: Monitor | None, folder: Path, stop: int) -> tuple[str, ...]:
    """Whether the monitor saw the whole trial: seconds that it did not see must not look quiet."""
    if monitor is None:  # this system cannot be watched, and the placement says so
        return ()
    missing = unwatched(folder, stop)
    if monitor.error is not None:
        why = f"{type(monitor.error).__name__}: {monitor.error}"
        return (f"the monitor stopped ({why}) and {missing:.1f} s of {stop} s are not recorded; repeat the trial",)
    if missing <= _MOST_UNWATCHED:
        return ()
    return (
        f"the monitor recorded nothing for {missing:.1f} s of {stop} s (limit {_MOST_UNWATCHED:g} s), "
        "so the CPU time of other processes is unknown; repeat the trial",
    )


def _unequal(stage: Stage) -> tuple[str, ...]:
    """What was sent, acknowledged and stored must be one number before anything is judged."""
    try:
        return stage.unequal()
    except KafkaFailure as error:
        return (f"the number of events on the broker is unknown: {error}",)


def _behind(stage: Stage) -> tuple[str, ...]:
    """Whether the collector kept up."""
    try:
        behind = read_rows(stage.folder / "collector-health")["behind"].to_numpy()
    except FileNotFoundError:
        return ()
    late = int((behind > _MOST_BEHIND).sum())
    if late <= 2:
        return ()
    return (
        f"the collector was behind schedule for {late} s; give the load driver more cores, or produce fewer outputs",
    )
