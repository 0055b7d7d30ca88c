"""Perform: one trial on real processes. Trial → Recording, for engines with processes of their own.

Drivers, collector and system under test are started through the launcher, the load begins in step, and the
journals that they write are put together second by second. The trial ends when the watch says so, or at once
when the queue is full, the system under test is gone, stalls or drops its connection, or the driver fails.
Then a tail closes the last windows, and the outputs are checked against the reference answer.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyarrow import flight

from streamgauge.engines.base import Deployment, Endpoints, RealEngine
from streamgauge.model.seconds import Account, join
from streamgauge.model.trial import Ending, Outcome, Recording, Trial
from streamgauge.model.units import SECOND, format_count, format_duration
from streamgauge.run.assemble import DRIVER, SUT, assemble
from streamgauge.run.check_outputs import OutputCheck
from streamgauge.run.clock import Clock
from streamgauge.run.launch import Launcher, LaunchError, Process
from streamgauge.run.monitor import Monitor, available
from streamgauge.run.orders import (
    MILLI,
    CollectOrder,
    CollectorLine,
    DriveOrder,
    DriverLine,
    Tokens,
    collector_child,
    driver_child,
)
from streamgauge.run.place import Placement, place
from streamgauge.run.sources import streams_of
from streamgauge.run.usage import Role
from streamgauge.run.watching import Keeper, Listener, Watcher
from streamgauge.store.journal import read_rows
from streamgauge.workloads.base import Workload

_LEAD = 300 * MILLI
_GLANCE = 0.1
_MOST_BEHIND = 8
_DRAIN = 20 * SECOND
_SILENCE = 5 * SECOND
"""How long after the tail no output may come before those that are missing count as lost."""
_WHOLE = ("completed", "decided")
_LONG_LAG = 5
"""Seconds of load in the queue from which on a trial is not drained: it would take too long."""

Rewrite = Callable[[DriveOrder], DriveOrder]
"""Changes what a driver is told, for tests of its supervision: a step of its clock, a shorter patience."""


@dataclass(slots=True)
class Stage:
    """The processes of one trial and the lines to them."""

    trial: Trial
    folder: Path
    placement: Placement
    drivers: list[Process] = field(default_factory=list)
    lines: list[DriverLine] = field(default_factory=list)
    collector: Process | None = None
    output: CollectorLine | None = None
    start_ns: int = 0
    wall_ns: int = 0

    def status(self) -> dict[str, int]:
        """The counts of all drivers together."""
        parts = [line.status() for line in self.lines]
        summed = {name: sum(p[name] for p in parts) for name in ("published", "acknowledged", "lag", "drops")}
        return summed | {
            "full": any(p["full"] for p in parts),
            "done": all(p["phase"] in ("done", "full") for p in parts),
        }


def perform(
    trial: Trial,
    engine: RealEngine,
    workload: Workload,
    watch: Watcher,
    partial: Keeper,
    *,
    listener: Listener,
    runtime: Path | None = None,
    rewrite: Rewrite = lambda order: order,
) -> Recording:
    """Run one trial to its end and return what happened in it."""
    folder, placement = partial.path, place(trial.options)
    tail = _tail(trial, engine)
    with (
        _pinned(placement.driver),
        Launcher(runtime) as launcher,
        _staged(trial, folder, placement, launcher, tail, rewrite=rewrite) as (stage, endpoints),
    ):
        try:
            deployment = engine.deploy(trial, endpoints, launcher)
            with deployment as system:
                return _conduct(stage, system, workload, watch, partial, listener=listener, tail=tail)
        except LaunchError as error:
            outcome = Outcome("crashed", f"it did not start: {error}")
            return Recording(trial, join([]), outcome, {"placement": placement.sentence})


def _conduct(
    stage: Stage,
    system: Deployment,
    workload: Workload,
    watch: Watcher,
    partial: Keeper,
    *,
    listener: Listener,
    tail: int,
) -> Recording:
    roles = (
        Role(DRIVER, tuple(d.guard for d in stage.drivers), stage.placement.driver),
        Role("collector", (stage.collector.guard,) if stage.collector else (), stage.placement.driver),
        Role(SUT, tuple(p.guard for p in system.processes()), stage.placement.sut),
        Role("controller", (os.getpid(),), ()),
    )
    monitor = Monitor(roles, stage.folder) if available() else None
    _start(stage, monitor)
    try:
        ending, detail, stop = _load(stage, system, watch, partial, listener=listener)
        ending, detail, account = _close(stage, system, workload, tail, (ending, detail))
    finally:
        if monitor is not None:
            monitor.stop()
    log = tuple(line for p in system.processes() for line in p.tail(8)) if ending in ("crashed", "stalled") else ()
    facts = {
        "placement": stage.placement.sentence,
        "start_ns": stage.start_ns,
        "wall_ns": stage.wall_ns,
        **system.describe(),
        **system.probe(),
    }
    seconds = assemble(stage.folder, len(stage.drivers), stage.placement, stop)
    outcome = Outcome(ending, detail, log, account, _disturbances(stage.folder))
    return Recording(stage.trial, seconds, outcome, facts)


def _close(
    stage: Stage, system: Deployment, workload: Workload, tail: int, ended: tuple[Ending, str]
) -> tuple[Ending, str, Account]:
    """Send the tail, write everything down and check the outputs. What fails here is how the trial ended."""
    check = None
    try:
        if ended[0] != "driver-failed":
            check = _wind_up(stage, system, workload, tail, settle=ended[0] in _WHOLE)
            gone = _gone(stage, system)
            ended = gone if gone and (gone[0] == "driver-failed" or ended[0] in _WHOLE) else ended
        _finish(stage)
    except flight.FlightError as error:
        ended = _unanswered(stage, system, error)
    # without a whole driver nobody knows what should have come out
    return (*ended, check.account(stage.folder) if check and ended[0] != "driver-failed" else Account())


def _wind_up(stage: Stage, system: Deployment, workload: Workload, tail: int, settle: bool) -> OutputCheck:
    """Let what is still to come arrive; the answer to all that was acknowledged."""
    plan = stage.trial.profile.plan(_horizon(stage.trial, tail))
    acknowledged, published = _settle(stage, system, tail if settle else 0)
    check = OutputCheck(workload, stage.trial, plan, stage.wall_ns, acknowledged, published)
    if settle or stage.status()["full"]:
        wanted = check.closed_rows()
        _arrive(stage, system, wanted, tail + _SILENCE)
    return check


@contextmanager
def _pinned(cores: tuple[int, ...]) -> Iterator[None]:
    """The controller itself stays off the cores of the system under test."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def _staged(
    trial: Trial, folder: Path, placement: Placement, launcher: Launcher, tail: int, *, rewrite: Rewrite
) -> Iterator[tuple[Stage, Endpoints]]:
    """Drivers and collector, ready and waiting."""
    tokens, stage = Tokens.new(), Stage(trial, folder, placement)
    partitions = trial.partitions or max(1, len(placement.sut), trial.drivers)
    count = min(trial.drivers, partitions)
    queues = tuple(f"grpc+unix://{launcher.runtime}/queue-{n}.sock" for n in range(count))
    outputs = f"grpc+unix://{launcher.runtime}/outputs.sock"
    for number, endpoint in enumerate(queues):
        order = DriveOrder(
            driver=number,
            endpoint=endpoint,
            folder=folder,
            workload=trial.workload,
            params=trial.params,
            seed=trial.seed,
            profiles=dict.fromkeys(streams_of(trial.workload), trial.profile),
            horizon_ns=_horizon(trial, tail),
            partitions=partitions,
            mine=tuple(range(number, partitions, count)),
            bound_events=trial.queue_bound // count,
            bound_bytes=_memory_bound() // count,
        )
        stage.drivers.append(launcher.start(driver_child(rewrite(order), tokens, placement.driver), folder))
        stage.lines.append(DriverLine(endpoint, tokens))
    collect = CollectOrder(endpoint=outputs, folder=folder, firing="window_end")
    stage.collector = launcher.start(collector_child(collect, tokens, placement.driver), folder)
    stage.output = CollectorLine(outputs, tokens)
    try:
        yield stage, Endpoints(queues, outputs, partitions, folder, placement.sut, tokens.sut)
    finally:
        for line in (*stage.lines, stage.output):
            line.close()


