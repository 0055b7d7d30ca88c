"""What an experiment file means."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from experiment_text import write
from pydantic import Field

from streamgauge.engines.contract import Engine, Job, Layout, Options, Requirement, Situation, Traits
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.model.experiment import LOAD, Span, TransportChoice, TrialPlan
from streamgauge.model.options import Duration, Size
from streamgauge.model.profile import constant, fluctuating, ramp, replay, spikes, steps
from streamgauge.model.units import SECOND
from streamgauge.parse import ExperimentError, objective, read, schema, shipped_names, shipped_text

TOP = "name: x\nworkload: windowed-aggregation\nengine: simulated\n"
SEARCHED = TOP + "find: sustainable-throughput\nload: {between: [10k/s, 5M/s]}\n"


def problems_of(text: str, *overrides: str) -> list[str]:
    with pytest.raises(ExperimentError) as caught:
        read(text, "my.yaml", overrides)
    return [str(problem) for problem in caught.value.problems]


def test_the_shortest_file_gets_its_defaults_from_the_papers() -> None:
    experiment = read(SEARCHED)
    assert experiment.workload.params["window"] == 8 * SECOND
    assert experiment.engines[0].label == "simulated"
    assert (experiment.dimension, experiment.span) == (LOAD, Span(between=(1e4, 5e6)))
    assert [o.text for o in experiment.objectives] == ["lag-trend <= 1%", "lost == 0"]
    assert experiment.trial == TrialPlan()
    assert experiment.seed == 1


def test_several_engines_are_distinguished_by_label() -> None:
    text = SEARCHED.replace("engine: simulated", "engines: [simulated, {name: simulated, label: b, noise: 3%}]")
    assert [(e.label, e.options["noise"]) for e in read(text).engines] == [("simulated", 0.0), ("b", 0.03)]


def test_values_are_searched_in_ascending_order() -> None:
    assert read(TOP + "find: capacity\nload: {values: [3k/s, 1k/s]}\ninstances: [4, 1]").span.values == (1e3, 3e3)


def test_instances_may_be_a_number_a_list_or_a_range() -> None:
    demand = TOP + "find: demand\nload: {values: [1k/s]}\n"
    assert read(demand + "instances: [1, 2, 4]").instances == Span(values=(1.0, 2.0, 4.0))
    assert read(demand + "instances: {between: [1, 16]}").instances == Span(between=(1.0, 16.0))
    assert read(SEARCHED + "instances: 4").instances == Span(values=(4.0,))


ON_SPARK = TOP.replace("simulated", "spark")


@pytest.mark.parametrize(
    "question",
    [
        "find: demand\nload: {values: [1k/s]}\ninstances: [1, 2, 4]",
        "find: demand\nload: {values: [1k/s]}\ninstances: {between: [1, 4]}",
        "find: capacity\nload: {between: [10k/s, 5M/s]}\ninstances: [1, 2]",
        "find: sustainable-throughput\nload: {between: [10k/s, 5M/s]}\ninstances: 4",
        "find: nothing\nload: {rate: 10k/s}\ninstances: 2",
    ],
)
def test_case_8_more_than_one_instance_of_an_engine_that_does_not_scale_is_refused(question: str) -> None:
    (problem,) = problems_of(ON_SPARK + question)
    assert "instances: engine spark always runs as one instance, so several cannot be compared" in problem
    assert "use an engine that scales: reference, simulated" in problem
    assert read(TOP + question).engines[0].name == "simulated", "which scales"


def test_case_8_one_instance_of_an_engine_that_does_not_scale_is_accepted() -> None:
    question = "find: sustainable-throughput\nload: {between: [10k/s, 5M/s]}\ninstances: 1"
    assert read(ON_SPARK + question).instances == Span(values=(1.0,))


LONG = ON_SPARK.replace("windowed-aggregation", "{name: windowed-aggregation, window: 3d, slide: 3d}")
LONG += "transport: kafka\n"


def test_case_3_windows_of_three_days_are_measured_in_update_mode_where_none_has_to_close() -> None:
    text = LONG + "find: sustainable-throughput\nload: {between: [10k/s, 5M/s]}\ntrial: {duration: 30s, warmup: 5s}\n"
    (problem,) = problems_of(text, "engine.trigger=2s")
    assert "trial.duration: 30s is too short to check outputs of spark" in problem
    assert "Set it to at least 518405s, or use shorter windows" in problem, (
        "two windows, 200 ms of watermark, two triggers"
    )
    experiment = read(text, overrides=("engine.trigger=2s", "engine.output_mode=update"))
    assert experiment.workload.params["window"] == 3 * 86_400 * SECOND
    assert experiment.trial.duration == 30 * SECOND


def test_the_load_may_follow_from_keys_and_frequency() -> None:
    text = "name: x\nworkload: {name: downsampling, keys: 5k, frequency: 2/s}\nengine: simulated\n"
    assert read(text + "find: nothing").profile == constant(10_000.0)
    extreme = read(text + "find: {extreme: keys, values: [1k, 2k]}")
    assert extreme.profile is None
    assert (extreme.dimension.name, extreme.span.values) == ("keys", (1000.0, 2000.0))


@pytest.mark.parametrize(
    ("load", "profile"),
    [
        ("{rate: 50k/s}", constant(50_000.0)),
        ("{profile: constant, rate: 50k/s}", constant(50_000.0)),
        ("{profile: steps, steps: [[30s, 10k/s], [5s, 0/s]]}", steps([(30 * SECOND, 1e4), (5 * SECOND, 0.0)])),
        ("{profile: ramp, from: 0/s, to: 1k/s, over: 1m}", ramp(0.0, 1e3, 60 * SECOND)),
        (
            "{profile: spikes, base: 1k/s, peak: 9k/s, every: 10s, length: 1s}",
            spikes(1e3, 9e3, 10 * SECOND, SECOND, 360 * SECOND),
        ),
        ("{profile: fluctuating, rate: 840k/s}", fluctuating(840e3, 840e3 * 0.333, 60 * SECOND)),
        ("{profile: fluctuating, rate: 600/s, low: 300/s, over: 9s}", fluctuating(600.0, 300.0, 9 * SECOND)),
        ("{profile: replay, rates: [1k/s, 2k/s], step: 5s}", replay([1e3, 2e3], 5 * SECOND)),
    ],
)
def test_every_profile_can_be_written(load: str, profile: object) -> None:
    experiment = read(TOP + f"find: nothing\nload: {load}")
    assert experiment.profile == profile
    assert read(write(experiment)) == experiment


def test_a_profile_with_searched_loads_is_a_shape_that_is_scaled() -> None:
    load = "load: {profile: ramp, from: 0/s, to: 2k/s, over: 1m, between: [1k/s, 9k/s]}"
    experiment = read(TOP + "find: sustainable-throughput\n" + load)
    assert experiment.profile == ramp(0.0, 2e3, 60 * SECOND)
    assert experiment.span == Span(between=(1e3, 9e3))


def test_a_transport_is_a_name_or_a_mapping_and_is_written_back_whole() -> None:
    real = SEARCHED.replace("engine: simulated", "engine: reference")
    assert read(real).transport == TransportChoice()
    assert read(real + "transport: queue\n").transport == TransportChoice()
    plain = read(real + "transport: kafka\n")
    assert (plain.transport.name, plain.transport.options["format"]) == ("kafka", "binary")
    login = "tls: true, mechanism: PLAIN, user: me, password: {env: SECRET}"
    own = read(real + f"transport: {{name: kafka, acks: 1, linger: 2ms, cluster: {{bootstrap: 'a:1', {login}}}}}\n")
    assert own.transport.options["cluster"]["password"] == {"env": "SECRET", "file": None}
    for experiment in (plain, own):
        assert read(write(experiment)) == experiment


def test_the_limit_of_a_trial_follows_from_its_duration() -> None:
    assert read(SEARCHED + "trial: {duration: 2m}").trial.limit == 600 * SECOND
    assert read(SEARCHED + "trial: {limit: 30s, duration: 10s}").trial.warmup_limit == 30 * SECOND
    assert read(SEARCHED + "trial: {warmup: 0s}").trial.warmup == 0


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("lag-trend <= 1%", ("lag-trend", "<=", 0.01, True, None)),
        ("lag-trend<=2000/s", ("lag-trend", "<=", 2000.0, False, None)),
        ("latency-trend <= 10ms/s", ("latency-trend", "<=", 0.01, False, None)),
        ("lag-growth < 100", ("lag-growth", "<", 100.0, False, None)),
        ("queue <= 5M", ("queue", "<=", 5e6, False, None)),
        ("queue <= 200%", ("queue", "<=", 2.0, True, None)),
        ("output-error <= 0.1%", ("output-error", "<=", 0.001, False, None)),
        ("drops == 0", ("drops", "==", 0.0, False, None)),
        ("late <= 0.1%", ("late", "<=", 0.001, True, None)),
        ("event-time  p99 < 2s", ("event-time", "<", 2e9, False, "p99")),
        ("processing-time p99.9 <= 250 ms", ("processing-time", "<=", 250e6, False, "p99.9")),
    ],
)
def test_objectives_are_read_exactly(text: str, meaning: tuple[object, ...]) -> None:
    found = objective(text)
    assert (found.metric, found.operator, found.threshold, found.relative, found.statistic) == meaning
    assert objective(found.text) == found


def test_shares_of_what_holds_may_be_measured_too() -> None:
    experiment = read(SEARCHED + "search: {also: [90%, 0.5]}")
    assert experiment.search.also == (0.9, 0.5)
    assert read(write(experiment)) == experiment
    assert "also: [90%, 50%]" in write(experiment)
    assert "also" not in write(read(SEARCHED))


def test_one_objective_needs_no_list() -> None:
    assert [o.text for o in read(SEARCHED + "objective: event-time p95 < 2s").objectives] == ["event-time p95 < 2s"]


def test_a_problem_names_file_line_column_key_and_the_nearest_match() -> None:
    (problem,) = problems_of(SEARCHED.replace("engine: simulated", "engine: {name: simulated, capasity: 1M/s}"))
    assert problem.startswith("my.yaml:3:27: engine.capasity: unknown option; allowed: name, label, capacity, ")
    assert problem.endswith("; did you mean capacity?")


def test_a_duplicate_key_does_not_hide_other_problems() -> None:
    assert len(problems_of(SEARCHED + "seed: 1\nseed: 2\nobjectve: lost == 0\n")) == 2


def test_overrides_change_the_values_of_the_file() -> None:
    changes = ("engine.capacity=1M/s", "load.between[1]=2M/s", "objective=[lost == 0]", "trial.duration=30s")
    experiment = read(SEARCHED, overrides=changes)
    assert experiment.engines[0].options["capacity"] == 1e6
    assert experiment.span.between == (1e4, 2e6)
    assert [o.text for o in experiment.objectives] == ["lost == 0"]
    assert experiment.trial.duration == 30 * SECOND


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("engine.capasity=1M/s", "--set engine.capasity=1M/s: engine.capasity: unknown option"),
        ("engine.capacity=1M", "--set engine.capacity=1M: engine.capacity: a rate is written like"),
        ("load.between[2]=1M/s", "--set load.between[2]=1M/s: load.between[2]: [2] is past the end"),
        ("load.between.x=1", "needs a mapping, but the value before it is not a mapping"),
        ("name[0]=1", "needs a list, but the value before it is not a list"),
        ("seed", "must be key=value"),
        ("a b=1", "is not a key such as"),
        ("seed=[1", "invalid YAML"),
        ("seed=&a 1", "YAML anchors such as &a are not supported"),
        ("seed=", "seed: is empty"),
    ],
)
def test_a_wrong_override_is_named_by_its_text(change: str, said: str) -> None:
    (problem,) = problems_of(SEARCHED, change)
    assert problem.startswith(f"--set {change}: ")
    assert said in problem


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_experiment_reads_and_writes_back_as_itself(name: str) -> None:
    experiment = read(shipped_text(name), name)
    assert name.endswith(experiment.name)
    assert read(write(experiment)) == experiment


@pytest.mark.parametrize("name", ["quickstart", "quickstart-kafka"])
@pytest.mark.parametrize("trigger", [None, "4s"])
def test_case_9_the_trigger_itself_does_not_reach_the_queue_bound_of_a_quickstart(
    name: str, trigger: str | None
) -> None:
    """A system that keeps up takes what is there at every trigger, so at most one trigger of load waits."""
    experiment = read(shipped_text(name), name, (f"engine.trigger={trigger}",) if trigger else ())
    (bound,) = (o for o in experiment.objectives if o.metric == "queue")
    assert bound.relative
    seconds = experiment.engines[0].options["trigger"] / SECOND
    assert seconds == (4 if trigger else 2)
    assert bound.threshold >= 2 * seconds, "in seconds of load; one trigger more may wait while a micro-batch is late"


def test_the_quickstart_is_shipped_and_what_is_not_shipped_is_not_there() -> None:
    assert "quickstart" in shipped_names()
    for name in ("../pyproject", "nothing", ""):
        with pytest.raises(KeyError):
            shipped_text(name)


def test_nothing_is_rounded_when_an_experiment_is_written() -> None:
    text = SEARCHED.replace("windowed-aggregation", "{name: windowed-aggregation, window: 8000000001ns}")
    text = (
        text.replace("5M/s", "5000000.1/s") + 'description: "a: \\"b\\"\\n# é \\0 null"\nsearch: {precision: 3.33333%}'
    )
    experiment = read(text)
    written = write(experiment)
    assert "window: 8000000001ns" in written
    assert "5000000.1/s" in written
    assert read(written) == experiment


def test_the_schema_contains_every_key_engine_and_workload() -> None:
    made = schema()
    text = json.dumps(made)
    assert made["$schema"].endswith("2020-12/schema")
    assert set(read_keys()) == set(made["properties"])
    for word in (
        "simulated",
        "noise_memory",
        "hierarchical-aggregation",
        "attribute_values",
        "fluctuating",
        "queue_bound",
    ):
        assert f'"{word}"' in text
    assert '"default": "500k/s"' in text
    assert "$ref" not in text


def read_keys() -> tuple[str, ...]:
    (problem,) = problems_of(SEARCHED + "zzz: 1")
    return tuple(problem.split("allowed: ")[1].split(";")[0].split(", "))


class _Picky:
    """An engine of another package: one workload, and its own idea of what goes together."""

    name = "picky"
    summary = "for this test"
    jobs: tuple[Job, ...] = (Job("downsampling"),)

    class options(Options):
        heap: Size = Field(default=2**30, description="memory of one instance")
        stages: list[Duration] = Field(default=[], description="a list in a unit")

    def check(self, situation: Situation[Any]) -> Sequence[str]:
        return ["a heap under 1 KiB cannot start; raise heap"] if situation.options.heap < 1024 else []

    def requirements(self, options: Options, transport: str) -> Sequence[Requirement]:
        return ()

    def layout(self, options: Options, instances: int) -> Layout:
        return Layout(instances)

    def traits(self, options: Options) -> Traits:
        return Traits(batch_interval_ns=SECOND)


PICKY: dict[str, Engine] = {"picky": _Picky()}


def test_an_engine_of_another_package_is_read_checked_and_written_like_a_built_in_one() -> None:
    text = "name: x\nworkload: {name: downsampling, window: 10s}\nfind: nothing\n"
    text += "engine: {name: picky, heap: 2GiB, stages: [1s, 1500us]}\n"
    experiment = read(text, engines=PICKY)
    assert experiment.engines[0].options == {"heap": 2**31, "stages": [SECOND, 1_500_000]}
    assert read(write(experiment, PICKY), engines=PICKY) == experiment
    assert '"picky"' in json.dumps(schema(PICKY))


def test_an_engine_itself_refuses_what_it_cannot_do() -> None:
    text = "name: x\nworkload: windowed-aggregation\nengine: {name: picky, heap: 1kB, stages: [1]}\nfind: nothing\n"
    with pytest.raises(ExperimentError) as caught:
        read(text.replace("[1]", "[1s]"), "my.yaml", engines=PICKY)
    said = [str(problem) for problem in caught.value.problems]
    assert "my.yaml:3:9: engine: a heap under 1 KiB cannot start; raise heap" in said
    assert (
        "my.yaml:3:9: engine: picky does not implement the workload windowed-aggregation; allowed: downsampling" in said
    )
    with pytest.raises(ExperimentError, match=r"3:43: engine\.stages\[0\]: a duration needs a unit"):
        read(text, "my.yaml", engines=PICKY)


class _Narrow(_Picky):
    """An engine that reads one workload only over Kafka, and another only from the queue."""

    name = "narrow"
    jobs: tuple[Job, ...] = (Job("ingest", transports=frozenset({"kafka"})), Job("windowed-aggregation"))


class _Narrower(_Narrow):
    """An engine with one job."""

    jobs = (Job("ingest", transports=frozenset({"kafka"})),)


NARROW: dict[str, Engine] = {"narrow": _Narrow()}
NARROW_FILE = "name: x\nworkload: WORKLOAD\nengine: narrow\nfind: nothing\nload: {rate: 10/s}\n"


@pytest.mark.parametrize(
    ("workload", "transport", "message"),
    [
        (
            "ingest",
            "",
            "3:9: engine: engine narrow does not support transport queue with the workload ingest, which is the "
            "default; set transport: kafka",
        ),
        (
            "ingest",
            "queue",
            "6:12: transport: engine narrow does not support transport queue with the workload ingest; allowed: kafka",
        ),
        (
            "windowed-aggregation",
            "kafka",
            "6:12: transport: engine narrow does not support transport kafka with the workload windowed-aggregation; "
            "allowed: queue",
        ),
        ("ingest", "kafka", ""),
        ("windowed-aggregation", "", ""),
    ],
)
def test_an_engine_must_run_the_workload_over_the_transport_even_if_that_is_the_default(
    workload: str, transport: str, message: str
) -> None:
    text = NARROW_FILE.replace("WORKLOAD", workload) + (f"transport: {transport}\n" if transport else "")
    if not message:
        assert read(text, "my.yaml", engines=NARROW).transport.name == (transport or "queue")
        return
    with pytest.raises(ExperimentError) as caught:
        read(text, "my.yaml", engines=NARROW)
    assert [str(problem) for problem in caught.value.problems] == [f"my.yaml:{message}"]


def test_an_engine_over_one_transport_is_refused_without_naming_a_workload() -> None:
    with pytest.raises(ExperimentError) as caught:
        read(NARROW_FILE.replace("WORKLOAD", "ingest"), "my.yaml", engines={"narrow": _Narrower()})
    (problem,) = caught.value.problems
    assert problem.message == (
        "engine narrow does not support transport queue, which is the default; set transport: kafka"
    )


@pytest.mark.parametrize("seed", [0, 10**17, 10**18, 1234567890123456789, 2**63 - 1])
def test_a_seed_may_be_any_number_of_63_bits(seed: int) -> None:
    experiment = read(f"{SEARCHED}seed: {seed}\n")
    assert experiment.seed == seed
    assert read(write(experiment)) == experiment


@pytest.mark.parametrize("seed", [2**63, 10**19, -1, "1.5", "'1'", "1k", "true"])
def test_another_seed_is_refused_with_the_limit(seed: object) -> None:
    assert problems_of(f"{SEARCHED}seed: {seed}\n") == [
        "my.yaml:6:7: seed: must be a whole number from 0 to 2^63 - 1, without quotes"
    ]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("latency < 2s", "event-time p99 < 2s or processing-time p99 < 2s"),
        ("Latency p95 < 2s", "event-time p99 < 2s or processing-time p99 < 2s"),
        ("p95 < 2s", "event-time p95 < 2s or processing-time p95 < 2s"),
    ],
)
def test_an_objective_on_latency_is_refused_with_the_two_metrics(text: str, advice: str) -> None:
    (problem,) = problems_of(f"{SEARCHED}objective: {text}\n")
    assert f"is not a metric; latency is measured as {advice}; allowed: " in problem
    assert "did you mean" not in problem


def test_settings_of_spark_may_be_numbers_and_booleans() -> None:
    options = SparkOptions.model_validate(
        {"settings": {"spark.sql.shuffle.partitions": 10, "spark.memory.fraction": 0.5, "a": True, "b": "64m"}}
    )
    assert options.settings == {
        "spark.sql.shuffle.partitions": "10",
        "spark.memory.fraction": "0.5",
        "a": "true",
        "b": "64m",
    }


def test_settings_of_spark_need_no_quotes_in_a_file_and_are_written_back() -> None:
    given = "settings: {spark.sql.shuffle.partitions: 10, spark.memory.fraction: 0.5, a: true, b: 64m}"
    experiment = read(f"{SEARCHED}".replace("engine: simulated", f"engine: {{name: spark, {given}}}"))
    (choice,) = experiment.engines
    settings = choice.options["settings"]
    assert settings == {
        "spark.sql.shuffle.partitions": "10",
        "spark.memory.fraction": "0.5",
        "a": "true",
        "b": "64m",
    }
    (again,) = read(write(experiment)).engines
    assert again.options["settings"] == settings
