"""What Spark is refused before any minute is spent: real-time mode and Kafka have conditions."""

from typing import Any

import pytest

from streamgauge.engines.contract import Situation
from streamgauge.engines.reference import reference
from streamgauge.engines.reference.engine import ReferenceOptions
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.engines.spark.settings import shuffle_partitions, slots
from streamgauge.engines.table import requirements_of
from streamgauge.install.requirements import PYSPARK, JavaRuntime, Requirement
from streamgauge.transports.kafka.jars import pinned_jars
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
) -> list[str]:
    params = workloads()[workload].params()
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
        return [*requirements_of(spark, SparkOptions(settings=settings), transport)]

    always = [PYSPARK, JavaRuntime()]
    assert needed("kafka") == [*always, pinned_jars("spark-kafka")]
    assert needed("kafka", **{"spark.jars": "/mine/connector.jar"}) == always
    assert needed("queue") == always
    assert [*requirements_of(reference, ReferenceOptions(), "kafka")] == []


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


def test_the_broker_stamps_every_record_so_stamps_cannot_be_turned_off() -> None:
    assert said({"stamp": False}, "queue") == []
    assert "remove stamp" in said({"stamp": False})[0]