def _start(stage: Stage, monitor: Monitor | None) -> None:
    """One start moment for all."""
    clock = Clock()
    monotonic, wall = clock.monotonic_ns() + _LEAD, clock.wall_ns() + _LEAD
    # both clocks name the same moment, a whole millisecond of the wall clock
    stage.start_ns, stage.wall_ns = monotonic - wall % MILLI, wall - wall % MILLI
    for line in (*stage.lines, *([stage.output] if stage.output else [])):
        line.start(stage.start_ns, stage.wall_ns)
    if monitor is not None:
        monitor.start(stage.start_ns)


def _load(
    stage: Stage, system: Deployment, watch: Watcher, partial: Keeper, *, listener: Listener
) -> tuple[Ending, str, int]:
    """The load, until it is decided or broken off; how it ended and how many seconds count."""
    seen = 0
    progress = _Progress(stage.trial.stall)
    while True:
        time.sleep(_GLANCE)
        broken = _broken(stage, system, progress)
        ready = _closed_seconds(stage) - (0 if broken else 1)  # the collector needs a moment for the last one
        if ready > seen:
            seconds = assemble(stage.folder, len(stage.drivers), stage.placement, ready)
            stretch = seconds.between(seen, ready)
            partial.append(stretch)
            listener.progressed(stage.trial, stretch)
            seen = ready
            if not broken and watch.wants(seen) and watch.look(seconds):
                whole = seen * SECOND >= (stage.trial.warmup or 0) + stage.trial.duration
                return ("completed" if whole else "decided"), "", seen
        if broken:
            return (*broken, seen)


