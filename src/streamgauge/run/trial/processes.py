"""The stage of a real trial: its drivers and its collector, placed, started in step, and ended."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamgauge.engines.contract import Endpoints, Promise
from streamgauge.model.facts import TransportFacts
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock
from streamgauge.processes.launch import Launcher, Process
from streamgauge.processes.placement import Placement
from streamgauge.run.driver.send_schedule import KAFKA_TICK, MILLI, TICK, require_streams
from streamgauge.run.driver.specs import (
    CollectOrder,
    CollectorLine,
    DriveOrder,
    DriverLine,
    Tokens,
    collector_child,
    driver_child,
)
from streamgauge.run.monitor.monitor import Monitor
from streamgauge.transports.kafka.clock_offset import together
from streamgauge.workloads.contract import OutputContract, profiles_of
from streamgauge.workloads.registry import workloads

if TYPE_CHECKING:
    from streamgauge.transports.kafka.transport import Kafka, Topics

_LEAD = 300 * MILLI
_WRITING, _READING = 90.0, 330.0
"""Seconds that the collector may take for an answer: its last outputs go to the disk, or the whole topic is read."""
_LAST_WORDS = 30.0
"""Seconds that a driver may take until the broker has acknowledged all that it sent."""

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
    topics: "Topics | None" = None
    """Where events and outputs are on Kafka; None: on the queue."""
    words: list[dict[str, Any]] = field(default_factory=list)
    """What each driver on Kafka said last."""
    clock: dict[str, int] | None = None
    """How far the broker's clock is, as probes after the load found it."""
    unreadable: str = ""
    """A sentence on outputs that are not of their format; nothing if all could be read."""
    unstamped: str = ""
    """A sentence on outputs whose latency cannot be counted, such as a null in ``max_due``; nothing if all can be."""
    start_ns: int = 0
    wall_ns: int = 0

    @property
    def tick_ns(self) -> int:
        """From one send of the generator to the next: no latency is finer."""
        return self.trial.send_interval or (KAFKA_TICK if self.topics else TICK)

    def status(self) -> dict[str, int]:
        """The counts of all drivers together."""
        parts = [line.status() for line in self.lines]
        names = ("published", "acknowledged", "lag", "drops")
        summed = {name: sum(p[name] for p in parts) for name in names}
        return summed | {
            "answered": min(p["answered"] for p in parts),  # of the whole stream, whoever sent it
            "full": any(p["full"] for p in parts),
            "done": all(p["phase"] in ("done", "full") for p in parts),
        }

    def look_at_outputs(self) -> str:
        """A sentence on outputs that cannot be read or counted, as the collector reports it; nothing if all can be."""
        if self.output is not None:
            self.take(self.output.faults())
        return self.unreadable or self.unstamped

    def take(self, said: dict[str, Any]) -> None:
        """Keep what the collector said of its outputs."""
        self.unreadable, self.unstamped = (str(said.get(name, "")) for name in ("unreadable", "unstamped"))

    def fallen(self) -> str:
        """A sentence on the brokers of ours that have ended; nothing if all stand."""
        return self.topics.kafka.fallen() if self.topics else ""

    def unequal(self) -> tuple[str, ...]:
        """Whether what was sent, acknowledged and stored differ: then the trial says nothing."""
        if self.topics is None or not self.words:
            return ()
        sent, acknowledged = (sum(said[name] for said in self.words) for name in ("sent", "published"))
        stored = self.topics.stored(sent)
        if sent == acknowledged == stored:
            return ()
        return (
            f"{sent:,} events were sent, the broker acknowledged {acknowledged:,}, and its log contains {stored:,}: "
            "events were lost or duplicated between generator and broker",
        )

    def transport_facts(self) -> TransportFacts | None:
        """What is stored about the transport; None for the queue."""
        if self.topics is None:
            return None
        clock = together([self.clock, *(word.get("clock") for word in self.words)])
        return self.topics.kafka.facts(self.topics.leader, clock)


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
    trial: Trial,
    folder: Path,
    placement: Placement,
    launcher: Launcher,
    tail: int,
    *,
    rewrite: Rewrite,
    promise: Promise = Promise(),  # noqa: B008 (frozen)
    kafka: "Kafka | None" = None,
) -> Iterator[tuple[Stage, Endpoints]]:
    """Drivers and collector, ready and waiting; on Kafka with fresh topics."""
    pa.array([0])  # the controller shares the driver's core: what Arrow loads at its first use is not loaded under load
    stage = Stage(trial, folder, placement)
    partitions = trial.partitions or max(1, len(placement.sut), trial.drivers)
    workload = workloads()[trial.workload]
    streams = [each.name for each in require_streams(workload, workload.params.from_resolved(trial.params))]
    with kafka.topics(trial.number, streams, partitions, placement.driver) if kafka else nullcontext() as topics:
        stage.topics = topics
        try:
            yield stage, _cast(stage, launcher, tail, partitions, rewrite=rewrite, promise=promise)
        finally:
            for line in (*stage.lines, *([stage.output] if stage.output else [])):
                line.close()
            if topics is not None:  # nobody writes into a topic that is about to go
                for process in (*stage.drivers, *([stage.collector] if stage.collector else [])):
                    process.stop()


