"""TrialFacts: how a trial was run, and what the engine and the transport report about themselves.

What was measured is in ``Seconds``. The facts explain it: they are stored with the trial and shown in the report.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SUT = "system under test"
DRIVER = "driver"
COLLECTOR = "collector"
CONTROLLER = "controller"
BROKER = "broker"
"""The roles of processes. The monitor counts what each role uses; its journal has these names."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine reports about itself."""

    name: str = ""
    version: str = ""
    simulated: bool = False
    """No process ran, and the time was simulated."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the experiment, if the engine repeats them."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Everything else, such as effective settings, the version of Java and the cores that it uses."""
    outputs: tuple[tuple[str, str], ...] | None = None
    """Name and type of each output column of a user's function; None: the workload defines the columns."""
    queue: str = ""
    """How the queue of this engine is computed; empty if the queue itself counts the events that were read."""
    unchecked_job: bool = False
    """The job is a function of the user, and no function of the user computes its expected results."""
    describe_failed: str = ""
    """Why the engine could not describe itself."""
    emits_early: bool = False
    """The job emits rows before their window is complete, so their latency has no wait for the end of the window."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One reason for the engine's throughput, as a sentence with its figure."""

    what: str
    share: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class MicroBatches:
    """How many micro-batches ended in the measurement phase, and how long they took. Milliseconds."""

    count: int = 0
    mean_ms: float = 0.0
    longest_ms: float = 0.0
    trigger_ms: float | None = None
    """The trigger interval; None if a micro-batch starts as soon as the one before it has ended."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The engine's own numbers of the measurement phase. They explain the result and never decide it."""

    explanation: tuple[Explanation, ...] = ()
    """The largest share first."""
    micro_batches: MicroBatches | None = None


@dataclass(frozen=True, slots=True)
class ClockDifference:
    """How far the clock of a broker is from that of the load driver, from so many probes. Milliseconds."""

    offset_ms: float
    within_ms: float
    probes: int = 0


@dataclass(frozen=True, slots=True)
class TransportFacts:
    """How events and outputs were transported."""

    name: str
    sentence: str
    """What a reader must know about it: product, version, where it runs, format and guarantees."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    clock: ClockDifference | None = None
    """None: the transport has no separate clock, or its clock was not measured."""


@dataclass(frozen=True, slots=True)
class WarmUp:
    """How the system under test was started and warmed up before the trials that it served. None: not known."""

    started: float | None = None
    """Seconds that the start took."""
    seconds: float | None = None
    """Seconds that the warm-up took."""
    load: float | None = None
    """Events per second of the warm-up."""
    cost_us: tuple[float, ...] = ()
    """Microseconds of CPU time per event, from one part of the warm-up to the next."""
    steady: bool | None = None
    """Whether this cost became stable."""
    estimated_limit: float | None = None
    """Events per second that a growing load showed to be about the limit."""


@dataclass(frozen=True, slots=True)
class Phases:
    """Seconds of wall-clock time that the parts of a trial took. None: not recorded."""

    starting: float | None = None
    load: float | None = None
    tail: float | None = None
    checking: float | None = None


@dataclass(frozen=True, slots=True)
class RoleUsage:
    """What the processes of one role used on average in the measurement phase: cores, and bytes of disk per second."""

    cores: float
    read_per_s: float
    written_per_s: float


@dataclass(frozen=True, slots=True)
class RowLatencies:
    """Event-time latency of the first rows, or of the last rows, of all windows. Milliseconds."""

    rows: int
    p50_ms: float
    p90_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class UpdateLatencies:
    """Latencies of windows that were emitted at every change; empty if each window was emitted once."""

    first: RowLatencies | None = None
    last: RowLatencies | None = None


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """Everything that is recorded about how a trial was run. A default means: not known, or it does not apply."""

    engine: EngineFacts = EngineFacts()
    transport: TransportFacts | None = None
    placement: str = ""
    """CPU pinning, as a sentence."""
    driver_cores: tuple[int, ...] = ()
    sut_cores: tuple[int, ...] = ()
    start_ns: int | None = None
    """When the load began, on the monotonic clock."""
    wall_ns: int | None = None
    """The same moment on the wall clock, since 1970."""
    segment_ns: int | None = None
    """When the run, or its last resume before this trial, began; on the wall clock, since 1970."""
    send_interval_ns: int = 0
    """Time from one send of the load driver to the next."""
    phases: Phases | None = None
    warm_up: WarmUp | None = None
    roles: Mapping[str, RoleUsage] = field(default_factory=dict)
    explanation: tuple[Explanation, ...] = ()
    micro_batches: MicroBatches | None = None
    updates: UpdateLatencies = UpdateLatencies()
    probe_failed: str = ""
    """Why the engine could not report its own numbers."""
