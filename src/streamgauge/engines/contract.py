"""The contract of an engine. A plug-in is one object that satisfies it and one entry point.

An engine connects a system under test. `start` gives a `System` on a layout, and `System.deploy` runs
the job of one trial. A simulated engine has no processes: it computes a trial.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from streamgauge.install.requirements import Requirement
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.facts import EngineFacts, ProbeResult
from streamgauge.model.layout import Layout
from streamgauge.model.options import Options, Params
from streamgauge.model.seconds import Seconds
from streamgauge.model.streams import Position
from streamgauge.model.trial import Outcome, Trial
from streamgauge.processes.spec import Host, RunningProcess
from streamgauge.transports.contract import Endpoints
from streamgauge.workloads.contract import OutputContract, Stream

__all__ = [
    "CustomJob",
    "Deployment",
    "DoesNotScale",
    "Endpoints",
    "Engine",
    "Failure",
    "Host",
    "Job",
    "JobRun",
    "Layout",
    "Options",
    "Position",
    "RealEngine",
    "Requirement",
    "SimulatedEngine",
    "Simulation",
    "Situation",
    "System",
    "Traits",
    "UserCodeFailed",
    "Watermark",
]

ANY_WORKLOAD = "*"
DEFAULT_VARIANT = "default"


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the table of what runs: a workload that an engine implements in one variant, over these transports."""

    workload: str
    """The name of a workload; ``*``: any workload that makes events."""
    variant: str = DEFAULT_VARIANT
    transports: frozenset[str] = frozenset({TransportChoice().name})


O_co = TypeVar("O_co", bound=Options, covariant=True)
"""An engine's own class of options."""


@dataclass(frozen=True, slots=True)
class Situation(Generic[O_co]):
    """What an experiment requires from an engine: everything that can be checked before the first trial."""

    options: O_co
    workload: str = ""
    params: tuple[Params, ...] = ()
    """The parameters of the workload: one set, or one for each value of a parameter that is searched."""
    ranged: str = ""
    """The parameter that is searched over a range, whose ends ``params`` has; empty if none is."""
    transport: str = TransportChoice().name
    transport_options: Mapping[str, Any] = field(default_factory=dict)
    partitions: int = 0
    """Of each stream; 0: as many as the system under test has cores."""


class DoesNotScale(ValueError):
    """The engine cannot be deployed on so many instances; the message names the change."""


@dataclass(frozen=True, slots=True)
class JobRun(Generic[O_co]):
    """The job of one trial: what it reads, what it computes and where its outputs go."""

    trial: Trial
    options: O_co
    params: Params
    streams: tuple[Stream, ...]
    output: OutputContract
    endpoints: Endpoints
    folder: Path
    """The folder of the trial: logs and the engine's own files go there."""
    restart: int = 0
    """How many systems ran this job before and were killed. Only engines with ``Traits.restarts`` get more than 0."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a system under test ended, if more is known than that its process has ended."""

    message: str
    trace: tuple[str, ...] = ()
    user_error: bool = False
    """Whether the user's own code or settings are the cause."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """The watermark that a running job reports, if the job sets one itself. Microseconds."""

    passed: int
    """Since 1970: all rows of windows that end there or before are out."""
    delay: int
    """How far it stays behind the newest event."""


class UserCodeFailed(ValueError):
    """Code of the user failed; the message gives the error, and ``trace`` the place."""

    def __init__(self, sentence: str, trace: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.trace = tuple(trace)


ReferenceFunction = Callable[[pa.Table, dict[str, Any]], pa.Table]
"""A user's function from events and parameters to the expected outputs."""


@dataclass(frozen=True, slots=True)
class CustomJob:
    """A job of the user: the reference result of the workload does not apply to it."""

    load_reference: Callable[[], ReferenceFunction] | None = None
    """Imports the user's reference function, or raises UserCodeFailed; None: its outputs are not checked."""
    keys: tuple[str, ...] = ()
    """In update mode: the columns that distinguish the rows of one window; empty: those that the events have too."""


