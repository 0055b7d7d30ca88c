"""Calibrate: how far this harness can be believed on this machine, before any real engine is measured.

Ceilings of generator, queue and collector and the schedule lag, in the placement that runs will use; then the
reference engine, whose capacity and delays are known, is measured as any engine would be.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from streamgauge.engines.reference import reference
from streamgauge.engines.reference.options import ReferenceOptions
from streamgauge.engines.reference.truth import truth
from streamgauge.judge import Watch, decide, measure
from streamgauge.model.calibration import Calibration, CapacityRow, Ceilings, LagProbe, LatencyRow
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant
from streamgauge.model.trial import Ask, Recording, Trial
from streamgauge.model.units import SECOND, format_duration, format_rate
from streamgauge.run.ceilings import PROBE, ScheduleLag, collector_ceiling, queue_ceiling, schedule_lag, timely_rates
from streamgauge.run.clock import elapsed_ns, now
from streamgauge.run.launch import Launcher
from streamgauge.run.perform import perform
from streamgauge.run.place import Placement
from streamgauge.run.watching import Silence, Unkept
from streamgauge.store.calibrations import workspace
from streamgauge.store.durable import make_folder
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

CAPACITIES = (50e3, 200e3, 500e3, 1e6, 2e6)
DELAYS = (5_000_000, 50_000_000, 500_000_000)
ABOUT = 150 * SECOND
"""How long a calibration takes on two cores; said before it begins."""
LAG_RATE = 1e6
OBJECTIVES = (
    Objective("lag-trend", "<=", 0.01, relative=True, text="lag-trend <= 1%"),
    Objective("lost", "==", 0.0, text="lost == 0"),
)
_OVERLOAD = 1.3
_LENGTH = 6 * SECOND
"""Enough for a trend; after 4 s there are too few seconds for one."""
_LONGEST = 170 * SECOND
"""A calibration takes three minutes at most: a trial that was disturbed is repeated only while there is time."""
_WARMUP = 2 * SECOND
_SLIDE = 10_000_000
"""Six hundred firings: the p99 is then not the one moment at which the machine looked elsewhere."""

Say = Callable[[str], None]
Row = TypeVar("Row", CapacityRow, LatencyRow)


def calibrate(
    root: Path, machine: str, token: str, placement: Placement, *, say: Say, runtime: Path | None = None
) -> Calibration:
    """Everything, one after the other; nothing of it stays but the result."""
    begun, cores = elapsed_ns(), max(1, len(placement.sut))
    with workspace(root, token) as folder:
        found = ceilings(folder, placement, say, runtime)
        told: dict[str, Any] = {"cores": cores, "say": say, "runtime": runtime}
        left = reversed(range(len(CAPACITIES) + len(DELAYS)))
        capacities = tuple(
            _undisturbed(partial(_capacity, rate=r, **told), folder, begun, next(left)) for r in CAPACITIES
        )
        latencies = tuple(_undisturbed(partial(_latency, delay=d, **told), folder, begun, next(left)) for d in DELAYS)
    spent = (elapsed_ns() - begun) / SECOND
    return Calibration(machine, placement.sentence, now().isoformat(), found, capacities, latencies, spent)


def _undisturbed(attempt: Callable[[Path], Row], folder: Path, begun: int, left: int) -> Row:
    """An INVALID trial is repeated, as in a run, if there is time for that and for the ``left`` ones after it."""
    before = elapsed_ns()
    row = attempt(folder / "first")
    took = elapsed_ns() - before
    again = row.verdict == "INVALID" and elapsed_ns() - begun + (left + 1) * took <= _LONGEST
    return attempt(folder / "second") if again else row


def ceilings(folder: Path, placement: Placement, say: Say, runtime: Path | None = None) -> Ceilings:
    """What the driver can do in this placement, and how late its ticks are."""
    with Launcher(runtime) as launcher:
        say("ceiling of generator and queue")
        queue = queue_ceiling(launcher, folder / "queue", placement)
        say(f"schedule lag at {format_rate(LAG_RATE)}")
        lag = schedule_lag(launcher, folder / "lag", placement, LAG_RATE)
        say("the highest load at which ticks are in time")
        probes = timely_rates(
            queue, lambda rate: schedule_lag(launcher, folder / f"{rate:.0f}", placement, rate, PROBE)
        )
        say("ceiling of the collector")
        collector = collector_ceiling(launcher, folder / "collector", placement)
    kept = tuple(_kept(probe) for probe in probes)
    return Ceilings(queue, collector, lag.rate, lag.p50, lag.p99, lag.most, kept[-1].rate, kept)


def _kept(lag: ScheduleLag) -> LagProbe:
    return LagProbe(lag.rate, lag.achieved, lag.p50, lag.p99, lag.worst, lag.timely)


def quick_ceiling(folder: Path, placement: Placement, runtime: Path | None = None) -> float:
    """Events per second through generator and queue, flat out, for a run without a calibration."""
    with Launcher(runtime) as launcher:
        return queue_ceiling(launcher, folder / "queue", placement)


def _capacity(folder: Path, *, rate: float, cores: int, say: Say, runtime: Path | None) -> CapacityRow:
    """One saturated trial: what is measured, against what the engine really did."""
    say(f"a capacity of {format_rate(rate)}")
    options = ReferenceOptions.model_construct(capacity=rate, cores=cores).model_dump()
    trial = _trial(f"c{rate:.0f}", rate * _OVERLOAD, options, {"window": SECOND, "slide": SECOND})
    where = folder / f"capacity-{rate:.0f}"
    recording = _perform(trial, where, runtime)
    measured = measure(recording)
    verdict = decide(recording, measured, OBJECTIVES)
    seen = measured.capacity.mean if measured.capacity else measured.served_rate
    return CapacityRow(truth(where).capacity() or 0.0, seen, verdict.kind.value, verdict.reasons)


def _latency(folder: Path, *, delay: int, cores: int, say: Say, runtime: Path | None) -> LatencyRow:
    """A constant delay at a load that the engine holds easily."""
    say(f"a delay of {format_duration(delay)}")
    options = ReferenceOptions.model_construct(capacity=1e6, delay=delay, cores=cores).model_dump()
    params = {"window": _SLIDE, "slide": _SLIDE, "gem_packs": 10}
    where = folder / f"delay-{delay}"
    recording = _perform(_trial(f"d{delay}", 100e3, options, params), where, runtime)
    measured = measure(recording)
    verdict = decide(recording, measured, OBJECTIVES)
    true = _true_latencies(where, recording, measured.warmup_seconds)
    seen = measured.latencies.get("event-time")
    measured_p50, measured_p99 = (
        seen.percentiles.get(p, float("nan")) if seen else float("nan") for p in ("p50", "p99")
    )
    return LatencyRow(
        delay=float(delay),
        firings=seen.firings if seen else 0,
        true_p50=_rank(true, 0.5),
        measured_p50=measured_p50,
        true_p99=_rank(true, 0.99),
        measured_p99=measured_p99,
        verdict=verdict.kind.value,
        reasons=verdict.reasons,
    )


def _true_latencies(where: Path, recording: Recording, warmup: int) -> npt.NDArray[np.float64]:
    """Latencies by the engine's own log, of the outputs that it released in the judged seconds. Nanoseconds."""
    log, start_ns, wall_ns = truth(where), recording.facts["start_ns"], recording.facts["wall_ns"]
    second = (log.outputs["released_ns"] - start_ns) // SECOND
    judged = (second >= warmup) & (second < recording.seconds.stop)
    result: npt.NDArray[np.float64] = log.latencies(start_ns, wall_ns)[judged] * 1000.0
    return result


def _rank(values: npt.NDArray[np.float64], share: float) -> float:
    """The same quantile by rank that histograms give."""
    return float(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)]) if len(values) else float("nan")


def _perform(trial: Trial, where: Path, runtime: Path | None) -> Recording:
    make_folder(where)
    watch = Watch(trial, OBJECTIVES)
    keeper = Unkept(where)
    return perform(trial, reference, windowed_aggregation, watch, keeper, listener=Silence(), runtime=runtime)


def _trial(name: str, load: float, options: dict[str, Any], params: dict[str, Any]) -> Trial:
    return Trial(
        number=1,
        ask=Ask("load", load, "measure"),
        workload=windowed_aggregation.name,
        params=WindowedAggregationParams().model_dump() | params,
        engine=f"reference {name}",
        options=options,
        instances=1,
        profile=constant(load),
        duration=_LENGTH,
        limit=_LENGTH,
        warmup=_WARMUP,
        warmup_limit=_WARMUP,
        queue_bound=0,
        seed=1,
    )
