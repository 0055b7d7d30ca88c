"""Experiment: everything that an experiment file defines, with all defaults resolved. ``parse`` reads the file."""

from dataclasses import dataclass, field
from typing import Any, Literal

from streamgauge.model.objective import Objective
from streamgauge.model.profile import LoadProfile
from streamgauge.model.units import SECOND

QUEUE = "queue"
"""The transport in the memory of the load driver."""


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A transport, its resolved options, and what the judge needs of it (``transports.registry.choice_of``).

    The options contain no secret, only the place where each secret is stored.
    """

    name: str = QUEUE
    options: dict[str, Any] = field(default_factory=dict)
    broker: bool = False
    """Whether a broker outside the load driver stores events and outputs: it can be late, and it stamps records."""
    exact_offsets: bool = True
    """Whether every event and output is counted at the transport itself, so that a disturbance never explains outputs
    that are lost, duplicate or wrong."""


Goal = Literal["sustainable-throughput", "demand", "capacity", "extreme", "stages", "nothing"]
Strategy = Literal["adaptive", "from-above", "linear", "binary", "full"]
Unit = Literal["rate", "count", "duration", "share"]


@dataclass(frozen=True, slots=True)
class Dimension:
    """A parameter of the workload that makes the work harder, and the direction in which it does."""

    name: str
    unit: Unit
    harder: Literal["higher", "lower"]
    summary: str


LOAD = Dimension("load", "rate", "higher", "events per second offered to the system under test")
INSTANCES = Dimension("instances", "count", "lower", "instances of the system under test")


@dataclass(frozen=True, slots=True)
class Span:
    """The values of a dimension to test: a range or a list."""

    between: tuple[float, float] | None = None
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadChoice:
    """A workload and its resolved parameters."""

    name: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine and its resolved options; ``label`` distinguishes two entries with the same engine."""

    label: str
    name: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """How the search chooses its trials."""

    strategy: Strategy = "adaptive"
    precision: float = 0.05
    lower_bound: bool = True
    """For demand: do not test numbers of instances that failed at a lower load (Theodolite §6)."""
    also: tuple[float, ...] = ()
    """For the sustainable throughput: shares of it that are measured after the search (Karimov: 90 %)."""
    starts: int = 1
    """How often the whole search is repeated, each time with new processes."""


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """How long each trial is and how often it is repeated. Times are in nanoseconds."""

    duration: int = 60 * SECOND
    warmup: int | None = None
    """None: a steady-state test ends the warm-up, at the latest after ``warmup_limit``."""
    warmup_limit: int = 60 * SECOND
    limit: int = 300 * SECOND
    """A trial that is not decided is extended up to this length after the warm-up."""
    repetitions: int = 1
    early: bool = True
    queue_bound: int = 0
    """Events that may wait in the queue; 0: limited only by memory."""
    invalid_retries: int = 2
    partitions: int = 0
    """Partitions of each stream; 0: as many as the system under test has cores, and at least one per load driver."""
    drivers: int = 1
    """Load driver processes, which share the partitions."""
    stall: int = 30 * SECOND
    """A system that acknowledges nothing for this long while events wait has stalled."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A workload, the engines, what to find, the objectives and the search."""

    name: str
    workload: WorkloadChoice
    engines: tuple[EngineChoice, ...]
    what: Goal
    objectives: tuple[Objective, ...]
    dimension: Dimension = LOAD
    span: Span = Span()
    """Values of the searched dimension; for demand and capacity, the loads."""
    instances: Span = Span(values=(1.0,))
    profile: LoadProfile | None = None
    """The load if it is not searched. If it is searched, the search scales this profile."""
    search: SearchPlan = SearchPlan()
    trial: TrialPlan = TrialPlan()
    seed: int = 1
    description: str = ""
    ceiling: float | None = None
    """The maximum reliable load of this machine; set when a run begins."""
    transport: TransportChoice = TransportChoice()
    stages: tuple[str, ...] = ()
    """For stages: the names of those that are measured. The values of the dimension are their numbers."""

    @property
    def searches(self) -> bool:
        """Whether values are searched; if not, every value is measured once."""
        return self.what not in ("stages", "nothing")
