"""The stage of a real trial: its drivers and its collector, placed, started in step, and ended."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from streamgauge.engines.base import Endpoints
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.run.clock import Clock
from streamgauge.run.launch import Launcher, Process
from streamgauge.run.monitor import Monitor
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
from streamgauge.run.place import Placement
from streamgauge.run.sources import streams_of

_LEAD = 300 * MILLI

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
        names = ("published", "acknowledged", "answered", "lag", "drops")
        summed = {name: sum(p[name] for p in parts) for name in names}
        return summed | {
            "full": any(p["full"] for p in parts),
            "done": all(p["phase"] in ("done", "full") for p in parts),
        }


@contextmanager
def pinned(cores: tuple[int, ...]) -> Iterator[None]:
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
def staged(
    trial: Trial, folder: Path, placement: Placement, launcher: Launcher, tail: int, *, rewrite: Rewrite
) -> Iterator[tuple[Stage, Endpoints]]:
    """Drivers and collector, ready and waiting."""
    pa.array([0])  # the controller shares the driver's core: what Arrow loads at its first use is not loaded under load
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
            horizon_ns=horizon(trial, tail),
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


def start(stage: Stage, monitor: Monitor | None) -> None:
    """One start moment for all."""
    clock = Clock()
    monotonic, wall = clock.monotonic_ns() + _LEAD, clock.wall_ns() + _LEAD
    # both clocks name the same moment, a whole millisecond of the wall clock
    stage.start_ns, stage.wall_ns = monotonic - wall % MILLI, wall - wall % MILLI
    for line in (*stage.lines, *([stage.output] if stage.output else [])):
        line.start(stage.start_ns, stage.wall_ns)
    if monitor is not None:
        monitor.start(stage.start_ns)


def finish(stage: Stage) -> None:
    """Everything that was committed is counted and written; the journals are closed."""
    if stage.output is not None and stage.collector is not None and stage.collector.alive():
        stage.output.finish()
        stage.output.quit()
        stage.collector.wait(10)
    for driver, line in zip(stage.drivers, stage.lines, strict=True):
        if driver.alive():
            line.quit()
            driver.wait(10)


def horizon(trial: Trial, tail: int) -> int:
    """How far the plan of a trial goes: its longest length and its tail, with room to spare."""
    warmup = trial.warmup if trial.warmup is not None else trial.warmup_limit
    return max(trial.limit, trial.duration) + warmup + tail + 60 * SECOND


def _memory_bound() -> int:
    """Bytes that may wait in the queues: a quarter of what the machine has."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return pages * size // 4
