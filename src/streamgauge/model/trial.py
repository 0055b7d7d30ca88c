"""Trial and Recording: the specification of one measurement, and its result."""

from dataclasses import dataclass
from typing import Any, Literal

from streamgauge.model.experiment import TransportChoice
from streamgauge.model.facts import TrialFacts
from streamgauge.model.profile import LoadProfile, planned_load
from streamgauge.model.seconds import Account, Seconds
from streamgauge.model.units import SECOND

Purpose = Literal["estimate", "probe", "confirm", "measure"]
"""estimate: overloads the system once and measures its processing rate · probe: short, may end early · confirm: full
length, may end early only if it fails · measure: full length, without a search."""

Ending = Literal["completed", "decided", "queue-full", "crashed", "stalled", "dropped", "driver-failed"]
"""How a trial ended. All but the first two end it immediately."""

INTACT: tuple[Ending, ...] = ("completed", "decided", "queue-full")
"""Endings after which the system under test still runs as before."""


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A trial that the search requests: does ``value`` of this dimension meet the objectives?

    ``fixed`` are the dimensions that the series keeps constant, for example ``(("instances", 4.0),)``.
    """

    dimension: str
    value: float
    purpose: Purpose
    fixed: tuple[tuple[str, float], ...] = ()
    repetition: int = 0
    start: int = 0
    """The start of the system under test to which it belongs, if the whole search is repeated."""

    @property
    def line(self) -> str:
        """Name of the series; each series has one finding."""
        return ", ".join(f"{name}={value:g}" for name, value in self.fixed)


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement, with everything that defines it."""

    number: int
    ask: TrialRequest
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
    """Nanoseconds between two steps of the generator; 0: the default of the transport."""
    trigger: int = 0
    """Nanoseconds between two micro-batches by the trigger of the engine; 0: it has none, or processes events as they
    arrive. At most the events of about this time wait at an acknowledgement if the system keeps up."""
    least: int = 0
    """The shortest measurement phase with which it can pass, in nanoseconds, so that a window closes whose outputs can
    be checked; 0: no window has to close."""

    @property
    def load(self) -> float:
        """Mean of the planned events per second in the measurement phase.

        The judged seconds are known only afterwards; ``Measurement.load`` is the mean over them.
        """
        return planned_load(self.profile, self.warmup, self.duration)

    @property
    def may_end_early(self) -> bool:
        """Whether it may pass or fail before its full length."""
        return self.ask.purpose in ("estimate", "probe")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a trial ended, and what was found when its outputs were checked."""

    ending: Ending = "completed"
    detail: str = ""
    log_tail: tuple[str, ...] = ()
    account: Account = Account()
    disturbances: tuple[str, ...] = ()
    """What went wrong in streamgauge or on the machine. Any entry makes the trial INVALID, unless outputs were lost or
    wrong."""
    unaccounted: tuple[str, ...] = ()
    """Why the counts of outputs show nothing about the system under test: the collector ended, or what was sent is not
    what was stored. Any entry makes the trial INVALID."""
    silence: int = 0
    """Nanoseconds without an acknowledgement at the end of a trial that was extended until the next one came; 0: it was
    not extended."""
    users_fault: bool = False
    """The user's own code failed: no other load would change that."""
    unready: bool = False
    """It failed before the load of the trial began: no other load would change that either."""
    watermark: int | None = None
    """Nanoseconds by which the watermark that the job reports stays behind the newest event; None: it reports none."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What happened in a trial: its seconds, its outcome, and the facts on how it was run."""

    trial: Trial
    seconds: Seconds
    outcome: Outcome = Outcome()
    facts: TrialFacts = TrialFacts()
