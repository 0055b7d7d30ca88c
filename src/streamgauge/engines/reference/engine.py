"""The reference engine: a process with known capacity, delays and faults, described for the rest of streamgauge."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from streamgauge import __version__
from streamgauge.engines import toolkit
from streamgauge.engines.contract import (
    Job,
    JobRun,
    Layout,
    Options,
    Requirement,
    Situation,
    System,
    Traits,
)
from streamgauge.engines.toolkit import too_fine
from streamgauge.model.facts import EngineFacts
from streamgauge.model.options import Count, Duration, Rate, Share
from streamgauge.model.units import format_count
from streamgauge.processes.spec import Host
from streamgauge.transports.registry import transports
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

WORKER = "streamgauge.engines.reference.worker"


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


POLL = 3_000_000
"""Nanoseconds between two readings of the queue, if there are no micro-batches."""
MAX_KEYS = 1_000_000
_MICRO = 1_000


class WorkerSpec(BaseModel):
    """What the worker of a trial needs beside the options: its windows and keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window_us: int
    slide_us: int
    watermark_us: int
    keys: int
    seed: int
    window_results: int
    """The faulty outputs are among so many first window results."""
    capacity: float
    """Events per second of all instances together."""


class ReferenceEngine:
    """The engine: options, and one process for all instances, whose capacities add up."""

    name = "reference"
    summary = "a real process with known capacity, delays and faults, to test streamgauge"
    options: type[Options] = ReferenceOptions
    jobs = (Job("windowed-aggregation", transports=frozenset({*transports()})),)

    def check(self, situation: Situation[ReferenceOptions]) -> Sequence[str]:
        """Settings that contradict each other, and what it cannot do with this workload."""
        return [*_contradictions(situation.options), *_beyond_memory(situation), *too_fine(situation)]

    def requirements(self, options: ReferenceOptions, transport: str) -> Sequence[Requirement]:
        """Nothing."""
        return ()

    def layout(self, options: ReferenceOptions, instances: int) -> Layout:
        """All instances share its cores."""
        return Layout(instances, options.cores)

    def traits(self, options: ReferenceOptions) -> Traits:
        """Its outputs wait for their delay."""
        return Traits(batch_interval_ns=int(max(options.batch_interval, POLL)) + int(options.delay))

    def start(self, layout: Layout, options: ReferenceOptions, host: Host) -> AbstractContextManager[System]:
        """Nothing is started before a trial."""

        def deploy(run: JobRun[ReferenceOptions]) -> toolkit.ProcessDeployment:
            details = worker_spec(run, layout).model_dump(mode="json")
            child = toolkit.python_child("reference engine", WORKER, run, host, details)
            return toolkit.ProcessDeployment(child, _facts(run, host))

        return toolkit.per_trial(deploy)


def _contradictions(options: ReferenceOptions) -> Iterator[str]:
    if options.stall_after and not options.stall:
        yield "stall_after needs stall, the length of the stall"
    if options.delay_spread and not options.delay:
        yield "delay_spread has no effect without delay; set delay, or remove delay_spread"
    if options.silent and (options.lose or options.duplicate or options.alter):
        yield "lose, duplicate and alter have no effect with silent: true; remove them"


def _beyond_memory(situation: Situation[ReferenceOptions]) -> Iterator[str]:
    keys = max((p.key_count for p in situation.params if isinstance(p, WindowedAggregationParams)), default=0)
    if keys > MAX_KEYS:
        limit = format_count(MAX_KEYS)
        yield (
            f"the reference engine keeps the sums of all gem packs in memory, at most {limit} of them, and the "
            f"workload has {format_count(keys)}. Set workload.gem_packs to {limit} or less"
        )


def _facts(run: JobRun[ReferenceOptions], host: Host) -> EngineFacts:
    """What is stored with a trial. The queue counts what is read; over others the engine reports its position."""
    reports = not transports()[run.endpoints.transport].queue_counts_reads
    return EngineFacts(
        name=ReferenceEngine.name,
        version=__version__,
        options=run.trial.options,
        settings={"cores": list(host.cores)},
        queue="published − end offset of the last batch that was started" if reports else "",
    )


def worker_spec(run: JobRun[ReferenceOptions], layout: Layout) -> WorkerSpec:
    """The specification of the worker of a trial."""
    o, params = run.options, run.params
    assert isinstance(params, WindowedAggregationParams)
    return WorkerSpec(
        window_us=params.window // _MICRO,
        slide_us=params.slide // _MICRO,
        watermark_us=-(-params.watermark // _MICRO),
        keys=params.key_count,
        seed=run.trial.seed,
        window_results=max(1, run.trial.duration // max(params.slide, o.batch_interval)),
        capacity=o.capacity * layout.instances,
    )


reference = ReferenceEngine()
