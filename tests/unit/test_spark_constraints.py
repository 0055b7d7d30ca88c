"""What Spark is refused before any minute is spent: real-time mode and Kafka have conditions."""

from importlib.util import find_spec
from typing import Any

import pytest

from streamgauge.engines.contract import Situation
from streamgauge.engines.reference import reference
from streamgauge.engines.reference.engine import ReferenceOptions
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.jobs import table as jobs_table
from streamgauge.engines.spark.jobs.table import (
    BUILT_IN,
    CONNECTIONS,
    JOBS,
    BuiltIn,
    job_of,
    supports_updates,
    variants,
    with_updates,
)
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.engines.spark.settings import shuffle_partitions, slots
from streamgauge.install.requirements import PYSPARK, JavaRuntime, Requirement
from streamgauge.transports.kafka.brokers.config import pinned_jars
from streamgauge.workloads.registry import workloads

REAL_TIME: dict[str, Any] = {
    "mode": "real-time",
    "output_mode": "update",
    "trigger": "5s",
    "state_store": "rocksdb",
}


def said(
    options: dict[str, Any],
    transport: str = "kafka",
    workload: str = "windowed-aggregation",
    partitions: int = 0,
    **chosen: Any,  # noqa: ANN401
) -> list[str]:
    params = workloads()[workload].params.model_validate(chosen)
    situation = Situation(
        options=SparkOptions(**options),
        workload=workload,
        params=(params,),
        transport=transport,
        partitions=partitions,
    )
    return [*spark.check(situation)]


def test_spark_needs_its_connector_on_kafka_unless_the_user_names_jars() -> None:
    def needed(transport: str, **settings: str) -> list[Requirement]:
        return [*spark.requirements(SparkOptions(settings=settings), transport)]

    always = [PYSPARK, JavaRuntime()]
    assert needed("kafka") == [*always, pinned_jars("spark-kafka")]
    assert needed("kafka", **{"spark.jars": "/mine/connector.jar"}) == always
    assert needed("queue") == always
    assert [*reference.requirements(ReferenceOptions(), "kafka")] == []


def test_real_time_mode_is_taken_where_spark_can_do_it() -> None:
    assert said(REAL_TIME) == []
    assert said(REAL_TIME, workload="ingest") == []
    assert said(REAL_TIME | {"cores": 3}) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output_mode": "append"}, "output_mode: update"),
        ({"trigger": "1s"}, "at least 5s"),
        ({"state_store": "memory"}, "state_store: rocksdb"),
        ({"max_batch": 1000}, "remove max_batch"),
        ({"slots": 1}, "needs 2 slots, 1 for the partitions of the stream and 1 for those of the shuffle, but has 1"),
    ],
)
def test_real_time_mode_is_refused_with_its_reason(change: dict[str, Any], words: str) -> None:
    (problem,) = said(REAL_TIME | change)
    assert words in problem


def test_real_time_mode_is_refused_over_the_queue() -> None:
    problems = said(REAL_TIME, "queue")
    assert any("mode: real-time reads only from Kafka" in problem for problem in problems)


def test_real_time_mode_needs_a_slot_for_every_partition_of_the_stream_and_of_the_shuffle() -> None:
    (problem,) = said(REAL_TIME, partitions=3)
    assert "needs 4 slots, 3 for the partitions of the stream and 1 for those of the shuffle, but has 2" in problem
    assert "set slots: 4" in problem
    assert said(REAL_TIME | {"slots": 4}, partitions=3) == []


def test_a_job_that_does_not_shuffle_needs_slots_only_for_its_partitions() -> None:
    assert said(REAL_TIME | {"slots": 2}, workload="ingest", partitions=2) == []
    (problem,) = said(REAL_TIME | {"slots": 2}, workload="ingest", partitions=3)
    assert "needs 3 slots, 3 for the partitions of the stream, but has 2" in problem


def test_real_time_mode_has_more_slots_than_cores_unless_they_are_set() -> None:
    options = SparkOptions(**(REAL_TIME | {"cores": 2}))
    assert (shuffle_partitions(options), slots(options)) == (2, 4)
    told = SparkOptions(**(REAL_TIME | {"cores": 2, "slots": 5, "shuffle_partitions": 3}))
    assert (shuffle_partitions(told), slots(told)) == (3, 5)


def test_updates_need_a_sink_that_supports_them() -> None:
    assert said({"output_mode": "update"}) == []
    (problem,) = said({"output_mode": "update"}, "queue")
    assert "output_mode: update needs transport: kafka" in problem


@pytest.mark.parametrize("workload", ["windowed-aggregation", "time-attribute-aggregation"])
def test_panes_need_append_mode(workload: str) -> None:
    (problem,) = said({"output_mode": "update", "variant": "panes"}, workload=workload)
    assert problem.endswith("only with output_mode: append; set it, or set variant: naive")
    assert said({"output_mode": "update", "variant": "naive"}, workload=workload) == []


def test_spark_connects_to_the_transports_of_its_jobs() -> None:
    assert {transport for job in JOBS for transport in job.transports} == {*CONNECTIONS}
    for transport in CONNECTIONS:
        assert find_spec(f"streamgauge.engines.spark.connect.{transport}") is not None
    assert [name for name in CONNECTIONS if supports_updates(name)] == [with_updates()]
    assert not supports_updates("a transport of another package")


def test_the_broker_stamps_every_record_so_stamps_cannot_be_turned_off() -> None:
    assert said({"stamp": False}, "queue") == []
    assert "remove stamp" in said({"stamp": False})[0]


