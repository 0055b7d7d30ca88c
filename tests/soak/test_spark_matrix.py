"""Spark at length: ten million events in every variant, and the faults that need a separate session.

``STREAMGAUGE_SPARK_EVENTS`` says how many events each trial has.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_trial import PLACEMENT, as_if_quiet
from spark_trial import MY_JOB, play_spark, spark_session, spark_trial, survive

from streamgauge.engines.spark.engine import SparkSystem
from streamgauge.model.measurement import VerdictKind
from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]

EVENTS = int(os.environ.get("STREAMGAUGE_SPARK_EVENTS", "10000000"))
FAST, LOAD, LENGTH = 500_000.0, 50_000.0, 4


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSystem]:
    with spark_session(tmp_path_factory.mktemp("session")) as standing:
        yield standing


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("job") / "my_job.py"
    path.write_text(MY_JOB)
    return path


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("state_store", ["memory", "rocksdb"])
@pytest.mark.parametrize("variant", ["naive", "panes"])
def test_outputs_are_exactly_the_reference_result(
    session: SparkSystem, tmp_path: Path, variant: str, state_store: str, partitions: int
) -> None:
    way = {"variant": variant, "state_store": state_store}
    asked = spark_trial(FAST, round(EVENTS / FAST), way, partitions=partitions)
    played = play_spark(asked, session, tmp_path)
    account = played.measured.account
    assert account.checked, played
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), played
    assert played.recording.seconds["published"].sum() >= 0.99 * EVENTS, played


@pytest.mark.parametrize("variant", ["naive", "panes"])
@pytest.mark.parametrize("state_store", ["memory", "rocksdb"])
def test_nothing_is_lost_or_doubled_across_kill_and_restart(tmp_path: Path, variant: str, state_store: str) -> None:
    asked = spark_trial(250_000.0, round(EVENTS / 250_000), {"variant": variant, "state_store": state_store})
    account, _ = survive(asked, tmp_path, kill_at=EVENTS // 3)
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), account


def test_without_a_reference_it_is_judged_unchecked(session: SparkSystem, tmp_path: Path, job: Path) -> None:
    options = {"pipeline": f"{job}:expensive"}
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH, options), session, tmp_path))
    assert played.verdict.kind is not VerdictKind.FAILED, played
    assert not played.measured.account.checked
    assert "event-time" in played.measured.latencies


def test_outputs_that_the_reference_does_not_have_fail_the_trial(
    session: SparkSystem, tmp_path: Path, job: Path
) -> None:
    options = {"pipeline": f"{job}:expensive", "reference": f"{job}:counted_wrongly"}
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH, options), session, tmp_path))
    played.is_(VerdictKind.FAILED, "results of the system under test are incorrect")
    assert played.verdict.stops_run


def test_a_job_out_of_memory_is_reported_with_the_option_to_raise(tmp_path: Path, job: Path) -> None:
    options = {"pipeline": f"{job}:hoards", "memory": "512MiB"}
    with spark_session(tmp_path / "session", options) as mine:
        played = as_if_quiet(play_spark(spark_trial(LOAD, 10, options), mine, tmp_path / "trial"))
        played.is_(VerdictKind.FAILED, "out of memory", "engine.memory")


def test_a_pipeline_that_drops_one_key_loses_outputs(session: SparkSystem, tmp_path: Path, job: Path) -> None:
    options = {"pipeline": f"{job}:forgets_a_pack", "reference": f"{job}:packs"}
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH, options), session, tmp_path))
    played.is_(VerdictKind.FAILED, "were lost")


def test_small_micro_batches_without_a_pause_lose_nothing(session: SparkSystem, tmp_path: Path) -> None:
    asked = spark_trial(LOAD, LENGTH, {"max_batch": 50_000, "trigger": "0s"}, partitions=3)
    account = play_spark(asked, session, tmp_path).measured.account
    assert (account.checked, account.lost, account.duplicate, account.wrong) == (True, 0, 0, 0), account


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("raises_at_once", ["your function failed at", "RuntimeError: not today"]),
        ("no_frame", ["returned int; it must return a streaming DataFrame"]),
    ],
)
def test_a_function_that_cannot_be_run_is_reported_as_the_users(
    session: SparkSystem, tmp_path: Path, job: Path, function: str, words: list[str]
) -> None:
    played = play_spark(spark_trial(LOAD, LENGTH, {"pipeline": f"{job}:{function}"}), session, tmp_path)
    played.is_(VerdictKind.FAILED, *words)
    assert played.verdict.stops_run, "no other load would change it"
