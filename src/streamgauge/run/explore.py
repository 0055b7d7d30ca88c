"""Explore: Experiment → Findings. The main loop of a run.

search.next(past) → Trial → execute → measure → decide → stored → past, until the search needs no further trial. All
state is in the store, so a resumed run continues in the same way.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from streamgauge.engines.contract import Engine, RealEngine, StandingEngine, appends, continuous, trigger_of
from streamgauge.engines.registry import engines
from streamgauge.judge import Watch, decide, measure
from streamgauge.model.experiment import EngineChoice, Experiment
from streamgauge.model.finding import Told
from streamgauge.model.options import Params
from streamgauge.model.profile import LoadProfile, constant, planned_load, scaled
from streamgauge.model.trial import Ask, Trial
from streamgauge.model.units import SECOND, format_duration
from streamgauge.processes.clock import Clock
from streamgauge.run.driver.send_schedule import send_interval
from streamgauge.run.limits import Limits
from streamgauge.run.result import Explored, answer, hint_of, spent
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import Listener, Silence
from streamgauge.search import build
from streamgauge.store import Run
from streamgauge.workloads.contract import Workload, has_reference
from streamgauge.workloads.parameters import Windowed, shortest_checked
from streamgauge.workloads.registry import workloads

if TYPE_CHECKING:
    from streamgauge.run.systems import Systems
    from streamgauge.transports.kafka.transport import Kafka


def explore(
    experiment: Experiment,
    run: Run,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    listener: Listener | None = None,
) -> Explored:
    """Run trials until every engine has its results, and store these."""
    listener, ended = listener or Silence(), ""
    with (
        _kafka(experiment, run, limits, listener) as kafka,
        _systems(experiment, run, limits, listener, kafka) as systems,
    ):
        ground, begun = _Ground(systems, kafka), Clock().wall_ns()
        exploration = _Exploration(experiment, run, limits, listener, ground, run.trial_count(), spent(run), begun)
        for choice in experiment.engines:
            ended = exploration.searches(choice)
            if ended:
                break
    explored = answer(experiment, run, ended)
    run.write_conclusion(explored.findings, explored.ended, explored.exit_code, explored.spent)
    return explored


@contextmanager
def _kafka(experiment: Experiment, run: Run, limits: Limits, listener: Listener) -> Iterator["Kafka | None"]:
    """The Kafka brokers of the run; None if its events are in the queue."""
    if experiment.transport.name != "kafka":
        yield None
        return
    from streamgauge.transports.kafka.transport import Ground, kafka_of  # noqa: PLC0415 (confluent-kafka only where there is Kafka)

    ground = Ground(limits.cache, limits.runtime, limits.cluster)
    with kafka_of(experiment.transport, run.id, run.sessions, ground, listener.said) or nullcontext() as kafka:
        yield kafka


@contextmanager
def _systems(
    experiment: Experiment, run: Run, limits: Limits, listener: Listener, kafka: "Kafka | None"
) -> Iterator["Systems | None"]:
    """The systems under test that serve several trials; None if no engine of the experiment has one."""
    if not any(isinstance(engines().get(choice.name), StandingEngine) for choice in experiment.engines):
        yield None
        return
    from streamgauge.run.systems import Systems  # noqa: PLC0415 (Arrow Flight only where a process is started)

    with Systems(run.sessions, limits.runtime, listener.said, kafka) as systems:
        yield systems


class _Ground(NamedTuple):
    """What keeps running between the trials of a run."""

    systems: "Systems | None"
    kafka: "Kafka | None"


@dataclass(slots=True)
class _Exploration:
    """A run in progress. ``trials`` made and nanoseconds ``spent`` save reading the store before each trial."""

    experiment: Experiment
    run: Run
    limits: Limits
    listener: Listener
    ground: _Ground
    trials: int
    spent: int
    begun: int
    """When this segment of the run began: the run itself, or its last resume. Nanoseconds since 1970."""

    def searches(self, choice: EngineChoice) -> str:
        """Run the searches of one engine, one after each start. Returns why the whole run ends here, or nothing."""
        for start in range(self.experiment.search.starts):
            ended = self._search(choice, start)
            if self.ground.systems is not None:
                self.ground.systems.release(choice.label)
            if ended:
                return ended
        return ""

    def _search(self, choice: EngineChoice, start: int) -> str:
        """Run the whole search after one start of the engine. Returns why the whole run ends here, or nothing."""
        past = list(self.run.trial_results(choice.label))
        begun = any(told.ask.start == start for told in past)
        hint = hint_of(self.run, choice.label, start) if begun else self._hint(choice)
        search = build(self.experiment, choice.label, hint, start)
        earlier = self.trials - sum(told.ask.start == start for told in past)
        expected = earlier + search.forecast().likely
        while True:
            stop = next((told for told in past if told.verdict.stops_run), None)
            if stop:
                return (
                    f"{choice.label} failed in trial {stop.trial} and would fail at every other load; fix the job "
                    "and run again"
                )
            ask = search.next(past)
            if ask is None:
                return ""
            if not self._affordable():
                return f"the budget of {format_duration(self.limits.budget or 0)} is used up"
            trial = trial_of(self.experiment, choice, ask, self.trials + 1)
            self.listener.begun(trial, expected)
            past.append(self._answer(trial, choice, exact=not hint or not self.experiment.trial.early))

    def _hint(self, choice: EngineChoice) -> float:
        """A load near the limit, measured in the warm-up of a system that serves several trials; 0 if unknown."""
        systems = self.ground.systems
        if systems is None or self.experiment.dimension.name != "load" or self.experiment.what == "nothing":
            return 0.0
        first = trial_of(self.experiment, choice, Ask("load", 1.0, "measure"), 0)
        engine, workload = engines()[choice.name], workloads()[first.workload]
        return systems.hint(engine, first, workload)

    def _affordable(self) -> bool:
        """Whether a further trial fits into the budget. The first trial is always run: a result needs one."""
        plan, budget = self.experiment.trial, self.limits.budget
        return budget is None or not self.trials or self.spent + (plan.warmup or 0) + plan.duration <= budget

    def _answer(self, trial: Trial, choice: EngineChoice, *, exact: bool) -> Told:
        """Run, judge and store one trial, and return its verdict for the search.

        ``exact``: the search uses the limit that the trial estimates, because the warm-up gave no estimate of it.
        """
        objectives = self.experiment.objectives
        engine, workload = engines()[choice.name], workloads()[trial.workload]
        # a simulated capacity is that of the job as the file gives it; a searched dimension makes it harder or easier
        asked = workload.params.from_resolved(self.experiment.workload.params)
        work = workload.work(workload.params.from_resolved(trial.params)) / workload.work(asked)
        partial = self.run.begin(trial)
        watch = Watch(_watched(trial, self.experiment), objectives, exact)
        recording = execute(
            trial,
            engine,
            workload,
            watch,
            partial,
            listener=self.listener,
            limits=self.limits,
            work=work,
            systems=self.ground.systems,
            kafka=self.ground.kafka,
        )
        if recording.facts.wall_ns is not None:  # in real time: pauses between run segments are no time spent
            recording = replace(recording, facts=replace(recording.facts, segment_ns=self.begun))
        measurement = measure(recording)
        verdict = decide(recording, measurement, objectives)
        partial.finish(recording, measurement, verdict)
        self.trials, self.spent = self.trials + 1, self.spent + len(recording.seconds) * SECOND
        self.listener.judged(trial, measurement, verdict)
        return Told(trial.ask, verdict, trial.number)


def _watched(trial: Trial, experiment: Experiment) -> Trial:
    """The trial for the rule that ends trials early; with ``early: false`` it is a confirmation of full length."""
    return trial if experiment.trial.early else replace(trial, ask=replace(trial.ask, purpose="confirm"))


def trial_of(experiment: Experiment, choice: EngineChoice, ask: Ask, number: int) -> Trial:
    """The trial for ``ask``. It depends only on the experiment, the ask and the number."""
    at = {**dict(ask.fixed), ask.dimension: ask.value}
    load = at.pop("load", None)
    instances = at.pop("instances", None)
    params = {**experiment.workload.params, **{name: _like(value) for name, value in at.items()}}
    plan, engine, workload = experiment.trial, engines().get(choice.name), workloads()[experiment.workload.name]
    typed = workload.params.from_resolved(params)
    return Trial(
        number=number,
        ask=ask,
        workload=experiment.workload.name,
        params=params,
        engine=choice.label,
        options=choice.options,
        instances=round(instances or _instances(experiment, choice)),
        profile=_profile(experiment, load, workload.rate(typed)),
        duration=plan.duration,
        limit=plan.limit,
        warmup=plan.warmup,
        warmup_limit=plan.warmup_limit,
        queue_bound=plan.queue_bound,
        seed=_seed(experiment.seed, choice.label, ask, number),
        partitions=plan.partitions,
        drivers=plan.drivers,
        stall=plan.stall,
        transport=experiment.transport,
        trigger=trigger_of(engine, choice.options),
        least=_least(engine, choice, workload, typed),
        send_interval=_interval(experiment, choice, load),
    )


def _interval(experiment: Experiment, choice: EngineChoice, load: float | None) -> int:
    """The send interval of an engine that processes events as they arrive; 0 (the default) with micro-batches."""
    if not continuous(engines().get(choice.name), choice.options):
        return 0
    asked = [o.threshold for o in experiment.objectives if o.metric in ("event-time", "processing-time")]
    partitions = experiment.trial.partitions or int(choice.options.get("cores", 1))
    kafka = experiment.transport.name == "kafka"
    return send_interval(kafka, load or math.inf, partitions, round(min(asked, default=0.0)))


def _least(engine: Engine | None, choice: EngineChoice, workload: Workload[Any], params: Params) -> int:
    """Nanoseconds that a trial must last until outputs can be checked; 0 if no window has to close."""
    if not isinstance(engine, RealEngine) or not isinstance(params, Windowed) or not has_reference(workload, params):
        return 0
    return shortest_checked(params, trigger_of(engine, choice.options)) if appends(engine, choice.options) else 0


def _instances(experiment: Experiment, choice: EngineChoice) -> float:
    """The number of instances if it is not searched: from the experiment, or from the engine's options."""
    return max(*experiment.instances.values, float(choice.options.get("instances", 1)), 1.0)


def _like(value: float) -> float | int:
    """The value as a whole number if it is one: counts and durations are, even if a search computed them."""
    return int(value) if value == int(value) else value


def _profile(experiment: Experiment, load: float | None, implied: float | None) -> LoadProfile:
    """The load profile of a trial: the experiment's profile, scaled to ``load`` if it is given.

    Without a profile and a given load it is the load that the workload ``implied``.
    """
    shape = experiment.profile
    if load is None:
        if shape is not None:
            return shape
        load = implied
        if load is None:
            raise ValueError(
                "a trial needs a load: the experiment has no profile and its workload does not define a rate"
            )
    if shape is None or shape.shape == "constant":
        return constant(load)
    factor = load / planned_load(shape, experiment.trial.warmup, experiment.trial.duration)
    return scaled(shape, lambda rate: rate * factor)


def _seed(root: int, engine: str, ask: Ask, number: int) -> int:
    """A different seed for every trial, which is the same if the run is resumed."""
    named = repr((root, engine, ask.dimension, ask.value, ask.purpose, ask.fixed, ask.repetition, number))
    return int.from_bytes(blake2b(named.encode(), digest_size=8).digest()) >> 1