@pytest.mark.parametrize("variant", ["", "naive", "panes"])
@pytest.mark.parametrize("workload", ["windowed-aggregation", "ingest"])
def test_every_variant_of_the_table_is_taken_and_so_is_none(workload: str, variant: str) -> None:
    assert said({"variant": variant}, "queue", workload) == []
    job = job_of(workload, variant)
    assert job is not None
    assert job.variant == (variant or "naive"), "the first one that is listed is the default"


@pytest.mark.parametrize(("variant", "early"), [("", False), ("union", False), ("stream-stream", True)])
def test_a_variant_of_the_join_that_emits_early_runs_only_in_append_mode(variant: str, early: bool) -> None:
    options = {"variant": variant}
    assert said(options, "queue", "windowed-join") == []
    assert spark.traits(SparkOptions(**options)).emits_early == early
    refused = said({**options, "output_mode": "update"}, "kafka", "windowed-join")
    assert [("joins two streams" in problem, "output_mode: append" in problem) for problem in refused] == (
        [(True, True)] if early else []
    )


def test_an_unknown_variant_is_refused_with_those_of_the_workload() -> None:
    assert said({"variant": "fast"}, "queue") == [
        "variant: 'fast' is not a variant of the workload windowed-aggregation; set variant: naive or panes, or remove "
        "it for naive"
    ]
    (problem,) = said({"variant": "x" * 500}, "queue")
    assert len(problem) < 250
    (problem,) = (p for p in said({"variant": "Naive", "pipeline": "no_such_file.py:job"}, "queue") if "variant" in p)
    assert "is not a variant of any workload" in problem


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table with a further job, as the first one of its workload."""
    kafka = frozenset({"kafka"})
    more = (BuiltIn("hierarchical-aggregation", "levels", "hierarchy:levels", "a query per level", kafka),)
    monkeypatch.setattr(jobs_table, "BUILT_IN", (*more, *BUILT_IN))


@pytest.mark.usefixtures("table")
def test_a_row_of_the_table_is_all_that_a_variant_needs() -> None:
    assert said({"variant": "flattened"}, "queue", "hierarchical-aggregation") == []
    (problem,) = said({"variant": "panes"}, "queue", "hierarchical-aggregation")
    assert "set variant: levels or flattened, or remove it for levels" in problem
    (problem,) = said({"variant": "flattened"}, "queue")
    assert "is not a variant of the workload windowed-aggregation" in problem


def test_a_workload_with_one_variant_has_it_whether_a_file_states_naive_or_nothing() -> None:
    for variant in ("", "naive", "rows"):
        assert said({"variant": variant}, "queue", "database-storage") == []
        job = job_of("database-storage", variant)
        assert job is not None
        assert job.variant == "rows"
    (problem,) = said({"variant": "panes"}, "queue", "database-storage")
    assert "set variant: rows, or remove it for rows" in problem


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("variant", ["", "levels"])
def test_a_variant_that_does_not_run_over_the_transport_is_refused(variant: str) -> None:
    assert said({"variant": variant}, "kafka", "hierarchical-aggregation") == []
    assert said({"variant": variant}, "queue", "hierarchical-aggregation") == [
        "variant: levels of the workload hierarchical-aggregation needs transport: kafka; set it, or set variant: "
        "flattened"
    ]


def test_the_description_of_the_option_names_every_variant_and_what_it_does() -> None:
    described = SparkOptions.model_fields["variant"].description or ""
    for job in BUILT_IN:
        assert f"{job.variant} = {job.summary}" in described.partition(f"{job.workload}: ")[2].partition(";")[0]
    assert variants() == tuple(dict.fromkeys(job.variant for job in BUILT_IN))


@pytest.mark.parametrize(
    ("workload", "variant", "other"),
    [
        ("windowed-aggregation", "panes", ", or set variant: naive"),
        ("time-attribute-aggregation", "panes", ", or set variant: naive"),
        ("hierarchical-aggregation", "flattened", ""),
    ],
)
def test_a_variant_that_combines_partial_results_is_refused_where_windows_need_not_fit(
    workload: str, variant: str, other: str
) -> None:
    params = workloads()[workload].params()
    for ranged in ("window", "slide"):
        situation = Situation(
            options=SparkOptions(variant=variant), workload=workload, params=(params, params), ranged=ranged
        )
        (problem,) = spark.check(situation)
        assert problem == (
            f"variant: {variant} needs windows that fit to its partial results, but find.between searches every "
            f"{ranged} of a range. Use find.values with values that fit{other}"
        )


@pytest.mark.parametrize("stage", range(5))
def test_only_the_stages_of_traffic_without_a_join_run_in_real_time_mode(stage: int) -> None:
    problems = said({**REAL_TIME, "slots": 2}, workload="traffic", stage=stage)
    joins = ["mode: real-time cannot join streams, and traffic has 2; set mode: micro-batch"]
    assert problems == (joins if stage >= 2 else [])


def test_real_time_mode_needs_slots_for_the_partitions_of_every_stream() -> None:
    (problem,) = said({**REAL_TIME, "slots": 3}, workload="traffic", stage=1, partitions=2)
    assert "needs 4 slots, 4 for the partitions of the streams, but has 3" in problem


@pytest.mark.parametrize("stage", range(5))
def test_update_mode_is_refused_for_joins_of_streams(stage: int) -> None:
    problems = said({"output_mode": "update"}, workload="traffic", stage=stage)
    joins = ["traffic joins streams, which Spark supports only with output_mode: append"]
    assert problems == (joins if stage >= 2 else [])
