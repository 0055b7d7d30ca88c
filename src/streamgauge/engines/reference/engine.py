"""The reference engine as the rest sees it: it describes itself, and its process."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from streamgauge import __version__
from streamgauge.engines.contract import Conditions, Deployment, Endpoints, Failure, Promise, too_fine
from streamgauge.model.facts import EngineFacts, ProbeResult
from streamgauge.model.options import Count, Duration, Options, Rate, Share
from streamgauge.model.trial import Trial
from streamgauge.model.units import format_count
from streamgauge.processes.spec import Child, LineReady, Running, Starts
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams


class ReferenceOptions(Options):
    """Capacity, delays and faults of the reference engine. Times count from the first events that it reads."""

    capacity: Rate = Field(default=1_000_000.0, gt=0, description="events per second that one instance can process")
    delay: Duration = Field(default=0, ge=0, description="time that an output waits before it is released")
    delay_spread: Share = Field(default=0.0, ge=0, le=3, description="log-normal spread of that delay; 0 = constant")
    batch_interval: Duration = Field(
        default=0, ge=0, description="trigger interval of micro-batches; 0s = events are processed continuously"
    )
    cores: Count = Field(default=1, ge=1, le=1024, description="number of cores that it gets")
    stall_after: Duration = Field(default=0, ge=0, description="time under load until it stalls")
    stall: Duration = Field(default=0, ge=0, description="how long it then reads nothing; 0s = it never stalls")
    crash_after: Duration | None = Field(
        default=None, ge=0, description="time under load until it crashes; omitted = it does not crash"
    )
    drop_after: Duration | None = Field(
        default=None, ge=0, description="time under load until it closes a stream before its end"
    )
    lose: Count = Field(default=0, ge=0, description="number of outputs that are lost; the seed decides which")
    duplicate: Count = Field(default=0, ge=0, description="number of outputs that are duplicated")
    alter: Count = Field(default=0, ge=0, description="number of outputs that have a wrong sum")
    silent: StrictBool = Field(default=False, description="read the input but produce no output")


class WorkOrder(BaseModel):
    """All that the process needs to know. It comes through standard input, for it holds secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queues: tuple[str, ...]
    outputs: str
    token: str = Field(repr=False)
    kafka: dict[str, Any] | None = Field(default=None, repr=False)
    """What ``KafkaEnds.wire`` says, with the secrets of the cluster; None: events and outputs are on the queue."""
    folder: Path
    query: str
    window_us: int
    slide_us: int
    watermark_us: int
    keys: int
    seed: int
    firings: int
    """Among so many first firings the faulty outputs are."""
    capacity: float
    """Events per second of all instances together."""
    delay_ns: int = 0
    delay_spread: float = 0.0
    batch_interval_ns: int = 0
    stall_after_ns: int = 0
    stall_ns: int = 0
    crash_after_ns: int | None = None
    drop_after_ns: int | None = None
    lose: int = 0
    duplicate: int = 0
    alter: int = 0
    silent: StrictBool = False


POLL = 3_000_000
"""Nanoseconds between two looks into the queue, where there are no micro-batches."""
MOST_KEYS = 1_000_000
_MICRO = 1_000


