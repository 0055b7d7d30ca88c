"""Which trials share a system: those of one engine of the experiment on one layout, while it is up and clean."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from judge_samples import trial

from streamgauge.engines.contract import (
    Deployment,
    Job,
    JobRun,
    Layout,
    Options,
    RealEngine,
    Requirement,
    Situation,
    System,
    Traits,
)
from streamgauge.judge import EarlyStopRule
from streamgauge.model.trial import Trial
from streamgauge.parse import read
from streamgauge.processes.launch import Launcher
from streamgauge.processes.spec import Host, LaunchError, RunningProcess
from streamgauge.run.explore import _Exploration, setup_of
from streamgauge.run.systems import SystemFailed, SystemPool
from streamgauge.run.trial.setup import DiscardingRecorder, NullObserver, RunContext, TrialSetup
from streamgauge.store import Store

TWO_ENGINES = """\
name: two
workload: windowed-aggregation
engines:
  - {name: simulated, label: one, capacity: 100k/s}
  - {name: simulated, label: two, capacity: 100k/s}
find: nothing
load: {values: [10k/s, 20k/s]}
trial: {duration: 5s, warmup: 1s}
"""


@dataclass
class Stub:
    """A system without processes. It is up until it is ended."""

    layout: Layout
    up: bool = True
    left: tuple[str, ...] = ()

    def deploy(self, run: JobRun[Any]) -> AbstractContextManager[Deployment]:
        """No trial is run here."""
        raise NotImplementedError

    def alive(self) -> bool:
        """Until it is ended."""
        return self.up

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """None."""
        return {}

    def leftovers(self) -> Sequence[str]:
        """What the last trial left."""
        return self.left


class StubOptions(Options):
    """No options."""


@dataclass
class StubEngine:
    """An engine whose systems are counted."""

    shared: bool = True
    fails: str = ""
    started: list[Stub] = field(default_factory=list)
    name = "stub"
    summary = "for this test"
    options: type[Options] = StubOptions
    jobs = (Job("ingest"),)

    def check(self, situation: Situation[Any]) -> Sequence[str]:
        """Everything can be run."""
        return ()

    def requirements(self, options: Options, transport: str) -> Sequence[Requirement]:
        """Nothing."""
        return ()

    def layout(self, options: Options, instances: int) -> Layout:
        """One core for all instances."""
        return Layout(instances, 1)

    def traits(self, options: Options) -> Traits:
        """No warm-up."""
        return Traits(batch_interval_ns=1_000_000, shared=self.shared)

    @contextmanager
    def start(self, layout: Layout, options: Options, host: Host) -> Iterator[System]:
        """A system, until the context is left."""
        if self.fails:
            raise LaunchError(self.fails, ("the last line of its log",))
        system = Stub(layout)
        self.started.append(system)
        yield system
        system.up = False


class Messages(NullObserver):
    """Keeps what the user is shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def message(self, text: str) -> None:
        """Keep it."""
        self.shown.append(text)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[SystemPool]:
    """A pool whose launcher starts nothing."""
    made = SystemPool(tmp_path)
    made._launcher = cast(Launcher, SimpleNamespace(runtime=tmp_path, close=lambda: None))
    with made:
        yield made


def setup(engine: StubEngine, label: str = "a", instances: int = 1) -> TrialSetup:
    """A trial of an engine of the experiment."""
    of = replace(trial(), engine=label, instances=instances)
    rule = EarlyStopRule(of, ())
    return setup_of(of, engine, DiscardingRecorder(Path()), RunContext(observer=Messages()), rule)


def test_the_engine_of_this_test_satisfies_the_contract() -> None:
    assert isinstance(StubEngine(), RealEngine)


def test_trials_of_one_engine_on_one_layout_share_a_system(pool: SystemPool) -> None:
    engine = StubEngine()
    first = pool.get(setup(engine))
    pool.finished(setup(engine), intact=True)
    assert pool.get(setup(engine)) is first
    assert len(engine.started) == 1


def test_another_layout_gets_another_system_and_the_first_one_stays_up(pool: SystemPool) -> None:
    engine = StubEngine()
    one, two = pool.get(setup(engine)), pool.get(setup(engine, instances=2))
    assert one is not two
    assert [system.layout.instances for system in engine.started] == [1, 2]
    assert pool.get(setup(engine)) is one
    assert all(system.alive() for system in engine.started)


