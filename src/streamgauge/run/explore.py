"""Explore: Experiment → results. The main loop of a run.

search.next(past) → Trial → execute → measure → decide → stored → past, until the search needs no further trial. All
state is in the store, so a resumed run continues in the same way.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from streamgauge.engines.contract import Engine, Traits
from streamgauge.engines.registry import engines
from streamgauge.judge import EarlyStopRule, decide, measure
from streamgauge.model.experiment import EngineChoice, Experiment
from streamgauge.model.finding import TrialResult
from streamgauge.model.layout import Placement
from streamgauge.model.options import Options
from streamgauge.model.profile import LoadProfile, constant, planned_load, scaled
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND, duration_text
from streamgauge.processes.clock import Clock
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.processes.placement import assign_cores
from streamgauge.run.result import RunResult, result_of, stored_hint, trial_time_ns
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import (
    DiscardingRecorder,
    EarlyStop,
    NullObserver,
    Observer,
    Recorder,
    RunContext,
    RunLimits,
    TrialSetup,
)
from streamgauge.search import build
from streamgauge.store import Run
from streamgauge.transports.registry import transports
from streamgauge.workloads.contract import has_reference
from streamgauge.workloads.parameters import Windowed, shortest_checked
from streamgauge.workloads.registry import workloads


def explore(
    experiment: Experiment,
    run: Run,
    limits: RunLimits = RunLimits(),  # noqa: B008 (frozen)
    observer: Observer | None = None,
) -> RunResult:
    """Run trials until every engine has its results, and store these."""
    ended = ""
    with open_run(experiment, run.id, run.sessions, limits, observer or NullObserver()) as context:
        exploration = _Exploration(experiment, run, context, run.trial_count(), trial_time_ns(run), Clock().wall_ns())
        for choice in experiment.engines:
            ended = exploration.searches(choice)
            if ended:
                break
    result = result_of(experiment, run, ended)
    run.write_conclusion(result.findings, result.ended, result.exit_code, result.trial_time_ns)
    return result


@contextmanager
def open_run(
    experiment: Experiment, run: str, folder: Path, limits: RunLimits, observer: Observer
) -> Iterator[RunContext]:
    """What the trials of a run share: its open transport, and the systems that stay up."""
    known = [(engines()[choice.name], options_of(choice)) for choice in experiment.engines]
    real = [(engine, options) for engine, options in known if not engine.traits(options).simulated]
    if not real:
        yield RunContext(limits, observer)
        return
    from streamgauge.run.systems import SystemPool  # noqa: PLC0415 - Arrow Flight only if a process is started

    cores = max(int(engine.layout(options, 1).cores) for engine, options in real)
    with ExitStack() as stack:
        launcher = stack.enter_context(Launcher(limits.runtime))
        host = LocalHost(launcher, folder, limits.cache, assign_cores(cores).driver, (), observer.message)
        transport = transports()[experiment.transport.name]
        options = transport.resolve(experiment.transport.options)
        opened = stack.enter_context(transport.open(options, run, host, limits.secrets))
        systems = stack.enter_context(SystemPool(folder))
        yield RunContext(limits, observer, opened, systems)


@dataclass(slots=True)
class _Exploration:
    """A run in progress. ``trials`` made and nanoseconds ``spent`` save reading the store before each trial."""

    experiment: Experiment
    run: Run
    context: RunContext
    trials: int
    trial_time_ns: int
    began_ns: int
    """When this segment of the run began: the run itself, or its last resume. Nanoseconds since 1970."""

    def searches(self, choice: EngineChoice) -> str:
        """Run the searches of one engine, one after each start. Returns why the whole run ends here, or nothing."""
        for start in range(self.experiment.search.starts):
            ended = self._search(choice, start)
            if self.context.systems is not None:
                self.context.systems.release(choice.label)
            if ended:
                return ended
        return ""

    def _search(self, choice: EngineChoice, start: int) -> str:
        """Run the whole search after one start of the engine. Returns why the whole run ends here, or nothing."""
        past = list(self.run.trial_results(choice.label))
        resumed = any(result.ask.start == start for result in past)
        hint = stored_hint(self.run, choice.label, start) if resumed else self._hint(choice)
        search = build(self.experiment, choice.label, hint, start)
        earlier = self.trials - sum(result.ask.start == start for result in past)
        expected = earlier + search.forecast().likely_trials
        while True:
            stop = next((result for result in past if result.verdict.stops_run), None)
            if stop:
                return (
                    f"{choice.label} failed in trial {stop.trial} and would fail at every other load; fix the job "
                    "and run again"
                )
            request = search.next(past)
            if request is None:
                return ""
            if not self._within_budget():
                return f"the budget of {duration_text(self.context.limits.budget or 0)} is used up"
            trial = trial_of(self.experiment, choice, request, self.trials + 1)
            self.context.observer.trial_started(trial, expected)
            past.append(self._run_trial(trial, choice, exact=not hint or not self.experiment.trial.early))

    def _hint(self, choice: EngineChoice) -> float:
        """A load near the limit, measured in the warm-up of a system that serves several trials; 0 if unknown."""
        systems = self.context.systems
        if systems is None or self.experiment.dimension.name != "load" or not self.experiment.searches:
            return 0.0
        first = trial_of(self.experiment, choice, TrialRequest("load", 1.0, "measure"), 0)
        return systems.estimate_limit(self._setup(first, choice, DiscardingRecorder(self.run.sessions), exact=True))

    def _within_budget(self) -> bool:
        """Whether a further trial fits into the budget. The first trial is always run: a result needs one."""
        plan, budget = self.experiment.trial, self.context.limits.budget
        return budget is None or not self.trials or self.trial_time_ns + (plan.warmup or 0) + plan.duration <= budget

    def _setup(self, trial: Trial, choice: EngineChoice, recorder: Recorder, *, exact: bool) -> TrialSetup:
        rule = EarlyStopRule(_watched(trial, self.experiment), self.experiment.objectives, exact)
        setup = setup_of(trial, choice.name, recorder, self.context, rule)
        # a simulated capacity is that of the job as the file gives it; a searched dimension makes it harder or easier
        base = setup.workload.params.from_resolved(self.experiment.workload.params)
        return replace(setup, work=setup.workload.work(setup.params) / setup.workload.work(base))

    def _run_trial(self, trial: Trial, choice: EngineChoice, *, exact: bool) -> TrialResult:
        """Run, judge and store one trial, and return its verdict for the search.

        ``exact``: the search uses the limit that the trial estimates, because the warm-up gave no estimate of it.
        """
        objectives, partial = self.experiment.objectives, self.run.begin(trial)
        recording = execute(self._setup(trial, choice, partial, exact=exact))
        if recording.facts.wall_ns is not None:  # in real time: pauses between run segments differ from time spent
            recording = replace(recording, facts=replace(recording.facts, segment_ns=self.began_ns))
        measurement = measure(recording)
        verdict = decide(recording, measurement, objectives)
        partial.finish(recording, measurement, verdict)
        self.trials, self.trial_time_ns = self.trials + 1, self.trial_time_ns + len(recording.seconds) * SECOND
        self.context.observer.trial_judged(trial, measurement, verdict)
        return TrialResult(trial.ask, verdict, trial.number, measurement.load)


def options_of(choice: EngineChoice) -> Options:
    """The options of an engine of the experiment, as its own class of options."""
    return engines()[choice.name].options.from_resolved(choice.options)


def setup_of(
    trial: Trial, engine: str | Engine, recorder: Recorder, context: RunContext, rule: EarlyStop
) -> TrialSetup:
    """A trial with its engine, its workload and the cores that they get."""
    found = engines()[engine] if isinstance(engine, str) else engine
    options = found.options.from_resolved(trial.options)
    workload, traits = workloads()[trial.workload], found.traits(options)
    layout = found.layout(options, trial.instances)
    return TrialSetup(
        trial=trial,
        engine=found,
        options=options,
        workload=workload,
        params=workload.params.from_resolved(trial.params),
        traits=traits,
        layout=layout,
        early_stop=rule,
        recorder=recorder,
        context=context,
        placement=Placement() if traits.simulated else assign_cores(int(layout.cores)),
    )


def _watched(trial: Trial, experiment: Experiment) -> Trial:
    """The trial for the rule that ends trials early; with ``early: false`` it is a confirmation of full length."""
    return trial if experiment.trial.early else replace(trial, ask=replace(trial.ask, purpose="confirm"))


def trial_of(experiment: Experiment, choice: EngineChoice, request: TrialRequest, number: int) -> Trial:
    """The trial for ``request``. It depends only on the experiment, the request and the number."""
    at = {**dict(request.fixed), request.dimension: request.value}
    load = at.pop("load", None)
    instances = at.pop("instances", None)
    params = {**experiment.workload.params, **{name: _as_integer(value) for name, value in at.items()}}
    plan, traits = experiment.trial, engines()[choice.name].traits(options_of(choice))
    return Trial(
        number=number,
        ask=request,
        workload=experiment.workload.name,
        params=params,
        engine=choice.label,
        options=choice.options,
        instances=round(instances or _instances(experiment, choice)),
        profile=_profile(experiment, load, params),
        duration=plan.duration,
        limit=plan.limit,
        warmup=plan.warmup,
        warmup_limit=plan.warmup_limit,
        queue_bound=plan.queue_bound,
        seed=_seed(experiment.seed, choice.label, request, number),
        partitions=plan.partitions,
        drivers=plan.drivers,
        stall=plan.stall,
        transport=experiment.transport,
        trigger=0 if traits.continuous else traits.batch_interval_ns,
        least=_least(experiment, traits, params),
        send_interval=_send_interval(experiment, choice, traits, load),
    )


def _send_interval(experiment: Experiment, choice: EngineChoice, traits: Traits, load: float | None) -> int:
    """The send interval of an engine that processes events as they arrive; 0 (the default) with micro-batches."""
    if not traits.continuous:
        return 0
    wanted = [o.threshold for o in experiment.objectives if o.metric in ("event-time", "processing-time")]
    partitions = experiment.trial.partitions or int(engines()[choice.name].layout(options_of(choice), 1).cores)
    transport = transports()[experiment.transport.name]
    return transport.send_interval_ns(load or math.inf, partitions, round(min(wanted, default=0.0)))


def _least(experiment: Experiment, traits: Traits, params: dict[str, Any]) -> int:
    """Nanoseconds that a trial must last until outputs can be checked; 0 if no window has to close."""
    workload = workloads()[experiment.workload.name]
    resolved = workload.params.from_resolved(params)
    if traits.simulated or not traits.closes_windows or not isinstance(resolved, Windowed):
        return 0
    return shortest_checked(resolved, traits.batch_interval_ns) if has_reference(workload, resolved) else 0


def _instances(experiment: Experiment, choice: EngineChoice) -> int:
    """The number of instances if it is not searched: from the experiment, or from the engine's options."""
    wanted = round(max(1.0, *experiment.instances.values))
    return engines()[choice.name].layout(options_of(choice), wanted).instances


def _as_integer(value: float) -> float | int:
    """The value as a whole number if it is one: counts and durations are, even if a search computed them."""
    return int(value) if value == int(value) else value


def _profile(experiment: Experiment, load: float | None, params: dict[str, Any]) -> LoadProfile:
    """The load profile of a trial: the experiment's profile, scaled to ``load`` if it is given."""
    shape = experiment.profile
    if load is None:
        if shape is not None:
            return shape
        workload = workloads()[experiment.workload.name]
        load = workload.rate(workload.params.from_resolved(params))
        if load is None:
            raise ValueError(
                "a trial needs a load: the experiment has no profile and its workload does not define a rate"
            )
    if shape is None or shape.shape == "constant":
        return constant(load)
    factor = load / planned_load(shape, experiment.trial.warmup, experiment.trial.duration)
    return scaled(shape, lambda rate: rate * factor)


def _seed(root: int, engine: str, request: TrialRequest, number: int) -> int:
    """A different seed for every trial, which is the same if the run is resumed."""
    named = repr(
        (root, engine, request.dimension, request.value, request.purpose, request.fixed, request.repetition, number)
    )
    return int.from_bytes(blake2b(named.encode(), digest_size=8).digest()) >> 1
