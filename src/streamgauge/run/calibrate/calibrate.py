"""Calibrate: how far this harness can be believed on this machine, before any real engine is measured.

Ceilings of generator, queue and collector and the schedule lag, in the placement that runs will use; then the
reference engine, whose capacity and delays are known, is measured as any engine would be. Over Kafka a broker is in
the place of the queue.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from streamgauge.engines.reference import reference
from streamgauge.engines.reference.engine import ReferenceOptions
from streamgauge.engines.reference.ground_truth import truth
from streamgauge.judge import Watch, decide, measure
from streamgauge.model.calibration import Calibration, CapacityRow, Ceilings, LagProbe, LatencyRow
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant
from streamgauge.model.trial import Ask, Recording, Trial
from streamgauge.model.units import SECOND, format_duration, format_rate
from streamgauge.processes.clock import elapsed_ns, now
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import Placement
from streamgauge.run.calibrate.load_limit import transport_named
from streamgauge.run.calibrate.max_load import (
    PROBE,
    ScheduleLag,
    collector_ceiling,
    confirmed,
    queue_ceiling,
    schedule_lag,
    timely_rates,
)
from streamgauge.run.limits import Limits
from streamgauge.run.trial.perform import perform
from streamgauge.run.trial.setup import Silence, Unkept
from streamgauge.store.durable import make_folder
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

if TYPE_CHECKING:
    from streamgauge.transports.kafka.transport import Kafka

CAPACITIES = (50e3, 200e3, 500e3, 2e6)
KAFKA_CAPACITIES = CAPACITIES[:3]
"""On two cores a broker beside the generator carries little more than the highest of them."""
DELAYS = (5_000_000, 50_000_000, 500_000_000)
ABOUT = 150 * SECOND
"""How long a calibration takes on two cores; said before it begins."""
LAG_RATE = 1e6
KAFKA_LAG_RATE = 2e5
OBJECTIVES = (
    Objective("lag-trend", "<=", 0.01, relative=True, text="lag-trend <= 1%"),
    Objective("lost", "==", 0.0, text="lost == 0"),
)
_OVERLOAD = 1.3
_LENGTH = 6 * SECOND
"""Enough for a trend; after 4 s there are too few seconds for one."""
_LONGEST = 170 * SECOND
"""A calibration takes three minutes at most: a trial that was disturbed is repeated only while there is time."""
_LOOKS = 3
"""How often a broker is looked at where no calibration is."""
_WARMUP = 2 * SECOND
_SLIDE = 10_000_000
"""Six hundred firings: the p99 is then not the one moment at which the machine looked elsewhere."""

Say = Callable[[str], None]
Row = TypeVar("Row", CapacityRow, LatencyRow)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a calibration is made: in a folder, over a transport, with somebody who listens."""

    folder: Path
    placement: Placement
    say: Say
    runtime: Path | None = None
    transport: TransportChoice = TransportChoice()
    kafka: "Kafka | None" = None

    @property
    def cores(self) -> int:
        """Cores of the system under test."""
        return max(1, len(self.placement.sut))


@contextmanager
def site(folder: Path, placement: Placement, say: Say, limits: Limits, transport: TransportChoice) -> Iterator[Site]:
    """A site with a broker that stands, where the transport is Kafka."""
    if transport.name != "kafka":
        yield Site(folder, placement, say, limits.runtime)
        return
    from streamgauge.transports.kafka.transport import Ground, kafka_of  # noqa: PLC0415 (confluent-kafka only where there is Kafka)

    ground = Ground(limits.cache, limits.runtime, limits.cluster)
    name = folder.name.strip(".")
    with kafka_of(transport, name, folder / "brokers", ground, say) or nullcontext() as kafka:
        yield Site(folder, placement, say, limits.runtime, transport, kafka)


def calibrate(at: Site, machine: str) -> Calibration:
    """Everything, one after the other; nothing of it stays but the result."""
    begun, over_kafka = elapsed_ns(), at.kafka is not None
    found = ceilings(at)
    rates = known_capacities(KAFKA_CAPACITIES if over_kafka else CAPACITIES, found.most)
    left = reversed(range(len(rates) + len(DELAYS)))
    capacities = tuple(_undisturbed(partial(_capacity, at, rate=r), at, begun, next(left)) for r in rates)
    latencies = tuple(_undisturbed(partial(_latency, at, delay=d), at, begun, next(left)) for d in DELAYS)
    spent, when = (elapsed_ns() - begun) / SECOND, now().isoformat()
    return Calibration(
        machine, at.placement.sentence, when, found, capacities, latencies, spent, transport_named(at.transport)
    )


def known_capacities(rates: Sequence[float], most: float) -> tuple[float, ...]:
    """The capacities that can be overloaded with at most ``most`` events per second, and the highest such one.

    A load that is not sent on schedule makes the trial INVALID, whatever the reference engine does.
    """
    highest = most / _OVERLOAD
    return (*(rate for rate in rates if rate <= highest), *((highest,) if highest < max(rates) else ()))


