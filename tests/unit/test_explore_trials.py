"""What the search asks becomes a trial: load, instances, parameters, seed."""

from dataclasses import replace

import pytest

from streamgauge.engines.spark.options import SparkOptions
from streamgauge.model.experiment import (
    EngineChoice,
    Experiment,
    Span,
    TransportChoice,
    TrialPlan,
    WorkloadChoice,
)
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant, steps
from streamgauge.model.trial import TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.run.explore import trial_of

ENGINE = EngineChoice("a", "simulated", {})
TIGHT = Objective("event-time", "<", 50_000_000.0, statistic="p99", text="event-time p99 < 50ms")
LOOSE = Objective("processing-time", "<", 2.0 * SECOND, statistic="p99", text="processing-time p99 < 2s")
EXPERIMENT = Experiment(
    name="x",
    workload=WorkloadChoice("database-storage", {"keys": 1000, "frequency": 2.0}),
    engines=(ENGINE,),
    what="sustainable-throughput",
    objectives=(),
    span=Span(between=(1e3, 1e6)),
)


def test_the_requested_load_is_offered_at_a_constant_rate() -> None:
    trial = trial_of(EXPERIMENT, ENGINE, TrialRequest("load", 5e4, "probe"), 1)
    assert trial.profile == constant(5e4)
    assert (trial.load, trial.instances, trial.engine) == (5e4, 1, "a")


def test_a_shape_is_scaled_until_its_mean_over_the_judged_seconds_is_the_requested_load() -> None:
    plan = TrialPlan(duration=10 * SECOND, warmup=5 * SECOND)
    shaped = replace(EXPERIMENT, profile=steps([(10 * SECOND, 100.0), (10 * SECOND, 300.0)]), trial=plan)
    trial = trial_of(shaped, ENGINE, TrialRequest("load", 1000.0, "probe"), 1)
    assert trial.load == 1000.0
    assert [piece.rate for piece in trial.profile.pieces] == [500.0, 1500.0]
    longer = trial_of(replace(shaped, trial=replace(plan, duration=35 * SECOND)), ENGINE, trial.ask, 1)
    assert longer.load == pytest.approx(1000.0)
    assert longer.profile.mean_between(5 * SECOND, 40 * SECOND) == pytest.approx(1000.0)


def test_the_other_coordinates_are_instances_and_parameters() -> None:
    trial = trial_of(EXPERIMENT, ENGINE, TrialRequest("instances", 4.0, "probe", (("load", 2e4),)), 1)
    assert (trial.instances, trial.load) == (4, 2e4)


def test_a_searched_parameter_that_implies_the_load_sets_it() -> None:
    trial = trial_of(EXPERIMENT, ENGINE, TrialRequest("keys", 4096.0, "probe"), 1)
    assert trial.params == {"keys": 4096, "frequency": 2.0}
    assert isinstance(trial.params["keys"], int)
    assert trial.load == 8192.0


def test_every_trial_has_a_different_seed_and_the_same_one_when_resumed() -> None:
    request = TrialRequest("load", 5e4, "probe")
    requests = [
        (request, 1),
        (request, 2),
        (replace(request, repetition=1), 1),
        (replace(request, purpose="confirm"), 1),
    ]
    seeds = [trial_of(EXPERIMENT, ENGINE, a, n).seed for a, n in requests]
    seeds.append(trial_of(replace(EXPERIMENT, seed=2), ENGINE, request, 1).seed)
    seeds.append(trial_of(EXPERIMENT, replace(ENGINE, label="b"), request, 1).seed)
    assert len(set(seeds)) == len(seeds)
    assert trial_of(EXPERIMENT, ENGINE, request, 1).seed == seeds[0]
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_instances_among_the_engines_options_are_those_of_the_trial() -> None:
    four = replace(ENGINE, options={"instances": 4})
    assert trial_of(EXPERIMENT, four, TrialRequest("load", 5e4, "probe"), 1).instances == 4
    assert (
        trial_of(
            replace(EXPERIMENT, instances=Span(values=(8.0,))), ENGINE, TrialRequest("load", 5e4, "probe"), 1
        ).instances
        == 8
    )


def test_a_trial_has_the_trigger_of_its_engine() -> None:
    batches = replace(ENGINE, options={"batch_interval": 2 * SECOND})
    request = TrialRequest("load", 5e4, "probe")
    assert [trial_of(EXPERIMENT, engine, request, 1).trigger for engine in (ENGINE, batches)] == [0, 2 * SECOND]


def test_case_10_an_engine_that_processes_events_as_they_arrive_has_no_trigger_at_which_lag_waits() -> None:
    def trigger(mode: str) -> int:
        options = SparkOptions.model_validate({"mode": mode, "trigger": "5s"}).model_dump()
        return trial_of(
            EXPERIMENT, EngineChoice("spark", "spark", options), TrialRequest("load", 5e4, "probe"), 1
        ).trigger

    assert [trigger(mode) for mode in ("micro-batch", "real-time")] == [5 * SECOND, 0]


@pytest.mark.parametrize(
    ("transport", "objectives", "interval"),
    [
        ("kafka", (), 2),
        ("kafka", (TIGHT,), 1),
        ("kafka", (LOOSE, TIGHT), 1),
        ("kafka", (LOOSE,), 10),
        ("queue", (LOOSE,), 5),
    ],
)
def test_case_17_only_real_time_mode_has_a_send_interval_that_follows_load_and_objective(
    transport: str, objectives: tuple[Objective, ...], interval: int
) -> None:
    experiment = replace(EXPERIMENT, objectives=objectives, transport=TransportChoice(transport, {}))
    spark = {
        mode: EngineChoice(mode, "spark", SparkOptions(mode=mode).model_dump()) for mode in ("micro-batch", "real-time")
    }
    request = TrialRequest("load", 400.0, "measure")
    assert trial_of(experiment, spark["real-time"], request, 1).send_interval == interval * 1_000_000
    assert trial_of(experiment, spark["micro-batch"], request, 1).send_interval == 0, (
        "as usual: events are collected anyway"
    )
    assert trial_of(experiment, ENGINE, request, 1).send_interval == 0


def test_case_17_a_higher_load_over_kafka_is_sent_less_often() -> None:
    """Each send interval is a request for every partition, and a broker takes some hundred of them in a second."""
    experiment = replace(EXPERIMENT, objectives=(TIGHT,), transport=TransportChoice("kafka", {}))
    experiment = replace(experiment, trial=replace(experiment.trial, partitions=4))
    spark = EngineChoice("spark", "spark", SparkOptions(mode="real-time").model_dump())
    found = [
        trial_of(experiment, spark, TrialRequest("load", load, "measure"), 1).send_interval
        for load in (100.0, 50_000.0)
    ]
    assert found == [1_000_000, 8_000_000]
