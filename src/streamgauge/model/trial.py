"""Trial and Recording: the frozen spec of one measurement, and what happened in it."""

from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.model.experiment import TransportChoice
from streamgauge.model.facts import TrialFacts
from streamgauge.model.profile import LoadProfile, planned_load
from streamgauge.model.seconds import Account, Seconds
from streamgauge.model.units import SECOND

Purpose = Literal["estimate", "probe", "confirm", "measure"]
"""estimate: overload once and read the drain rate · probe: short, may end early · confirm: full length,
never ends early · measure: a plain measurement, full length."""

Ending = Literal["completed", "decided", "queue-full", "crashed", "stalled", "dropped", "driver-failed"]
"""How a trial came to its end. All but the first two end it at once."""

INTACT: tuple[Ending, ...] = ("completed", "decided", "queue-full")
"""Endings after which the system under test still runs as before."""


@dataclass(frozen=True, slots=True)
class Ask:
    """What the search wants to know next: does the objective hold at ``value`` of this dimension?

    ``fixed`` are the other coordinates of the line that is searched, such as ``(("instances", 4.0),)``.
    """

    dimension: str
    value: float
    purpose: Purpose
    fixed: tuple[tuple[str, float], ...] = ()
    repetition: int = 0
    start: int = 0
    """Which start of the system under test it is of, where the whole search is repeated."""

    @property
    def line(self) -> str:
        """Name of the line that is searched: one finding each."""
        return ", ".join(f"{name}={value:g}" for name, value in self.fixed)


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement at one point of the search, with everything that defines it."""

    number: int
    ask: Ask
    workload: str
    params: dict[str, Any]
    engine: str
    options: dict[str, Any]
    instances: int
    profile: LoadProfile
    duration: int
    limit: int
    warmup: int | None
    warmup_limit: int
    queue_bound: int
    seed: int
    partitions: int = 0
    drivers: int = 1
    stall: int = 30 * SECOND
    transport: TransportChoice = TransportChoice()
    send_interval: int = 0
    """Nanoseconds from one send of the generator to the next; 0: as the transport has it."""
    trigger: int = 0
    """Nanoseconds between two micro-batches that the engine's trigger makes; 0 where there is none. So much load waits
    at an acknowledgement although the system keeps up."""
    least: int = 0
    """Nanoseconds after warm-up that it must last before it can hold, so that a window closes whose outputs can be
    checked; 0 where none has to."""

    @property
    def load(self) -> float:
        """Events per second that this trial is to offer while it is judged, on average.

        Which seconds were judged is known afterwards: ``Measurement.load`` is the mean over those.
        """
        return planned_load(self.profile, self.warmup, self.duration)

    @property
    def may_end_early(self) -> bool:
        return self.ask.purpose in ("estimate", "probe")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended, and what was found when its outputs were checked."""

    ending: Ending = "completed"
    detail: str = ""
    log_tail: tuple[str, ...] = ()
    account: Account = Account()
    disturbances: tuple[str, ...] = ()
    """What went wrong on the driver's side; any entry makes the trial INVALID, unless outputs were lost or wrong."""
    unaccounted: tuple[str, ...] = ()
    """Why the counts of outputs say nothing about the system under test: the collector ended, or what was sent is not
    what was stored. Any entry makes the trial INVALID."""
    silence: int = 0
    """Nanoseconds without an acknowledgement at the end of a trial that was extended until the next one came; 0: it was
    not extended."""
    users_fault: bool = False
    """The user's own code failed: no other load would change that."""
    unready: bool = False
    """It failed before the load of the trial began: no other load would change that either."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What happened in a trial: its seconds, its outcome, and the facts on how it was run."""

    trial: Trial
    seconds: Seconds
    outcome: Outcome = Outcome()
    facts: TrialFacts = TrialFacts()
