"""Calibrate: how much load streamgauge can generate on this machine, and how accurate its measurements are.

The maximum rates of generator, transport and collector and the send delay, with the CPU pinning that runs will use;
then the reference engine, whose capacity and delays are known, is measured as any engine would be.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from streamgauge.engines.reference import reference
from streamgauge.engines.reference.engine import ReferenceOptions
from streamgauge.engines.reference.ground_truth import read_ground_truth
from streamgauge.judge import EarlyStopRule, decide, measure
from streamgauge.model.calibration import Calibration, CapacityRow, Ceilings, LagProbe, LatencyRow
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.layout import Placement
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant
from streamgauge.model.trial import Recording, Trial, TrialRequest
from streamgauge.model.units import SECOND, duration_text, format_rate
from streamgauge.processes.clock import elapsed_ns, now
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.run.calibrate.max_load import (
    PROBE,
    LoadSetup,
    SendDelay,
    confirmed,
    max_input_rate,
    max_output_rate,
    probe_rates,
    send_delay,
)
from streamgauge.run.explore import setup_of
from streamgauge.run.trial.perform import perform
from streamgauge.run.trial.setup import DiscardingRecorder, RunContext, RunLimits
from streamgauge.store.durable import make_folder
from streamgauge.transports.contract import OpenTransport, Transport
from streamgauge.transports.registry import transports
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

CAPACITIES = (50e3, 200e3, 500e3, 2e6)
DELAYS = (5_000_000, 50_000_000, 500_000_000)
EXPECTED_DURATION = 150 * SECOND
"""How long a calibration takes on two cores; shown before it begins."""
OBJECTIVES = (
    Objective("lag-trend", "<=", 0.01, relative=True, text="lag-trend <= 1%"),
    Objective("lost", "==", 0.0, text="lost == 0"),
)
_OVERLOAD = 1.3
_LENGTH = 6 * SECOND
"""Enough for a trend; after 4 s there are too few seconds for one."""
_LONGEST = 170 * SECOND
"""A calibration takes three minutes at most: a trial that was disturbed is repeated only while there is time."""
_REPEATS = 3
"""How often the maximum rate of a broker is measured if there is no calibration."""
_WARMUP = 2 * SECOND
_SLIDE = 10_000_000
"""Six hundred window results: a single short disturbance of the machine then does not set the p99."""

Say = Callable[[str], object]
Row = TypeVar("Row", CapacityRow, LatencyRow)


@dataclass(frozen=True, slots=True)
class CalibrationSetup:
    """Where a calibration is made: in a folder, over an open transport, with a function that shows its progress."""

    folder: Path
    placement: Placement
    say: Say
    limits: RunLimits
    choice: TransportChoice
    opened: OpenTransport

    @property
    def cores(self) -> int:
        """Cores of the system under test."""
        return max(1, len(self.placement.sut))

    @property
    def transport(self) -> Transport:
        return transports()[self.choice.name]

    @property
    def identity(self) -> str:
        """All that the rates of the transport depend on."""
        return self.transport.identity(self.transport.resolve(self.choice.options))

    def load_setup(self, launcher: Launcher) -> LoadSetup:
        """Where loads are generated."""
        return LoadSetup(launcher, self.opened, self.choice.name, self.placement)


@contextmanager
def open_setup(
    folder: Path, placement: Placement, say: Say, limits: RunLimits, choice: TransportChoice
) -> Iterator[CalibrationSetup]:
    """A setup whose transport is open."""
    with ExitStack() as stack:
        launcher = stack.enter_context(Launcher(limits.runtime))
        host = LocalHost(launcher, folder / "transport", limits.cache, placement.driver, (), say)
        transport = transports()[choice.name]
        options = transport.resolve(choice.options)
        name = folder.name.strip(".")
        opened = stack.enter_context(transport.open(options, name, host, limits.secrets))
        yield CalibrationSetup(folder, placement, say, limits, choice, opened)


def calibrate(setup: CalibrationSetup, machine: str) -> Calibration:
    """Everything, one after the other; only the result is kept."""
    began = elapsed_ns()
    found = max_load(setup)
    rates = known_capacities(CAPACITIES, found.max_load)
    left = reversed(range(len(rates) + len(DELAYS)))
    repeat = partial(_repeat_if_invalid, setup=setup, began=began)
    capacities = tuple(repeat(partial(_capacity, setup, rate=r), left=next(left)) for r in rates)
    latencies = tuple(repeat(partial(_latency, setup, delay=d), left=next(left)) for d in DELAYS)
    spent, when = (elapsed_ns() - began) / SECOND, now().isoformat()
    return Calibration(
        machine=machine,
        placement=setup.placement.sentence,
        made=when,
        ceilings=found,
        capacities=capacities,
        latencies=latencies,
        seconds=spent,
        transport=setup.identity,
        broker=setup.choice.broker,
    )


def known_capacities(rates: Sequence[float], most: float) -> tuple[float, ...]:
    """The capacities that can be overloaded with at most ``most`` events per second, and the highest such one.

    A load that is not sent on schedule makes the trial INVALID, whatever the reference engine does.
    """
    highest = most / _OVERLOAD
    return (*(rate for rate in rates if rate <= highest), *((highest,) if highest < max(rates) else ()))


def _repeat_if_invalid(attempt: Callable[[Path], Row], *, setup: CalibrationSetup, began: int, left: int) -> Row:
    """An INVALID trial is repeated, as in a run, if there is time for that and for the ``left`` ones after it."""
    before = elapsed_ns()
    row = attempt(setup.folder / "first")
    took = elapsed_ns() - before
    again = row.verdict == "INVALID" and elapsed_ns() - began + (left + 1) * took <= _LONGEST
    return attempt(setup.folder / "second") if again else row


def max_load(setup: CalibrationSetup) -> Ceilings:
    """The highest rates with this CPU pinning, and how late events are sent."""
    folder, rate = setup.folder, setup.transport.delay_probe_rate
    between = "broker" if setup.choice.broker else setup.choice.name
    with Launcher(setup.limits.runtime) as launcher:
        load_setup = setup.load_setup(launcher)
        setup.say(f"Measuring the maximum rate through generator and {between}")
        queue = max_input_rate(load_setup, folder / "queue")
        setup.say(f"Measuring the send delay at {format_rate(rate)}")
        delay = send_delay(load_setup, folder / "lag", rate, PROBE)
        setup.say("Finding the highest load that is sent on schedule, and confirming it over the length of a trial")

        def probe(rate: float, seconds: float) -> SendDelay:
            return send_delay(load_setup, folder / f"{rate:.0f}-{seconds:.0f}", rate, seconds)

        probes = probe_rates(queue, probe)
        collector = 0.0
        if setup.transport.collector_limits:
            setup.say("Measuring the maximum rate of the collector")
            collector = max_output_rate(load_setup, folder / "collector")
    kept = tuple(_as_probe(each) for each in probes)
    late = (delay.p50, delay.p99, delay.most)
    return Ceilings(queue, collector, delay.rate, *late, kept[-1].rate, kept, confirmed=confirmed(probes))


def _as_probe(delay: SendDelay) -> LagProbe:
    late = max(delay.p99, delay.append)
    return LagProbe(delay.rate, delay.achieved, delay.p50, late, delay.worst, delay.on_time, delay.seconds)


def quick_check(setup: CalibrationSetup) -> float:
    """Events per second through generator and transport as fast as possible, for a run without a calibration.

    A broker is measured several times: what disturbs it for seconds makes it slower, and nothing makes it faster.
    """
    repeats = range(1 if setup.transport.queue_counts_reads else _REPEATS)
    with Launcher(setup.limits.runtime) as launcher:
        load_setup = setup.load_setup(launcher)
        return max(max_input_rate(load_setup, setup.folder / f"queue-{n}") for n in repeats)


def _capacity(setup: CalibrationSetup, folder: Path, *, rate: float) -> CapacityRow:
    """One saturated trial: what is measured, against what the engine really did."""
    setup.say(f"Measuring a known capacity of {format_rate(rate)}")
    options = ReferenceOptions.from_resolved({"capacity": rate, "cores": setup.cores}).model_dump(mode="json")
    trial = _trial(f"c{rate:.0f}", rate * _OVERLOAD, options, {"window": SECOND, "slide": SECOND})
    where = folder / f"capacity-{rate:.0f}"
    recording = _perform(setup, trial, where)
    measured = measure(recording)
    verdict = decide(recording, measured, OBJECTIVES)
    seen = measured.capacity.mean if measured.capacity else measured.served_rate
    true = read_ground_truth(where).capacity() if _began(recording) else None
    return CapacityRow(true or 0.0, seen, verdict.kind.value, verdict.reasons)


def _latency(setup: CalibrationSetup, folder: Path, *, delay: int) -> LatencyRow:
    """A constant delay at a load that the engine sustains easily."""
    setup.say(f"Measuring a known delay of {duration_text(delay)}")
    options = ReferenceOptions.from_resolved({"capacity": 1e6, "delay": delay, "cores": setup.cores}).model_dump(
        mode="json"
    )
    params = {"window": _SLIDE, "slide": _SLIDE, "gem_packs": 10}
    where = folder / f"delay-{delay}"
    recording = _perform(setup, _trial(f"d{delay}", 100e3, options, params), where)
    measured = measure(recording)
    verdict = decide(recording, measured, OBJECTIVES)
    true = _true_latencies(where, recording, measured.warmup_seconds) if _began(recording) else np.zeros(0)
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


def _began(recording: Recording) -> bool:
    """Whether the load began: otherwise the engine has no log of it."""
    return recording.facts.start_ns is not None


def _true_latencies(where: Path, recording: Recording, warmup: int) -> npt.NDArray[np.float64]:
    """Latencies by the engine's own log, of the outputs that it released in the judged seconds. Nanoseconds."""
    log, start_ns, wall_ns = read_ground_truth(where), recording.facts.start_ns, recording.facts.wall_ns
    assert start_ns is not None
    assert wall_ns is not None
    second = (log.outputs["released_ns"] - start_ns) // SECOND
    judged = (second >= warmup) & (second < recording.seconds.stop)
    result: npt.NDArray[np.float64] = log.latencies(start_ns, wall_ns)[judged].astype(np.float64) * 1000.0
    return result


