"""Measurement and Verdict: a trial in numbers, and what follows from them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from streamgauge.model.seconds import Account, Kind


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % confidence interval; ``error`` is the standard error."""

    mean: float
    low: float
    high: float
    error: float
    samples: int
    correlation: float = 0.0
    """Lag-1 correlation that the interval was widened for."""
    freedom: float = 1.0
    """Degrees of freedom of the t distribution behind the interval."""


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Latency over rows, as Karimov prints it, with the number of window results behind the rows. Nanoseconds."""

    rows: int
    firings: int
    average: float
    least: float
    most: float
    percentiles: dict[str, float] = field(default_factory=dict)
    results: tuple[tuple[int, int], ...] = ()
    """Window results by bucket of their largest latency, in ascending order: what objectives on percentiles count."""
    missing: int = 0
    """Rows among them that never came: they count with what they have waited at least."""


@dataclass(frozen=True, slots=True)
class Floor:
    """How often lag was back at its floor, which is what the trigger alone leaves, in the second half of a trial."""

    visits: int
    """Acknowledgements at which it was."""
    before: float
    """Seconds judged before the second half."""
    step: float
    """Seconds between two acknowledgements, on average."""
    slack: float
    """Seconds of load that what counts as the floor is above the trigger."""
    noise: float
    """What lag strays per root of a second, as a share of the load."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A trial in numbers. Rates are events per second, times nanoseconds."""

    load: float
    """Events per second planned over the judged seconds, on average: what every share of the load is a share of."""
    published_rate: float
    served_rate: float
    warmup_seconds: int
    judged_seconds: int
    steady: bool
    runaway: bool
    """The lag ran away: so fast that a few acknowledgements say it."""
    lag_trend: Interval | None
    latency_trend: Interval | None
    capacity: Interval | None
    """Acknowledged events per second while a backlog was there: what the SUT can do. None if it never was."""
    lag_start: float
    lag_end: float
    lag_corridor: float
    """Range that the lag stayed in, events."""
    latency_corridor: float
    """Range that the mean event-time latency of a second stayed in, seconds."""
    longest_queue: int
    drops: int
    latencies: dict[Kind, LatencySummary]
    account: Account
    negative: int = 0
    schedule_lag_p99: float = 0.0
    """Send delay that 99 % of the events did not exceed."""
    schedule_lag_worst: float = 0.0
    """The largest send delay."""
    append_delay_p99: float = 0.0
    """From when events were due until the broker had appended them; 0 on the queue."""
    append_delay_worst: float = 0.0
    hiccups: dict[str, float] = field(default_factory=dict)
    """The longest time of each second for which the load driver's process was not woken, by statistic; empty: none."""
    collector_hiccups: dict[str, float] = field(default_factory=dict)
    """The same of the collector's process."""
    skew: float = 0.0
    """How far one partition was behind another at most, in nanoseconds of event time."""
    achieved_share: float = 1.0
    run_delay_share: float = 0.0
    foreign_share: float = 0.0
    steal_share: float = 0.0
    clock_step: float = 0.0
    sut_cpu_seconds: float = 0.0
    driver_cpu_seconds: float = 0.0
    lag_spread: float = 0.0
    """Standard deviation of the lag around its own trend, events."""
    lag_reversion: float = 0.0
    """How clearly the lag returns to where it was: the t statistic of Dickey and Fuller."""
    lag_seconds: float = 0.0
    """From the first to the last acknowledgement judged."""
    lag_late: float | None = None
    """Mean growth of the lag in the second half alone, events per second; None: not known."""
    lag_recent: Interval | None = None
    """The same with its error, for systems with micro-batches; None: others, or too few acknowledgements."""
    lag_floor: Floor | None = None
    """How often the lag was back at its floor; None: too few acknowledgements."""
    carries: float = 0.0
    """Events per second that the system's cores would carry if none were ever idle, at the CPU time that an event
    cost; 0: nobody knows its cores."""


SLIGHTLY_TAKEN = 0.01
"""Share of the system's cores taken by others up to which a failure counts as if nothing had been taken."""


class VerdictKind(StrEnum):
    SUSTAINED = "SUSTAINED"
    OVERLOADED = "OVERLOADED"
    FAILED = "FAILED"
    INVALID = "INVALID"
    UNDECIDED = "UNDECIDED"


Holding = Literal["holds", "broken", "unclear"]


@dataclass(frozen=True, slots=True)
class Check:
    """One objective against one measurement."""

    objective: str
    state: Holding
    value: float
    threshold: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """Where the boundary of the objective seems to lie, in events per second, with its standard error."""

    boundary: float
    error: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one trial says, and why: every reason is a sentence with a number and a way out."""

    kind: VerdictKind
    reasons: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    estimate: Estimate | None = None
    stops_run: bool = False
    """Wrong or missing output, or a system that failed before any load: no search can go on."""
    carries: float = 0.0
    """As measured: a hint at where to look next, and no proof of anything."""
    taken: float = 0.0
    """Share of the system's cores that others took from a trial that its trend made OVERLOADED at the load L: it then
    shows that L / (1 − taken) fails, and of L itself nothing."""

    @property
    def holds(self) -> bool | None:
        """What it tells the search of this load: True, False, or nothing."""
        if self.kind is VerdictKind.SUSTAINED:
            return True
        if self.kind is VerdictKind.OVERLOADED and self.taken > SLIGHTLY_TAKEN:
            return None
        return False if self.kind in (VerdictKind.OVERLOADED, VerdictKind.FAILED) else None