class ReferenceEngine:
    """The engine: options, and one process for all instances, whose capacities add up."""

    name = "reference"
    summary = "a real process with known capacity, delays and faults, to test streamgauge"
    options: type[Options] = ReferenceOptions
    workloads: frozenset[str] | None = frozenset({"windowed-aggregation"})
    transports: frozenset[str] = frozenset({"queue", "kafka"})
    scales = True

    def check(self, options: dict[str, Any]) -> Sequence[str]:
        """Settings that contradict each other."""
        o = ReferenceOptions.from_resolved(options)
        problems = []
        if o.stall_after and not o.stall:
            problems.append("stall_after needs stall, the length of the stall")
        if o.delay_spread and not o.delay:
            problems.append("delay_spread has no effect without delay; set delay, or remove delay_spread")
        if o.silent and (o.lose or o.duplicate or o.alter):
            problems.append("lose, duplicate and alter have no effect with silent: true; remove them")
        return problems

    def suits(self, options: dict[str, Any], conditions: Conditions) -> Sequence[str]:
        """What it cannot do with this workload."""
        params = [WindowedAggregationParams.from_resolved(values) for values in conditions.params]
        keys = max((each.key_count for each in params), default=0)
        problems, most = [*too_fine(conditions)], format_count(MOST_KEYS)
        if keys > MOST_KEYS:
            problems.append(
                f"the reference engine keeps the sums of all gem packs in memory, at most {most} of them, and the "
                f"workload has {format_count(keys)}. Set workload.gem_packs to {most} or less"
            )
        return problems

    def describe(self, options: dict[str, Any]) -> EngineFacts:
        """Version and settings, for the manifest."""
        return EngineFacts(self.name, __version__, options=options)

    def trigger(self, options: dict[str, Any]) -> int:
        """Nanoseconds between two batches at most while it keeps up, the wait of its outputs with them."""
        o = ReferenceOptions.from_resolved(options)
        return int(max(o.batch_interval, POLL)) + int(o.delay)

    def promise(self, options: dict[str, Any]) -> Promise:
        """The workload's own answer."""
        return Promise()

    @contextmanager
    def deploy(self, trial: Trial, endpoints: Endpoints, starts: Starts) -> Iterator[Deployment]:
        """Start the process; it is ready once it has reached the queue."""
        o = ReferenceOptions.from_resolved(trial.options)
        child = Child(
            name="reference engine",
            argv=(sys.executable, "-m", "streamgauge.engines.reference.worker"),
            cores=endpoints.cores[: o.cores],
            ready=LineReady(),
            secret=work_order(trial, endpoints).model_dump_json(),
        )
        running = starts.start(child, endpoints.folder)
        try:
            facts = self.describe(trial.options)
            facts = replace(facts, settings={"cores": list(child.cores)}, queue=queue_meaning(endpoints))
            yield ReferenceDeployment(running, facts)
        finally:
            running.stop()


class ReferenceDeployment:
    """The process while it runs."""

    def __init__(self, running: Running, facts: EngineFacts) -> None:
        self._running, self._facts = running, facts

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._running.alive()

    def processes(self) -> tuple[Running, ...]:
        """Its one process."""
        return (self._running,)

    def failure(self) -> Failure | None:
        """Nothing more than that its process ended."""
        return None

    def probe(self, since_ns: int, until_ns: int) -> ProbeResult:
        """Nothing: what it knows of itself is in its log, and read when the trial is over."""
        return ProbeResult()

    def describe(self) -> EngineFacts:
        """Version and effective settings, for the manifest."""
        return self._facts

    def end(self) -> None:
        """End the process: it has nothing to clean up."""
        self._running.stop()


def queue_meaning(endpoints: Endpoints) -> str:
    """Over Kafka, what the queue of the report is: the engine tells where each batch ends when it begins to read it.

    Nothing on the queue, which knows what it has served.
    """
    return "" if endpoints.kafka is None else "published − end offset of the last batch that was started"


def work_order(trial: Trial, endpoints: Endpoints) -> WorkOrder:
    """What the process is told of a trial."""
    o = ReferenceOptions.from_resolved(trial.options)
    params = WindowedAggregationParams.from_resolved(trial.params)
    return WorkOrder(
        queues=endpoints.queues,
        outputs=endpoints.outputs,
        token=endpoints.token,
        kafka=endpoints.kafka.wire() if endpoints.kafka else None,
        folder=endpoints.folder,
        query=trial.workload,
        window_us=params.window // _MICRO,
        slide_us=params.slide // _MICRO,
        watermark_us=-(-params.watermark // _MICRO),
        keys=params.key_count,
        seed=trial.seed,
        firings=max(1, trial.duration // max(params.slide, o.batch_interval)),
        capacity=o.capacity * trial.instances,
        delay_ns=o.delay,
        delay_spread=o.delay_spread,
        batch_interval_ns=o.batch_interval,
        stall_after_ns=o.stall_after,
        stall_ns=o.stall,
        crash_after_ns=o.crash_after,
        drop_after_ns=o.drop_after,
        lose=o.lose,
        duplicate=o.duplicate,
        alter=o.alter,
        silent=o.silent,
    )


reference = ReferenceEngine()
