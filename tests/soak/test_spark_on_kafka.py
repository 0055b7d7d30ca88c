"""Spark over Kafka in every format, in update and in real-time mode."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from custom_jobs import COUNTS
from kafka_broker import needs_kafka, shared
from real_trial import PLACEMENT, Played
from spark_kafka_trial import kafka_session, on_kafka, play_on_kafka
from spark_trial import MY_JOB
from test_kafka_spark import REFUNDS

from streamgauge.engines.spark.engine import SparkSystem
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available
from streamgauge.workloads.ingest import IngestParams
from streamgauge.workloads.traffic import TrafficParams

pytestmark = [
    needs_kafka,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]
LOAD, LENGTH = 20_000.0, 8
FEW = 2_000.0
"""Events per second in real-time mode, where every event is an output."""
REAL_TIME: dict[str, Any] = {
    "mode": "real-time",
    "output_mode": "update",
    "trigger": "5s",
    "state_store": "rocksdb",
    "slots": 4,
    "shuffle_partitions": 2,
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSystem]:
    """One warm session for all trials of this file: with slots for real-time mode."""
    folder = tmp_path_factory.mktemp("session")
    with kafka_session(folder, {"slots": 4, "shuffle_partitions": 2}) as standing:
        play_on_kafka(on_kafka(LOAD, 10), folder / "warm-up", standing)
        yield standing


def ingesting(asked: Trial) -> Trial:
    return replace(asked, workload="ingest", params=IngestParams().model_dump())


def observing(asked: Trial, stage: int) -> Trial:
    return replace(asked, workload="traffic", params=TrafficParams(stage=stage, locations=100).model_dump())


JOBS: dict[str, Callable[[Trial], Trial]] = {
    "windows": lambda asked: asked,
    "ingest": ingesting,
    "traffic-ingest": lambda asked: observing(asked, 0),
    "traffic-parse": lambda asked: observing(asked, 1),
}
"""The jobs that run in real-time mode."""


def is_exact(played: Played, session: SparkSystem) -> None:
    account = played.measured.account
    assert account.checked, played
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), played
    assert account.observed, played
    assert session.leftovers() == ()


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
@pytest.mark.parametrize("mode", ["append", "update"])
def test_windows_are_exact_in_every_format_and_output_mode(
    session: SparkSystem, tmp_path: Path, form: str, mode: str
) -> None:
    options = {"output_mode": mode, "shuffle_partitions": 2}
    played = play_on_kafka(on_kafka(LOAD, LENGTH, options, {"format": form}), tmp_path, session)
    is_exact(played, session)
    assert (played.measured.account.observed > played.measured.account.expected) == (mode == "update")


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_every_event_comes_through_once(session: SparkSystem, tmp_path: Path, form: str) -> None:
    asked = ingesting(on_kafka(LOAD, LENGTH, {}, {"format": form}))
    played = play_on_kafka(asked, tmp_path, session)
    is_exact(played, session)
    assert played.measured.account.observed >= LOAD * LENGTH


def test_micro_batches_may_be_bounded(session: SparkSystem, tmp_path: Path) -> None:
    played = play_on_kafka(on_kafka(LOAD, LENGTH, {"max_batch": 10_000, "trigger": "0s"}), tmp_path, session)
    is_exact(played, session)


@pytest.mark.parametrize("job", [*JOBS])
def test_real_time_mode_is_exact_and_quicker_than_its_batches(session: SparkSystem, tmp_path: Path, job: str) -> None:
    # the first seconds of a session in another mode are its compiler's
    asked = on_kafka(FEW, 12, REAL_TIME, warmup=10 * SECOND)
    played = play_on_kafka(JOBS[job](asked), tmp_path, session)
    is_exact(played, session)
    summary = played.measured.latencies["event-time"]
    assert summary.percentiles["p50"] < SECOND, "outputs do not wait for the batch's end"
    settings = played.recording.facts.engine.settings
    assert settings["slots"] > len(settings["cores"])


def test_positions_are_committed_to_a_consumer_group_if_the_option_is_set(session: SparkSystem, tmp_path: Path) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions  # noqa: PLC0415 - an extra
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    seen: list[int] = []

    def look() -> None:
        """The group and its offsets go with the topic, so they are looked at while the trial runs."""
        admin = AdminClient({**shared().cluster.client_settings()})
        for group in admin.list_consumer_groups().result().valid:
            if re.fullmatch(r"streamgauge\..*\.purchases", group.group_id):
                asking = [ConsumerGroupTopicPartitions(group.group_id)]
                (answer,) = admin.list_consumer_group_offsets(asking).values()
                seen.append(sum(part.offset for part in answer.result().topic_partitions or []))

    asked = on_kafka(LOAD, LENGTH, {}, {"commit_group": True})
    is_exact(play_on_kafka(asked, tmp_path, session, {LENGTH - 1: look}), session)
    assert len(seen) == 1
    assert 0 < seen[0] <= LOAD * LENGTH


def test_the_outputs_of_a_users_function_have_their_own_columns(session: SparkSystem, tmp_path: Path) -> None:
    (tmp_path / "my_job.py").write_text(MY_JOB)
    own = {"pipeline": f"{tmp_path}/my_job.py:expensive", "reference": f"{tmp_path}/my_job.py:expected"}
    is_exact(play_on_kafka(on_kafka(LOAD, LENGTH, own, {"format": "json"}), tmp_path / "trial", session), session)


def test_a_correct_function_that_is_overloaded_over_kafka_gives_no_wrong_output(
    session: SparkSystem, tmp_path: Path
) -> None:
    (tmp_path / "my_job.py").write_text(COUNTS)
    own = {"pipeline": f"{tmp_path}/my_job.py:job", "reference": f"{tmp_path}/my_job.py:expected", "max_batch": 4_000}
    played = play_on_kafka(on_kafka(LOAD, LENGTH, own), tmp_path / "trial", session)
    account = played.measured.account
    assert (account.checked, account.lost, account.duplicate, account.wrong) == (True, 0, 0, 0), played
    assert account.not_reached > 0, played
    assert played.verdict.kind is not VerdictKind.FAILED, played


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_numbers_below_zero_and_nulls_are_exact_in_every_format(
    session: SparkSystem, tmp_path: Path, form: str
) -> None:
    (tmp_path / "my_job.py").write_text(REFUNDS)
    own = {"pipeline": f"{tmp_path}/my_job.py:refunds", "reference": f"{tmp_path}/my_job.py:expected"}
    is_exact(play_on_kafka(on_kafka(LOAD, LENGTH, own, {"format": form}), tmp_path / "trial", session), session)


@pytest.mark.parametrize(
    ("column", "form", "sentence"),
    [
        ("price > 100 AS expensive", "binary", "the output column expensive is boolean"),
        ("CAST(price AS DECIMAL(9, 2)) AS price", "json", "the output column price is decimal(9,2)"),
        ("price + 1", "avro", "the output column (price + 1) cannot be written as avro"),
    ],
)
def test_an_output_column_that_cannot_be_written_is_named_before_the_load_begins(
    session: SparkSystem, tmp_path: Path, column: str, form: str, sentence: str
) -> None:
    (tmp_path / "my_job.py").write_text(f"def words(purchases):\n    return purchases.selectExpr('{column}')\n")
    own = {"pipeline": f"{tmp_path}/my_job.py:words"}
    played = play_on_kafka(on_kafka(LOAD, LENGTH, own, {"format": form}), tmp_path / "trial", session)
    assert sentence in played.recording.outcome.detail
    assert played.recording.outcome.users_fault
    assert not len(played.recording.seconds), "no load was generated"


def test_a_name_with_any_characters_is_written_as_binary(session: SparkSystem, tmp_path: Path) -> None:
    name = "sum of prices (`-€`)"
    job = f"def odd(purchases):\n    return purchases.withColumnRenamed('price', {name!r}).drop('due', 'ingested')\n"
    (tmp_path / "my_job.py").write_text(job)
    own = {"pipeline": f"{tmp_path}/my_job.py:odd"}
    played = play_on_kafka(on_kafka(LOAD, LENGTH, own), tmp_path / "trial", session)
    assert not played.recording.outcome.detail, played
    assert played.measured.account.observed, played


def test_stopping_real_time_mode_leaves_no_exception_in_the_log(tmp_path: Path) -> None:
    with kafka_session(tmp_path / "session", REAL_TIME) as standing:
        play_on_kafka(on_kafka(FEW, 6, REAL_TIME), tmp_path / "first", standing)
        play_on_kafka(on_kafka(FEW, 6, REAL_TIME), tmp_path / "second", standing)
    log = (tmp_path / "session" / "spark.log").read_text("utf-8")
    assert "Exception" not in log, log[-3_000:]