def _cast(
    stage: Stage,
    launcher: Launcher,
    tail: int,
    partitions: int,
    *,
    rewrite: Rewrite,
    promise: Promise,
) -> Endpoints:
    """Start drivers and collector; where the system under test finds them."""
    trial, folder, placement, tokens = stage.trial, stage.folder, stage.placement, Tokens.new()
    workload = workloads()[trial.workload]
    params = workload.params.from_resolved(trial.params)
    ends = stage.topics.ends if stage.topics else None
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
            profiles=profiles_of(workload.streams(params), trial.profile),
            horizon_ns=horizon(trial, tail),
            partitions=partitions,
            mine=tuple(range(number, partitions, count)),
            tick_ns=stage.tick_ns,
            bound_events=trial.queue_bound // count,
            bound_bytes=_memory_bound() // count,
            kafka=trial.transport.options if ends else None,
        )
        stage.drivers.append(launcher.start(driver_child(rewrite(order), tokens, placement.driver, ends), folder))
        stage.lines.append(DriverLine(endpoint, tokens))
    collect = _collecting(outputs, folder, workload.output(params), promise)
    stage.collector = launcher.start(collector_child(collect, tokens, placement.driver, ends), folder)
    stage.output = CollectorLine(outputs, tokens, _READING if ends else _WRITING)
    cache = stage.topics.kafka.ground.cache if stage.topics else None
    return Endpoints(queues, outputs, partitions, folder, placement.sut, tokens.sut, ends, cache)


def _collecting(endpoint: str, folder: Path, output: OutputContract, promise: Promise) -> CollectOrder:
    return CollectOrder(
        endpoint=endpoint,
        folder=folder,
        firing=output.window_column,
        columns=output.schema,
        identity=output.identity,
        last_row_wins=promise.last_row_wins and not output.one_output_per_event,
    )


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
        stage.take(stage.output.finish())
        stage.output.quit()
        stage.collector.wait(10)
    for driver, line in zip(stage.drivers, stage.lines, strict=True):
        if driver.alive():
            if stage.topics is not None:
                stage.words.append(_last_words(line))
            line.quit()
            driver.wait(10)
    if stage.topics is not None and not stage.fallen():
        stage.clock = stage.topics.probe_clock()


def _last_words(line: DriverLine) -> dict[str, Any]:
    """What a driver says once it sends nothing more and the broker has acknowledged all."""
    line.stop()
    ends = time.monotonic() + _LAST_WORDS
    while (said := line.status())["phase"] not in ("done", "full") and time.monotonic() < ends:
        time.sleep(0.02)
    return said


def horizon(trial: Trial, tail: int) -> int:
    """How far the plan of a trial goes: its longest length, a wait for an acknowledgement and its tail, with room."""
    warmup = trial.warmup if trial.warmup is not None else trial.warmup_limit
    return max(trial.limit, trial.duration) + warmup + trial.stall + tail + 60 * SECOND


def _memory_bound() -> int:
    """Bytes that may wait in the queues: a quarter of what the machine has."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return pages * size // 4