def _closed_seconds(stage: Stage) -> int:
    try:
        return min(len(read_rows(stage.folder / f"driver-{n}-seconds")) for n in range(len(stage.drivers)))
    except FileNotFoundError:
        return 0


@dataclass(slots=True)
class _Progress:
    """When the system under test last acknowledged something."""

    patience: int
    acknowledged: int = -1
    since: int = 0

    def stalled(self, acknowledged: int, lag: int, now: int) -> bool:
        if acknowledged != self.acknowledged or not lag:
            self.acknowledged, self.since = acknowledged, now
        return now - self.since > self.patience


def _broken(stage: Stage, system: Deployment, progress: _Progress) -> tuple[Ending, str] | None:
    """Why the trial cannot go on, if it cannot."""
    gone = _gone(stage, system)
    if gone:
        return gone
    try:
        status, now = stage.status(), Clock().monotonic_ns()
    except flight.FlightError as error:
        return _unanswered(stage, system, error)
    if status["full"]:
        return "queue-full", f"{format_count(status['lag'])} events"
    if status["drops"]:
        return "dropped", "a stream was cancelled before its end and not read again"
    if progress.stalled(status["acknowledged"], status["lag"], now):
        return "stalled", f"no acknowledgement for {format_duration(progress.patience)} while events waited"
    return None


def _gone(stage: Stage, system: Deployment) -> tuple[Ending, str] | None:
    """Who ended by itself. A system under test whose driver is gone dies too, so the driver is looked at later."""
    lives = system.alive()
    if not lives:
        time.sleep(_GLANCE)
    for process in (*stage.drivers, stage.collector):
        if process is not None and not process.alive():
            last = " / ".join(process.tail(3))
            return "driver-failed", f"{process.name} ended by itself with {process.exit_code()}: {last}"
    if lives:
        return None
    codes = ", ".join(str(p.exit_code()) for p in system.processes())
    return "crashed", f"its process ended with {codes}"


def _unanswered(stage: Stage, system: Deployment, error: flight.FlightError) -> tuple[Ending, str]:
    """A line to the driver's side is dead: whose, if its process is gone."""
    time.sleep(_GLANCE)  # a guard needs a moment to tell of an end
    gone = _gone(stage, system)
    if gone and gone[0] == "driver-failed":
        return gone
    return "driver-failed", f"a driver or the collector no longer answers: {error}"


def _settle(stage: Stage, system: Deployment, tail: int) -> tuple[int, int]:
    """Send the tail and let the system finish it, unless it is far behind; without a tail end the load at once.

    Events acknowledged and published in the end.
    """
    drained = tail > 0 and stage.status()["lag"] <= _LONG_LAG * stage.trial.load
    at = Clock().monotonic_ns() - stage.start_ns + tail
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
    return status["acknowledged"], status["published"]


def _committed(stage: Stage) -> int:
    return int(stage.output.status()["committed"]) if stage.output else 0


def _arrive(stage: Stage, system: Deployment, wanted: int, patience: int) -> None:
    """Wait for so many outputs, as long as some still come: what is lost is not waited for."""
    committed = -1
    while committed < (now := _committed(stage)) < wanted and system.alive():
        committed = now
        _await(lambda: _committed(stage) > now or not system.alive(), patience)


def _await(ready: Callable[[], bool], patience: int) -> None:
    """Wait until it is so, at most so many nanoseconds."""
    ends = time.monotonic() + patience / SECOND
    while not ready() and time.monotonic() < ends:
        time.sleep(_GLANCE / 2)


def _finish(stage: Stage) -> None:
    """Everything that was committed is counted and written; the journals are closed."""
    if stage.output is not None and stage.collector is not None and stage.collector.alive():
        stage.output.finish()
        stage.output.quit()
        stage.collector.wait(10)
    for driver, line in zip(stage.drivers, stage.lines, strict=True):
        if driver.alive():
            line.quit()
            driver.wait(10)


def _disturbances(folder: Path) -> tuple[str, ...]:
    """What else went wrong on the driver's side."""
    try:
        behind = read_rows(folder / "collector-health")["behind"].to_numpy()
    except FileNotFoundError:
        return ("the collector wrote nothing down",)
    late = int((behind > _MOST_BEHIND).sum())
    if late <= 2:
        return ()
    return (f"the collector was behind in {late} seconds; give the driver more cores or make fewer outputs",)


def _tail(trial: Trial, engine: RealEngine) -> int:
    """One window, the watermark and two triggers: then every judged window closes."""
    window = int(trial.params.get("window", 0)) + int(trial.params.get("watermark", 0))
    return window + 2 * engine.trigger(trial.options) + SECOND


def _horizon(trial: Trial, tail: int) -> int:
    warmup = trial.warmup if trial.warmup is not None else trial.warmup_limit
    return max(trial.limit, trial.duration) + warmup + tail + 60 * SECOND


def _memory_bound() -> int:
    """Bytes that may wait in the queues: a quarter of what the machine has."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return pages * size // 4