def test_two_entries_of_an_experiment_with_the_same_engine_do_not_share_a_system(pool: SystemPool) -> None:
    """Their options differ: each has its own label."""
    engine = StubEngine()
    assert pool.get(setup(engine, "a")) is not pool.get(setup(engine, "b"))
    assert len(engine.started) == 2


def test_a_system_that_is_not_shared_serves_one_trial(pool: SystemPool) -> None:
    engine = StubEngine(shared=False)
    pool.get(setup(engine))
    pool.finished(setup(engine), intact=True)
    assert not engine.started[0].alive()
    assert pool.get(setup(engine)) is engine.started[1]


def test_a_system_whose_trial_was_not_intact_serves_no_other(pool: SystemPool) -> None:
    engine = StubEngine()
    pool.get(setup(engine))
    pool.finished(setup(engine), intact=False)
    assert not engine.started[0].alive()


def test_a_system_that_a_trial_left_something_in_is_replaced_and_the_user_is_shown_what(pool: SystemPool) -> None:
    engine, of = StubEngine(), setup(StubEngine())
    of = replace(of, engine=engine)
    pool.get(of)
    engine.started[0].left = ("a query is still running",)
    pool.finished(of, intact=True)
    assert not engine.started[0].alive()
    observer = of.context.observer
    assert isinstance(observer, Messages)
    assert any("because the trial left this running: a query is still running" in text for text in observer.shown)


def test_a_system_that_ended_is_started_again(pool: SystemPool) -> None:
    engine = StubEngine()
    pool.get(setup(engine))
    engine.started[0].up = False
    assert pool.get(setup(engine)) is engine.started[1]


def test_the_systems_of_one_entry_end_with_its_search_and_the_others_stay(pool: SystemPool) -> None:
    engine = StubEngine()
    for label, instances in (("a", 1), ("a", 2), ("b", 1)):
        pool.get(setup(engine, label, instances))
    pool.release("a")
    assert [system.alive() for system in engine.started] == [False, False, True]


class Releases(NullObserver):
    """Keeps in one list which trials began and which engines had their systems released; it is observer and pool."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def trial_started(self, trial: Trial, expected_trials: int) -> None:
        """A trial begins."""
        self.order.append(trial.engine)

    def release(self, label: str) -> None:
        """The search of an engine has ended."""
        self.order.append(f"release {label}")


def test_a_run_releases_the_systems_of_each_engine_before_the_first_trial_of_the_next(tmp_path: Path) -> None:
    experiment = read(TWO_ENGINES)
    run = Store(tmp_path).create(experiment, TWO_ENGINES, {}, datetime.now(UTC), "ab")
    seen = Releases()
    context = RunContext(observer=seen, systems=cast(SystemPool, seen))
    exploration = _Exploration(experiment, run, context, 0, 0, 0)
    assert [exploration.searches(choice) for choice in experiment.engines] == ["", ""]
    assert seen.order == ["one", "one", "release one", "two", "two", "release two"]


def test_all_systems_end_with_the_run(pool: SystemPool) -> None:
    engine = StubEngine()
    for instances in (1, 2, 3):
        pool.get(setup(engine, instances=instances))
    pool.close()
    assert not any(system.alive() for system in engine.started)


def test_a_system_that_does_not_start_is_the_outcome_of_its_trial(pool: SystemPool) -> None:
    engine = StubEngine(fails="stub did not print ready within 20s")
    with pytest.raises(SystemFailed) as failed:
        pool.get(setup(engine))
    outcome = failed.value.outcome
    assert (outcome.ending, outcome.unready) == ("crashed", True)
    assert outcome.detail == "it did not start: stub did not print ready within 20s"
    assert outcome.log_tail == ("the last line of its log",)
    engine.fails = ""
    assert pool.get(setup(engine)).alive(), "the next trial starts another one"


def test_an_engine_without_a_warm_up_has_no_facts_about_one_and_no_estimate(pool: SystemPool) -> None:
    engine = StubEngine()
    pool.get(setup(engine))
    assert pool.warm_up_facts(setup(engine)) is None
    assert pool.estimate_limit(setup(engine)) == 0.0
