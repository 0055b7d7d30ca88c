"""Execute: Trial → Recording.

A virtual engine is imagined second by second, as far as somebody looks; one with processes of its own is
performed (perform.py) in the same shape: stretches of seconds come in, are kept, are looked at, and the trial
ends when the watch says so or when the system under test does.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from streamgauge.engines.contract import Engine, Imagination, RealEngine, VirtualEngine
from streamgauge.model.facts import TrialFacts
from streamgauge.model.seconds import Seconds, join
from streamgauge.model.trial import INTACT, Outcome, Recording, Trial
from streamgauge.model.units import SECOND, format_duration
from streamgauge.processes.placement import place
from streamgauge.run.limits import Limits
from streamgauge.run.trial.setup import Keeper, Listener, Watcher
from streamgauge.workloads.contract import Workload

if TYPE_CHECKING:
    from streamgauge.run.systems import Systems
    from streamgauge.transports.kafka.transport import Kafka


class CannotExecute(Exception):
    """An engine that this version knows no way to run."""


def execute(
    trial: Trial,
    engine: Engine,
    workload: Workload[Any],
    watch: Watcher,
    partial: Keeper,
    *,
    listener: Listener,
    limits: Limits,
    work: float = 1.0,
    systems: "Systems | None" = None,
    kafka: "Kafka | None" = None,
) -> Recording:
    """Run one trial to its end and return what happened in it. ``work`` is that of an event, for virtual engines."""
    if isinstance(engine, VirtualEngine):
        return _imagine(trial, engine, work, watch, partial, listener=listener, limits=limits)
    if isinstance(engine, RealEngine):
        on = _On(limits, systems, kafka)
        return _perform(trial, engine, workload, watch, partial, listener=listener, on=on)
    raise CannotExecute(
        f"engine {engine.name!r} cannot run a trial: it implements neither VirtualEngine nor RealEngine"
    )


class _On(NamedTuple):
    """What real processes stand on."""

    limits: Limits
    systems: "Systems | None"
    kafka: "Kafka | None"


def _perform(
    trial: Trial,
    engine: RealEngine,
    workload: Workload[Any],
    watch: Watcher,
    partial: Keeper,
    *,
    listener: Listener,
    on: _On,
) -> Recording:
    """On real processes, with a system that stays up where the engine has one."""
    # Arrow Flight only where a process is started
    from streamgauge.run.systems import NotStanding  # noqa: PLC0415
    from streamgauge.run.trial.perform import perform  # noqa: PLC0415

    systems = on.systems
    try:
        standing = systems.of(engine, trial, workload) if systems else None
    except NotStanding as error:
        facts = TrialFacts(
            engine.describe(trial.options),
            placement=place(trial.options).sentence,
            warm_up=systems.warm_up(trial) if systems else None,
        )
        return Recording(trial, join([]), error.outcome, facts)
    recording = perform(
        trial,
        engine,
        workload,
        watch,
        partial,
        listener=listener,
        runtime=on.limits.runtime,
        standing=standing,
        kafka=on.kafka,
    )
    if systems is None or standing is None:
        return recording
    recording = replace(recording, facts=replace(recording.facts, warm_up=systems.warm_up(trial)))
    systems.done(engine, trial, intact=recording.outcome.ending in INTACT)
    return recording


def _imagine(
    trial: Trial,
    engine: VirtualEngine,
    work: float,
    watch: Watcher,
    partial: Keeper,
    *,
    listener: Listener,
    limits: Limits,
) -> Recording:
    imagination = engine.imagine(trial, work)
    stretches, stopped = list[Seconds](), False
    for stretch in imagination.seconds():
        stretches.append(stretch)
        partial.append(stretch)
        listener.progressed(trial, stretch)
        limits.pace.wait(len(stretch))
        if watch.wants(stretch.stop):
            stretches = [join(stretches)]
            stopped = watch.look(stretches[0])
        if stopped:
            break
    so_far = join(stretches)
    outcome = replace(_outcome(imagination, so_far, stopped, trial), silence=watch.silence)
    if watch.stalled and outcome.ending == "completed":
        why = f"no acknowledgement for {format_duration(trial.stall)} while events waited"
        outcome = replace(outcome, ending="stalled", detail=why)
    return Recording(trial, so_far, outcome, TrialFacts(engine.describe(trial.options)))


def _outcome(imagination: Imagination, seconds: Seconds, stopped: bool, trial: Trial) -> Outcome:
    """How it ended; a trial that the watch stopped before its length was ``decided``."""
    outcome = imagination.outcome(seconds.stop)
    short = seconds.stop * SECOND < (trial.warmup or 0) + trial.duration
    return replace(outcome, ending="decided") if stopped and short and outcome.ending == "completed" else outcome