def _rank(values: npt.NDArray[np.float64], share: float) -> float:
    """The same quantile by rank that histograms give."""
    return float(np.sort(values)[max(0, int(np.ceil(share * len(values))) - 1)]) if len(values) else float("nan")


def _perform(setup: CalibrationSetup, trial: Trial, where: Path) -> Recording:
    make_folder(where)
    trial = replace(trial, transport=setup.choice)
    context = RunContext(setup.limits, transport=setup.opened)
    of_trial = setup_of(trial, reference, DiscardingRecorder(where), context, EarlyStopRule(trial, OBJECTIVES))
    of_trial = replace(of_trial, placement=setup.placement)
    with Launcher(setup.limits.runtime) as launcher:
        host = LocalHost(launcher, where, setup.limits.cache, setup.placement.sut, setup.placement.sut)
        options = ReferenceOptions.from_resolved(trial.options)
        with reference.start(of_trial.layout, options, host) as system:
            return perform(replace(of_trial, system=system))


def _trial(name: str, load: float, options: dict[str, Any], params: dict[str, Any]) -> Trial:
    traits = reference.traits(ReferenceOptions.from_resolved(options))
    return Trial(
        number=1,
        ask=TrialRequest("load", load, "measure"),
        workload=windowed_aggregation.name,
        params=WindowedAggregationParams().model_dump(mode="json") | params,
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
        trigger=traits.batch_interval_ns,
    )
