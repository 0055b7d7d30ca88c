"""Measurement and Verdict: a trial in numbers, and the conclusion from them."""

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
    """Lag-1 correlation for which the interval was widened."""
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
    """Rows among them that never came. Each counts with the time for which it has been missing."""


@dataclass(frozen=True, slots=True)
class Floor:
    """How often lag returned to its floor, that of a system which keeps up, in the second half of a trial."""

    visits: int
    """Acknowledgements at which lag was at its floor."""
    before: float
    """Judged seconds before the second half."""
    step: float
    """Seconds between two acknowledgements, on average."""
    slack: float
    """Seconds of load by which the limit for the floor is above the trigger, or the lowest lag if that is less."""
    noise: float
    """Standard deviation of lag per square root of a second, as a share of the load."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A trial in numbers. Rates are events per second, times nanoseconds."""

    load: float
    """Mean of the planned events per second over the judged seconds. Every share of the load refers to it."""
    published_rate: float
    served_rate: float
    warmup_seconds: int
    judged_seconds: int
    steady: bool
    runaway: bool
    """The lag grew without bound, so fast that a few acknowledgements show it."""
    lag_trend: Interval | None
    latency_trend: Interval | None
    capacity: Interval | None
    """Processing rate: events acknowledged per second while events waited. None if none waited."""
    lag_start: float
    lag_end: float
    lag_corridor: float
    """Largest minus smallest lag, in events."""
    latency_corridor: float
    """Largest minus smallest mean event-time latency of a second, in seconds."""
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
    """Time from when an event was due until the broker had appended it; 0 on the queue."""
    append_delay_worst: float = 0.0
    hiccups: dict[str, float] = field(default_factory=dict)
    """Statistics of the longest time in each second in which the load driver was not woken; empty if it always was."""
    collector_hiccups: dict[str, float] = field(default_factory=dict)
    """The same for the process of the collector."""
    skew: float = 0.0
    """The largest distance between two partitions, in nanoseconds of event time."""
    achieved_share: float = 1.0
    run_delay_share: float = 0.0
    foreign_share: float = 0.0
    steal_share: float = 0.0
    clock_step: float = 0.0
    sut_cpu_seconds: float = 0.0
    driver_cpu_seconds: float = 0.0
    lag_spread: float = 0.0
    """Standard deviation of the lag around its trend, in events."""
    lag_reversion: float = 0.0
    """How clearly the lag returns to its mean: the t statistic of Dickey and Fuller."""
    lag_seconds: float = 0.0
    """Time from the first to the last judged acknowledgement."""
    lag_late: float | None = None
    """Mean growth of the lag in the second half only, in events per second; None: unknown."""
    latency_late: float | None = None
    """The same of the latency, in seconds per second."""
    lag_recent: Interval | None = None
    """The same with its error, for systems with micro-batches; None for others, or with too few acknowledgements."""
    lag_floor: Floor | None = None
    """How often the lag returned to its floor; None: too few acknowledgements."""
    carries: float = 0.0
    """Events per second that the cores of the system could process if they were never idle, by the CPU time per event;
    0: its cores are unknown."""


NEGLIGIBLE_SHARE = 0.01
"""If other processes used at most this share of the system's cores, a failed trial counts as undisturbed."""


class VerdictKind(StrEnum):
    SUSTAINED = "SUSTAINED"
    OVERLOADED = "OVERLOADED"
    FAILED = "FAILED"
    INVALID = "INVALID"
    UNDECIDED = "UNDECIDED"


ObjectiveState = Literal["holds", "broken", "unclear"]


@dataclass(frozen=True, slots=True)
class Check:
    """One objective against one measurement."""

    objective: str
    state: ObjectiveState
    value: float
    threshold: float
    sentence: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate of the highest load that meets the objectives, in events per second, with its standard error."""

    boundary: float
    error: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one trial. Every reason is a sentence with a measured value and what to do next."""

    kind: VerdictKind
    reasons: tuple[str, ...]
    checks: tuple[Check, ...] = ()
    estimate: Estimate | None = None
    stops_run: bool = False
    """Wrong or missing output, or a system that failed before any load. The search cannot continue."""
    carries: float = 0.0
    """As in the measurement. It only helps to choose the next load and confirms nothing."""
    taken: float = 0.0
    """Share of the system's cores that other processes used in a trial which is OVERLOADED because of its trend. At the
    load L, such a trial shows that L / (1 − taken) fails. It shows nothing about L."""

    @property
    def holds(self) -> bool | None:
        """Whether the load passes: True, False, or None if the trial does not decide it."""
        if self.kind is VerdictKind.SUSTAINED:
            return True
        if self.kind is VerdictKind.OVERLOADED and self.taken > NEGLIGIBLE_SHARE:
            return None
        return False if self.kind in (VerdictKind.OVERLOADED, VerdictKind.FAILED) else None