def _undisturbed(attempt: Callable[[Path], Row], at: Site, begun: int, left: int) -> Row:
    """An INVALID trial is repeated, as in a run, if there is time for that and for the ``left`` ones after it."""
    before = elapsed_ns()
    row = attempt(at.folder / "first")
    took = elapsed_ns() - before
    again = row.verdict == "INVALID" and elapsed_ns() - begun + (left + 1) * took <= _LONGEST
    return attempt(at.folder / "second") if again else row


def ceilings(at: Site) -> Ceilings:
    """What the driver can do in this placement, and how late its ticks are."""
    folder, placement, kafka = at.folder, at.placement, at.kafka
    rate = LAG_RATE if kafka is None else KAFKA_LAG_RATE
    with Launcher(at.runtime) as launcher:
        at.say(f"Measuring the maximum rate through generator and {'queue' if kafka is None else 'broker'}")
        queue = queue_ceiling(launcher, folder / "queue", placement, kafka=kafka)
        at.say(f"Measuring the send delay at {format_rate(rate)}")
        lag = schedule_lag(launcher, folder / "lag", placement, rate, PROBE, kafka=kafka)
        at.say("Finding the highest load that is sent on schedule, and confirming it over the length of a trial")

        def probe(rate: float, seconds: float) -> ScheduleLag:
            where = folder / f"{rate:.0f}-{seconds:.0f}"
            return schedule_lag(launcher, where, placement, rate, seconds, kafka=kafka)

        probes = timely_rates(queue, probe)
        collector = 0.0
        if kafka is None:
            at.say("Measuring the maximum rate of the collector")
            collector = collector_ceiling(launcher, folder / "collector", placement)
    kept = tuple(_kept(probe) for probe in probes)
    late = (lag.p50, lag.p99, lag.most)
    return Ceilings(queue, collector, lag.rate, *late, kept[-1].rate, kept, confirmed=confirmed(probes))


def _kept(lag: ScheduleLag) -> LagProbe:
    return LagProbe(lag.rate, lag.achieved, lag.p50, max(lag.p99, lag.append), lag.worst, lag.timely, lag.seconds)


def quick_ceiling(at: Site) -> float:
    """Events per second through generator and queue or broker, flat out, for a run without a calibration.

    A broker is looked at some times: what disturbs it for seconds makes it slower, and nothing makes it faster.
    """
    looks = range(_LOOKS if at.kafka else 1)
    with Launcher(at.runtime) as launcher:
        return max(queue_ceiling(launcher, at.folder / f"queue-{n}", at.placement, kafka=at.kafka) for n in looks)


def _capacity(at: Site, folder: Path, *, rate: float) -> CapacityRow:
    """One saturated trial: what is measured, against what the engine really did."""
    at.say(f"Measuring a known capacity of {format_rate(rate)}")
    options = ReferenceOptions.from_resolved({"capacity": rate, "cores": at.cores}).model_dump()
    trial = _trial(f"c{rate:.0f}", rate * _OVERLOAD, options, {"window": SECOND, "slide": SECOND})
    where = folder / f"capacity-{rate:.0f}"
    recording = _perform(at, trial, where)
    measured = measure(recording)
    verdict = decide(recording, measured, OBJECTIVES)
    seen = measured.capacity.mean if measured.capacity else measured.served_rate
    true = truth(where).capacity() if recording.facts.start_ns is not None else None
    return CapacityRow(true or 0.0, seen, verdict.kind.value, verdict.reasons)


def _latency(at: Site, folder: Path, *, delay: int) -> LatencyRow:
    """A constant delay at a load that the engine holds easily."""
    at.say(f"Measuring a known delay of {format_duration(delay)}")
    options = ReferenceOptions.from_resolved({"capacity": 1e6, "delay": delay, "cores": at.cores}).model_dump()
    params = {"window": _SLIDE, "slide": _SLIDE, "gem_packs": 10}
    where = folder / f"delay-{delay}"
    recording = _perform(at, _trial(f"d{delay}", 100e3, options, params), where)
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
    """Latencies by the engine's own log, of the outputs that it released in the judged seconds. Nanoseconds.

    Empty if the load did not begin: the engine has no log then.
    """
    start_ns, wall_ns = recording.facts.start_ns, recording.facts.wall_ns
    if start_ns is None or wall_ns is None:
        return np.zeros(0, np.float64)
    log = truth(where)
    second = (log.outputs["released_ns"] - start_ns) // SECOND
    judged = (second >= warmup) & (second < recording.seconds.stop)
    return np.asarray(log.latencies(start_ns, wall_ns)[judged] * 1000.0, np.float64)


def _rank(values: npt.NDArray[np.float64], share: float) -> float:
    """The same quantile by rank that histograms give."""
    return float(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)]) if len(values) else float("nan")


def _perform(at: Site, trial: Trial, where: Path) -> Recording:
    make_folder(where)
    return perform(
        replace(trial, transport=at.transport),
        reference,
        windowed_aggregation,
        Watch(trial, OBJECTIVES),
        Unkept(where),
        listener=Silence(),
        runtime=at.runtime,
        kafka=at.kafka,
    )


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
        trigger=reference.trigger(options),
    )
