"""What is stored about how a trial was run: where, how long each phase took, what the engine reports about itself."""

import os
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

from streamgauge.engines.contract import Deployment
from streamgauge.model.facts import (
    BROKER,
    COLLECTOR,
    CONTROLLER,
    DRIVER,
    SUT,
    EngineFacts,
    Phases,
    ProbeResult,
    TrialFacts,
)
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.usage import Role
from streamgauge.run.trial.assemble import role_usage, update_latencies
from streamgauge.run.trial.processes import Stage

T = TypeVar("T", EngineFacts, ProbeResult)


def roles(stage: Stage, system: Deployment) -> tuple[Role, ...]:
    """Whose time the monitor counts, and on which cores."""
    found = (
        Role(DRIVER, tuple(d.guard for d in stage.drivers), stage.placement.driver),
        Role(COLLECTOR, (stage.collector.guard,) if stage.collector else (), stage.placement.driver),
        Role(SUT, tuple(p.guard for p in system.processes()), stage.placement.sut),
        Role(CONTROLLER, (os.getpid(),), ()),
    )
    brokers = stage.topics.kafka.processes if stage.topics else ()
    return (*found, Role(BROKER, tuple(p.guard for p in brokers), stage.placement.driver)) if brokers else found


def facts_of(stage: Stage, system: Deployment, loaded: int, stop: int) -> TrialFacts:
    """How a trial was run, and the engine's own numbers of the time until ``loaded``.

    Rows of windows that were emitted many times, and what roles used, count up to the second ``stop``.
    """
    warmup = stage.trial.warmup or 0
    since, first = stage.start_ns + warmup, warmup // SECOND
    broker = role_usage(stage.folder, BROKER, first, stop)
    probed, failed = probe(system, since, max(since, loaded))
    return TrialFacts(
        engine=describe(system),
        transport=stage.transport_facts(),
        placement=stage.placement.sentence,
        driver_cores=stage.placement.driver,
        sut_cores=stage.placement.sut,
        start_ns=stage.start_ns,
        wall_ns=stage.wall_ns,
        send_interval_ns=stage.tick_ns,
        roles={BROKER: broker} if broker else {},
        explanation=probed.explanation,
        micro_batches=probed.micro_batches,
        updates=update_latencies(stage.folder, first, stop),
        probe_failed=failed,
    )


def describe(system: Deployment) -> EngineFacts:
    """Versions and effective settings, as the engine reports them; if it cannot, the reason."""
    found, failed = _reported(system.describe, EngineFacts())
    return found if not failed else EngineFacts(describe_failed=failed)


def probe(system: Deployment, since_ns: int, until_ns: int) -> tuple[ProbeResult, str]:
    """The engine's own numbers between two moments, and why there are none."""
    return _reported(lambda: system.probe(since_ns, until_ns), ProbeResult())


def _reported(ask: Callable[[], T], nothing: T) -> tuple[T, str]:
    """What an engine reports about itself. If it cannot, the reason: what was measured does not depend on it."""
    try:
        found = ask()
    # An engine of another package may fail in any way here, and must not take a finished trial with it.
    except Exception as error:
        return nothing, f"{type(error).__name__}: {error}"
    if not isinstance(found, type(nothing)):
        return nothing, f"it returned {type(found).__name__}, not {type(nothing).__name__}"
    return found, ""


def phases(*moments: int) -> Phases:
    """How long the parts of a trial took, from one of these five moments to the next."""
    return Phases(*(max(0, later - earlier) / SECOND for earlier, later in pairwise(moments)))
