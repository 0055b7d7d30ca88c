"""Execute: TrialSetup → Recording, on real processes or in simulated time.

A simulated trial is computed second by second, as far as the early-stop rule reads it; one on real processes is
performed (perform.py) in the same shape: new seconds arrive, are stored, and are shown to the rule.
"""

from dataclasses import replace

from streamgauge.engines.contract import SimulatedEngine, Simulation
from streamgauge.model.facts import TrialFacts
from streamgauge.model.seconds import Seconds, join
from streamgauge.model.trial import INTACT, Outcome, Recording, Trial
from streamgauge.model.units import SECOND, duration_text
from streamgauge.run.trial.setup import TrialSetup


def execute(setup: TrialSetup) -> Recording:
    """Run one trial to its end and return what happened in it."""
    if isinstance(setup.engine, SimulatedEngine):
        return _simulate(setup, setup.engine)
    return _perform(setup)


def _perform(setup: TrialSetup) -> Recording:
    """On real processes, with a system that stays up if the engine has one."""
    from streamgauge.run.systems import SystemFailed  # noqa: PLC0415 - Arrow Flight only if a process is started
    from streamgauge.run.trial.perform import perform, unstarted_facts  # noqa: PLC0415

    systems = setup.context.systems
    if systems is None:
        raise ValueError("a trial on real processes needs the systems of its run")
    try:
        system = systems.get(setup)
    except SystemFailed as error:
        facts = replace(unstarted_facts(setup), warm_up=systems.warm_up_facts(setup))
        return Recording(setup.trial, join([]), error.outcome, facts)
    recording = perform(replace(setup, system=system))
    recording = replace(recording, facts=replace(recording.facts, warm_up=systems.warm_up_facts(setup)))
    systems.finished(setup, intact=recording.outcome.ending in INTACT)
    return recording


def _simulate(setup: TrialSetup, engine: SimulatedEngine) -> Recording:
    trial, rule = setup.trial, setup.early_stop
    simulation = engine.simulate(trial, setup.work)
    stretches, stopped = list[Seconds](), False
    for stretch in simulation.seconds():
        stretches.append(stretch)
        setup.recorder.append(stretch)
        setup.context.observer.progressed(trial, stretch)
        setup.context.limits.pace.wait(len(stretch))
        if rule.due(stretch.stop):
            stretches = [join(stretches)]
            stopped = rule.decided(stretches[0])
        if stopped:
            break
    so_far = join(stretches)
    outcome = replace(_outcome(simulation, so_far, stopped, trial), silence=rule.silence)
    if rule.stalled and outcome.ending == "completed":
        why = f"no acknowledgement for {duration_text(trial.stall)} while events waited"
        outcome = replace(outcome, ending="stalled", detail=why)
    return Recording(trial, so_far, outcome, TrialFacts(engine=engine.describe(setup.options)))


def _outcome(simulation: Simulation, seconds: Seconds, stopped: bool, trial: Trial) -> Outcome:
    """How it ended; a trial that the rule stopped before its length was ``decided``."""
    outcome = simulation.outcome(seconds.stop)
    short = seconds.stop * SECOND < (trial.warmup or 0) + trial.duration
    return replace(outcome, ending="decided") if stopped and short and outcome.ending == "completed" else outcome
