"""Experiment: the user's question, fully resolved. The file that says it is read in ``parse``."""

from dataclasses import dataclass, field
from typing import Any, Literal

from streamgauge.model.objective import Objective
from streamgauge.model.profile import LoadProfile
from streamgauge.model.units import SECOND

QUEUE = "queue"
"""The transport in the memory of the load driver."""


@dataclass(frozen=True, slots=True)
class TransportChoice:
    """A transport and its resolved options. No secret is in them, only where each is to be found."""

    name: str = QUEUE
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def has_broker(self) -> bool:
        """Whether a broker outside the load driver stores events and outputs: it can be late, and it stamps records."""
        return self.name != QUEUE


What = Literal["sustainable-throughput", "demand", "capacity", "extreme", "nothing"]
Strategy = Literal["adaptive", "from-above", "linear", "binary", "full"]
Unit = Literal["rate", "count", "duration", "share"]


@dataclass(frozen=True, slots=True)
class Dimension:
    """Something of the workload (METHOD §4) that can be made harder, and which way that is."""

    name: str
    unit: Unit
    harder: Literal["higher", "lower"]
    summary: str


LOAD = Dimension("load", "rate", "higher", "events per second offered to the system under test")
INSTANCES = Dimension("instances", "count", "lower", "instances of the system under test")


@dataclass(frozen=True, slots=True)
class Span:
    """The values of a dimension to look at: a range to search in, or a list of them."""

    between: tuple[float, float] | None = None
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkloadChoice:
    """A workload and its resolved parameters."""

    name: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine and its resolved options; ``label`` tells two of one kind apart."""

    label: str
    name: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SearchPlan:
    strategy: Strategy = "adaptive"
    precision: float = 0.05
    lower_bound: bool = True
    """For demand: start each load at the demand of the load below it (Theodolite §6)."""
    also: tuple[float, ...] = ()
    """For the sustainable throughput: shares of it that are measured once it is found (Karimov: 90 %)."""
    starts: int = 1
    """How often the whole search is made, each time on processes that were started for it."""


@dataclass(frozen=True, slots=True)
class TrialPlan:
    duration: int = 60 * SECOND
    warmup: int | None = None
    """None: a steady-state test ends it, at the latest after ``warmup_limit``."""
    warmup_limit: int = 60 * SECOND
    limit: int = 300 * SECOND
    """An undecided trial is extended up to this length after warm-up."""
    repetitions: int = 1
    early: bool = True
    queue_bound: int = 0
    """Events that may wait in the queue; 0 leaves it to the transport's memory."""
    invalid_retries: int = 2
    partitions: int = 0
    """Partitions of each stream; 0: as many as the system under test has cores, and at least one per driver."""
    drivers: int = 1
    """Driver instances that share every tick."""
    stall: int = 30 * SECOND
    """A system that acknowledges nothing for so long, while events wait, has stalled."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """workload × dimension × engines × objective × search."""

    name: str
    workload: WorkloadChoice
    engines: tuple[EngineChoice, ...]
    what: What
    objectives: tuple[Objective, ...]
    dimension: Dimension = LOAD
    span: Span = Span()
    """Values of the searched dimension. For demand and capacity: the loads."""
    instances: Span = Span(values=(1.0,))
    profile: LoadProfile | None = None
    """The load where it is not searched; a shape is scaled by the search where it is."""
    search: SearchPlan = SearchPlan()
    trial: TrialPlan = TrialPlan()
    seed: int = 1
    description: str = ""
    ceiling: float | None = None
    """The highest load that the driver can be believed at on this machine; set when a run begins."""
    transport: TransportChoice = TransportChoice()