@dataclass(frozen=True, slots=True)
class Traits:
    """How an engine behaves with these options, as far as a trial or a search must know it."""

    batch_interval_ns: int
    """Between two micro-batches at most while it keeps up, and the delay of its outputs with it."""
    simulated: bool = False
    """It has no processes and computes trials in simulated time."""
    continuous: bool = False
    """It processes events as they arrive, not in micro-batches."""
    updates: bool = False
    """A window may be emitted many times, and its last row must be right."""
    closes_windows: bool = True
    """It emits a window of the workload once, when it is final."""
    emits_early: bool = False
    """It emits rows before their window is complete, each once: ``max_due`` is that of the events of the row."""
    shared: bool = False
    """One system of it serves many trials."""
    warm_load: float = 0.0
    """Events per second at which a new system is warmed up."""
    warm_limit_ns: int = 0
    """The longest warm-up; 0: none."""
    warm_min_ns: int = 0
    """The shortest warm-up, if the cost of an event rests for a while before it falls further."""
    warm_options: Mapping[str, Any] = field(default_factory=dict)
    """Options that differ while it is warmed up."""
    custom: CustomJob | None = None
    restarts: bool = False
    """A new system continues the job of one that was killed, from what that one has stored in the trial's folder."""


class Deployment(Protocol):
    """The job of one trial while it runs."""

    def alive(self) -> bool: ...

    def failure(self) -> Failure | None:
        """Why it ended, if more is known than that its process has ended."""

    def position(self) -> Position | None:
        """How far it is in each partition, and since when; None: it acknowledges at the queue itself."""

    def probe(self, since_ns: int, until_ns: int) -> ProbeResult:
        """The engine's own numbers between two moments of the monotonic clock. They explain, and never decide."""

    def watermark(self) -> Watermark | None:
        """The watermark that the job reports if it sets one itself; None if it sets none."""

    def describe(self) -> EngineFacts:
        """Versions and effective settings."""

    def end(self) -> None:
        """Read and write nothing more. Leaving the context ends what is left."""


class System(Protocol):
    """A system under test that is up on its layout. It runs one job after the other."""

    def deploy(self, run: JobRun[Any]) -> AbstractContextManager[Deployment]:
        """Start the job of a trial; yields once it consumes. Leaving the context ends it and cleans up."""

    def alive(self) -> bool: ...

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """Its processes by role; all that they start is below them."""

    def leftovers(self) -> Sequence[str]:
        """What the last job left behind, a sentence each. With any, it is not used again."""


@runtime_checkable
class Engine(Protocol):
    """A system under test."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def options(self) -> type[Options]: ...

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The workloads that it implements. Every row is tested by the conformance suite."""

    def layout(self, options: Any, instances: int) -> Layout:  # noqa: ANN401 - the engine's own options
        """What it gets with so many instances, or with those of its options if they are more; raises DoesNotScale."""

    def traits(self, options: Any) -> Traits:  # noqa: ANN401
        """How it behaves with these options."""

    def check(self, situation: Situation[Any]) -> Sequence[str]:
        """Every reason why this cannot be run, each a sentence with its fix."""

    def requirements(self, options: Any, transport: str) -> Sequence[Requirement]:  # noqa: ANN401
        """What it needs from the system to read from this transport; nothing if it is simulated."""


@runtime_checkable
class RealEngine(Engine, Protocol):
    """An engine with processes."""

    def start(self, layout: Layout, options: Any, host: Host) -> AbstractContextManager[System]:  # noqa: ANN401
        """Start a system; leaving the context ends it. Raises LaunchError with the end of its log."""


class Simulation(Protocol):
    """A trial in simulated time, computed as far as it is read."""

    def seconds(self) -> Iterator[Seconds]:
        """Parts of the trial, one after the other, up to its limit or its own end."""

    def outcome(self, stop: int) -> Outcome:
        """How the trial ended, if it was stopped after second ``stop``."""


@runtime_checkable
class SimulatedEngine(Engine, Protocol):
    """An engine in simulated time: no clock, no process."""

    def describe(self, options: Any) -> EngineFacts:  # noqa: ANN401
        """What is stored with a trial."""

    def simulate(self, trial: Trial, work: float) -> Simulation:
        """Compute a trial; ``work`` is that of one event."""


def scales(engine: Engine, options: Options) -> bool:
    """Whether an engine can be deployed on several instances."""
    try:
        engine.layout(options, 2)
    except DoesNotScale:
        return False
    return True
