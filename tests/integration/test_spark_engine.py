"""Spark as a system under test: its outputs are those of the reference result, and what goes wrong is reported.

`make soak` has what takes longer: ten million events in every way, also across kill -9 and a restart.
"""

import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from custom_jobs import COUNTS, EXITS, LATE, NEIGHBOUR, NULL_MOMENTS, OVERLOADED, OWN_FAULTS, WRONG
from pair_trial import asking
from pair_verdicts import judged
from random_pairs import Pair, pair
from real_trial import Sabotage, as_if_quiet
from spark_trial import MY_JOB, PLACEMENT, jvm, play_spark, spark_session, spark_trial

from streamgauge.engines.spark.engine import SparkSystem
from streamgauge.engines.spark.explain import BATCH_LOG
from streamgauge.model.measurement import VerdictKind
from streamgauge.run.monitor.monitor import available
from streamgauge.store.journal import read_columns, read_rows

pytestmark = pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores")

LOAD, SLOW, LENGTH = 100_000.0, 50_000.0, 4
"""Events per second and seconds."""
WAYS: list[tuple[dict[str, Any], int]] = [
    ({"variant": "naive", "state_store": "memory"}, 1),
    ({"variant": "panes", "state_store": "rocksdb"}, 3),
]
"""Options and partitions; `make soak` does all of them with ten million events each."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSystem]:
    """One session for all trials of this file, as a run has it."""
    with spark_session(tmp_path_factory.mktemp("session")) as standing:
        yield standing


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("job") / "my_job.py"
    path.write_text(MY_JOB)
    return path


@pytest.mark.parametrize(("way", "partitions"), WAYS, ids=["naive-1", "panes-rocksdb-3"])
def test_outputs_are_exactly_the_reference_result(
    session: SparkSystem, tmp_path: Path, way: dict[str, Any], partitions: int
) -> None:
    asked = spark_trial(LOAD, LENGTH, way, partitions=partitions)
    played = play_spark(asked, session, tmp_path)
    account = played.measured.account
    assert account.checked, played
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), played
    assert account.observed >= 100 * (LENGTH - 1), played
    assert session.leftovers() == ()


def test_latencies_progress_and_explanation_are_recorded(session: SparkSystem, tmp_path: Path) -> None:
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH), session, tmp_path))
    assert played.verdict.kind is not VerdictKind.FAILED, played
    for kind in ("event-time", "processing-time"):
        assert played.measured.latencies[kind].least > 0, played
    facts, engine = played.recording.facts, played.recording.facts.engine
    assert (engine.name, engine.settings["cores"], engine.settings["profile"]) == ("spark", [*PLACEMENT.sut], "tuned")
    assert {"cores", "batch overhead", "state"} <= {part.what for part in facts.explanation}
    batches = read_columns(tmp_path / BATCH_LOG)
    assert batches["input_rows"].sum() == sum(played.recording.seconds["acknowledged"].tolist()) + _tail(played)
    assert max(batches["state_rows"]) > 0


def _tail(played: Any) -> int:  # noqa: ANN401
    """Events of the tail, which the seconds of the trial do not count."""
    (acks,) = [read_rows(path.with_suffix("")) for path in played.folder.glob("acks-0.*")]
    return int(acks["acknowledged"][-1].as_py()) - int(played.recording.seconds["acknowledged"].sum())


def test_a_function_of_the_users_own_is_checked_against_their_own_reference(
    session: SparkSystem, tmp_path: Path, job: Path
) -> None:
    options = {"pipeline": f"{job}:expensive", "reference": f"{job}:expected"}
    played = as_if_quiet(play_spark(spark_trial(SLOW, LENGTH, options), session, tmp_path))
    account = played.measured.account
    assert played.verdict.kind is not VerdictKind.FAILED, played
    assert (account.checked, account.lost, account.duplicate, account.wrong) == (True, 0, 0, 0), played
    assert account.observed > LOAD, played


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("raises_in_a_row", ["your function failed at", "my_job.py:", "ValueError: no price like"]),
        ("wrong_schema", ["your function", "UNRESOLVED_COLUMN", "colour"]),
    ],
)
def test_an_error_in_the_users_code_is_reported_as_theirs(
    session: SparkSystem, tmp_path: Path, job: Path, function: str, words: list[str]
) -> None:
    played = play_spark(spark_trial(SLOW, LENGTH, {"pipeline": f"{job}:{function}"}), session, tmp_path)
    played.is_(VerdictKind.FAILED, *words)
    assert played.verdict.stops_run, "no other load would change it"


def test_nulls_in_max_due_fail_the_trial_as_the_users_within_seconds(
    session: SparkSystem, tmp_path: Path, job: Path
) -> None:
    (job.parent / "null_job.py").write_text(NULL_MOMENTS)
    asked = spark_trial(5_000.0, 300, {"pipeline": f"{job.parent}/null_job.py:job"})
    played = play_spark(asked, session, tmp_path / "trial")
    played.is_(VerdictKind.FAILED, "the output column max_due has nulls")
    assert played.verdict.stops_run
    assert played.recording.seconds.stop < 30, "the trial of 300 s ends when the first null has come"


def test_a_correct_function_that_is_overloaded_gives_no_wrong_output(
    session: SparkSystem, tmp_path: Path, job: Path
) -> None:
    file = job.parent / "counts_job.py"
    file.write_text(COUNTS)
    named = {"pipeline": f"{file}:job", "reference": f"{file}:expected"}
    played = play_spark(spark_trial(SLOW, 8, named | {"max_batch": 4_000}), session, tmp_path / "trial")
    account = played.measured.account
    assert (account.checked, account.lost, account.duplicate, account.wrong) == (True, 0, 0, 0), played
    assert account.not_reached > 0, played
    assert played.verdict.kind is not VerdictKind.FAILED, played


@pytest.mark.parametrize(
    "pairs",
    [
        (NEIGHBOUR,),
        (LATE,),
        (OVERLOADED,),
        (EXITS, WRONG, *OWN_FAULTS[:2]),
        [pair(n, modes=("append",)) for n in range(2)],
    ],
    ids=["neighbour", "watermark", "overloaded", "faults", "random"],
)
def test_functions_of_users_are_judged_as_they_are(session: SparkSystem, job: Path, pairs: Sequence[Pair]) -> None:
    """All files are in one folder, as Spark's workers are. `make soak` has 500 random pairs, and every fault."""
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        found = [judged(each, asking(session), job.parent, Path(short)) for each in pairs]
    assert not [one.sentence for one in found if one.sentence]
    assert session.alive(), "sys.exit in a user's function must not end Spark"


def test_a_setting_that_spark_refuses_fails_the_trial_and_is_named(session: SparkSystem, tmp_path: Path) -> None:
    options = {"settings": {"spark.sql.shuffle.partitions": "abc"}}
    played = play_spark(spark_trial(SLOW, LENGTH, options), session, tmp_path)
    played.is_(VerdictKind.FAILED, "abc", "; correct engine.settings: spark.sql.shuffle.partitions")
    assert played.verdict.stops_run, "no other load would change it"


def test_a_killed_jvm_fails_the_trial(session: SparkSystem, tmp_path: Path) -> None:
    """The last one that uses the session of this file."""
    sabotage: dict[int, Sabotage] = {2: lambda: os.kill(jvm().pid, signal.SIGKILL)}
    played = as_if_quiet(play_spark(spark_trial(SLOW, 10), session, tmp_path, sabotage))
    played.is_(VerdictKind.FAILED, "the system under test crashed at 50k/s", "JVM")
    assert not played.verdict.stops_run, "a lower load might hold"
    assert session.leftovers() == ("its JVM has ended",)
