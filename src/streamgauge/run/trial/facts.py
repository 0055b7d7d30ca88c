"""What is stored about how a trial was run: where, how long each phase took, and what engine and transport report."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from streamgauge.engines.contract import Deployment
from streamgauge.model.facts import (
    BROKER,
    ClockDifference,
    EngineFacts,
    Phases,
    ProbeResult,
    TrialFacts,
)
from streamgauge.model.units import SECOND
from streamgauge.processes.control import Json
from streamgauge.run.trial.assemble import role_usage, update_latencies
from streamgauge.run.trial.processes import TrialProcesses

MILLI = 1_000_000
T = TypeVar("T", EngineFacts, ProbeResult)


def trial_facts(processes: TrialProcesses, deployment: Deployment, loaded_ns: int, stop: int) -> TrialFacts:
    """What is known once a trial is over; the engine explains the time until ``loaded_ns``.

    Rows of windows that were emitted many times count up to the second ``stop``.
    """
    setup, warmup = processes.setup, processes.trial.warmup or 0
    since, used = processes.start_ns + warmup, role_usage(processes.folder, BROKER, warmup // SECOND, stop)
    probe, failed = _probe(deployment, since, max(since, loaded_ns))
    transport = replace(processes.channel.facts(), clock=clock_difference(processes.clock_bounds))
    return TrialFacts(
        engine=describe_engine(deployment),
        transport=transport if transport.sentence else None,
        placement=setup.placement.sentence,
        driver_cores=setup.placement.driver,
        sut_cores=setup.placement.sut,
        start_ns=processes.start_ns,
        wall_ns=processes.wall_ns,
        send_interval_ns=processes.send_interval_ns,
        roles={BROKER: used} if used else {},
        explanation=probe.explanation,
        micro_batches=probe.micro_batches,
        updates=update_latencies(processes.folder, warmup // SECOND, stop),
        probe_failed=failed,
    )


def describe_engine(deployment: Deployment) -> EngineFacts:
    """Versions and effective settings. If the engine cannot describe itself, the reason: nothing depends on it."""
    facts, failed = _reported(deployment.describe, EngineFacts)
    return facts or EngineFacts(describe_failed=failed)


def _probe(deployment: Deployment, since_ns: int, until_ns: int) -> tuple[ProbeResult, str]:
    """The engine's own numbers, or why it cannot report them."""
    found, failed = _reported(lambda: deployment.probe(since_ns, until_ns), ProbeResult)
    return found or ProbeResult(), failed


def _reported(report: Callable[[], object], kind: type[T]) -> tuple[T | None, str]:
    """What an engine reports about itself, or why it cannot."""
    try:
        found = report()
    # An engine of another package may fail in any way here, and must not end a finished trial.
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    if not isinstance(found, kind):
        return None, f"it returned {type(found).__name__}, not {kind.__name__}"
    return found, ""


def clock_difference(bounds: Sequence[Json]) -> ClockDifference | None:
    """What several processes of one machine have found, as middle and half width; None if none found anything."""
    if not bounds:
        return None
    low, high = max(part["low"] for part in bounds), min(part["high"] for part in bounds)
    low, high = min(low, high), max(low, high)
    middle, half = (low + high) / 2 / MILLI, (high - low) / 2 / MILLI
    return ClockDifference(middle, half, sum(part["probes"] for part in bounds))


def phases_of(*moments: int) -> Phases:
    """Seconds of wall time from one moment to the next: starting, load, drain and checking."""
    return Phases(*(max(0, later - earlier) / SECOND for earlier, later in pairwise(moments)))
