"""Calibration: how far the harness can be believed on one machine, in one placement, over one transport."""

from dataclasses import dataclass

from streamgauge.model.experiment import QUEUE
from streamgauge.model.units import format_duration, format_rate

CLIP = 0.8
"""A search never goes beyond this share of the driver's flat-out rate; past it the driver would be measured."""
UNPROVEN = CLIP / 2
"""The share that is believed where nobody looked whether ticks are in time there."""


@dataclass(frozen=True, slots=True)
class LagProbe:
    """How late ticks were at one share of the flat-out rate. Rates in events per second, lags in nanoseconds."""

    rate: float
    achieved: float
    lag_p50: float
    lag_p99: float
    lag_worst: float
    """The p99 of the worst second."""
    timely: bool
    """Whether a trial at this rate would be safely within the bounds of a valid one."""
    seconds: float = 3.0
    """How long it was looked: a few seconds, or the length of a trial to confirm the rate."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the driver can do, in events and rows per second, and how late its ticks are, in nanoseconds."""

    queue: float
    """From the generator through the queue, or the broker, to a consumer that does nothing, flat out."""
    collector: float
    """0 over a broker: its outputs are read when the trial is over."""
    rate: float
    """The rate at which the schedule lag was measured."""
    lag_p50: float
    lag_p99: float
    lag_max: float
    believed: float = 0.0
    """The highest load at which ticks were safely in time; 0 in calibrations from before this was looked at."""
    probes: tuple[LagProbe, ...] = ()
    """Where it was looked, from the highest rate down."""
    confirmed: bool | None = None
    """Whether events were in time at the last of these rates over the length of a trial, and not in a short probe only;
    None in calibrations from before this was recorded."""

    @property
    def most(self) -> float:
        """The highest load that a search may try."""
        return self.believed or CLIP * self.queue


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """One saturated trial: the capacity that the reference engine really had, and the one that was measured."""

    true: float
    measured: float
    verdict: str
    reasons: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        return self.measured / self.true - 1 if self.true else float("nan")


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One constant delay: latencies by the reference engine's own log, and as measured, in nanoseconds."""

    delay: float
    firings: int
    true_p50: float
    measured_p50: float
    true_p99: float
    measured_p99: float
    verdict: str
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that was calibrated."""

    machine: str
    placement: str
    made: str
    ceilings: Ceilings
    capacities: tuple[CapacityRow, ...] = ()
    latencies: tuple[LatencyRow, ...] = ()
    seconds: float = 0.0
    transport: str = QUEUE
    """The queue, or what the rates over another transport depend on: its name, format and other options."""

    def problems(self) -> list[tuple[str, str]]:
        """Verdict and reason of the trials that say nothing: the machine was disturbed, or the harness is wrong."""
        told = [(row.verdict, row.reasons) for row in self.capacities]
        told += [(row.verdict, row.reasons) for row in self.latencies]
        bad = [(v, reason) for v, reasons in told if v in ("INVALID", "FAILED") for reason in reasons]
        probes = self.ceilings.probes
        if probes and not probes[-1].timely:
            late = f"p99 send delay {format_duration(probes[-1].lag_p99)}"
            bad.append(("INVALID", f"{late} even at {format_rate(probes[-1].rate)}; stop other work on this machine"))
        return list(dict.fromkeys(bad))
