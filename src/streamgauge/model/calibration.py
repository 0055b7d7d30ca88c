"""Calibration: the maximum reliable load and the measurement error for one machine, CPU pinning and transport."""

from dataclasses import dataclass

from streamgauge.model.experiment import QUEUE
from streamgauge.model.units import duration_text, format_rate

CALIBRATED_SHARE = 0.8
"""Searches end at this share of the maximum rate. At higher loads the load driver would be the limit."""
UNCALIBRATED_SHARE = CALIBRATED_SHARE / 2
"""Searches end at this share of the maximum rate if no calibration has checked the send delay there."""


@dataclass(frozen=True, slots=True)
class LagProbe:
    """The send delay at one share of the maximum rate. Rates are in events per second, delays in nanoseconds."""

    rate: float
    achieved: float
    lag_p50: float
    lag_p99: float
    lag_worst: float
    """The largest p99 of a second."""
    timely: bool
    """Whether a trial at this rate would be on schedule, with a margin."""
    seconds: float = 3.0
    """Length of the probe: a few seconds, or the length of a trial to confirm the rate."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The rates that the load driver reaches, in events and rows per second, and its send delay in nanoseconds."""

    queue: float
    """The maximum rate from the generator through the queue, or the broker, to a consumer that only reads."""
    collector: float
    """0 over a broker, because its outputs are read after the trial."""
    rate: float
    """The rate at which the send delay was measured."""
    lag_p50: float
    lag_p99: float
    lag_max: float
    believed: float = 0.0
    """The maximum reliable load; 0 in old calibrations, which did not measure it."""
    probes: tuple[LagProbe, ...] = ()
    """All probes, from the highest rate to the lowest."""
    confirmed: bool | None = None
    """Whether the last of these rates was on schedule over the length of a trial, not only in a short probe; None: not
    recorded."""

    @property
    def max_load(self) -> float:
        """The highest load that a search may try."""
        return self.believed or CALIBRATED_SHARE * self.queue


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """One saturated trial: the configured capacity of the reference engine, and the measured one."""

    true: float
    measured: float
    verdict: str
    reasons: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """The relative error of the measurement."""
        return self.measured / self.true - 1 if self.true else float("nan")


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One constant delay: the latencies in the log of the reference engine, and the measured ones, in nanoseconds."""

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
    """All results of one calibration."""

    machine: str
    placement: str
    made: str
    ceilings: Ceilings
    capacities: tuple[CapacityRow, ...] = ()
    latencies: tuple[LatencyRow, ...] = ()
    seconds: float = 0.0
    transport: str = QUEUE
    """The queue, or what the rates over another transport depend on: its name, format and other options."""
    broker: bool = False
    """Whether this transport has a broker."""

    def problems(self) -> list[tuple[str, str]]:
        """Verdict and reason of the trials without a result: the machine was disturbed, or streamgauge has an error."""
        verdicts = [(row.verdict, row.reasons) for row in self.capacities]
        verdicts += [(row.verdict, row.reasons) for row in self.latencies]
        found = [(v, reason) for v, reasons in verdicts if v in ("INVALID", "FAILED") for reason in reasons]
        probes = self.ceilings.probes
        if probes and not probes[-1].timely:
            late = f"p99 send delay {duration_text(probes[-1].lag_p99)}"
            found.append(("INVALID", f"{late} even at {format_rate(probes[-1].rate)}; stop other work on this machine"))
        return list(dict.fromkeys(found))
