"""What is stored of the way a trial was run: where, how long each phase took, and what the engine says of itself."""

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from streamgauge.engines.contract import Deployment
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.usage import Role
from streamgauge.run.trial.assemble import BROKER, DRIVER, SUT, role_use, row_latencies
from streamgauge.run.trial.processes import Stage


def roles(stage: Stage, system: Deployment) -> tuple[Role, ...]:
    """Whose time the monitor counts, and on which cores."""
    found = (
        Role(DRIVER, tuple(d.guard for d in stage.drivers), stage.placement.driver),
        Role("collector", (stage.collector.guard,) if stage.collector else (), stage.placement.driver),
        Role(SUT, tuple(p.guard for p in system.processes()), stage.placement.sut),
        Role("controller", (os.getpid(),), ()),
    )
    brokers = stage.topics.kafka.processes if stage.topics else ()
    return (*found, Role(BROKER, tuple(p.guard for p in brokers), stage.placement.driver)) if brokers else found


def facts_of(stage: Stage, system: Deployment, loaded: int, stop: int) -> dict[str, Any]:
    """What is stored of the way a trial was run, and what the engine says of the time until ``loaded``.

    Rows of windows that were put out many times are told up to the second ``stop``.
    """
    warmup = stage.trial.warmup or 0
    since, rows = stage.start_ns + warmup, row_latencies(stage.folder, warmup // SECOND, stop)
    used = role_use(stage.folder, BROKER, warmup // SECOND, stop)
    return {
        "placement": stage.placement.sentence,
        "driver_cores": list(stage.placement.driver),
        "sut_cores": list(stage.placement.sut),
        "start_ns": stage.start_ns,
        "wall_ns": stage.wall_ns,
        "send_interval_ns": stage.tick_ns,
        **({"updates": rows} if rows else {}),
        **({"broker_use": used} if used else {}),
        **stage.describe(),
        **described(system),
        **_said("probe", lambda: system.probe(since, max(since, loaded))),
    }


def described(system: Deployment) -> dict[str, Any]:
    """Versions and effective settings, as the engine says them."""
    return _said("describe", system.describe)


def _said(what: str, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What an engine says of itself. If it cannot, the reason: what was measured does not depend on it."""
    try:
        return ask()
    # An engine of another package may fail in any way here, and must not take a finished trial with it.
    except Exception as error:
        return {f"{what}_failed": f"{type(error).__name__}: {error}"}


def phases(*moments: int) -> dict[str, float]:
    """Seconds of wall time from one moment to the next: where the time of a trial went."""
    spans = (later - earlier for earlier, later in pairwise(moments))
    return dict(zip(("starting", "load", "tail", "checking"), (max(0, s) / SECOND for s in spans), strict=True))
