"""Calibration: how far the harness can be believed on one machine, in one placement."""

from dataclasses import dataclass

CLIP = 0.8
"""A search goes up to this share of the driver's ceiling; past it the driver would be measured."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the driver can do, in events and rows per second, and how late its ticks are, in nanoseconds."""

    queue: float
    collector: float
    rate: float
    """The rate at which the schedule lag was measured."""
    lag_p50: float
    lag_p99: float
    lag_max: float

    @property
    def most(self) -> float:
        """The highest load that a search may try."""
        return CLIP * self.queue


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

    def problems(self) -> list[tuple[str, str]]:
        """Verdict and reason of the trials that say nothing: the machine was disturbed, or the harness is wrong."""
        told = [(row.verdict, row.reasons) for row in self.capacities]
        told += [(row.verdict, row.reasons) for row in self.latencies]
        bad = [(v, reason) for v, reasons in told if v in ("INVALID", "FAILED") for reason in reasons]
        return list(dict.fromkeys(bad))
