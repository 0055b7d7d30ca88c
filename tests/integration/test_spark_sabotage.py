"""What goes wrong with a job on Spark: each case has its verdict and the sentence that helps."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_trial import Sabotage, as_if_quiet
from spark_trial import PLACEMENT, jvm, play_spark, spark_session, spark_trial

from streamgauge.engines.spark.deploy import SparkSession
from streamgauge.model.measurement import VerdictKind
from streamgauge.run.monitor import available

pytestmark = pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores")

LOAD, LENGTH = 50_000.0, 4

MY_JOB = '''
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType
import pyarrow as pa
import pyarrow.compute as pc


def expensive(purchases):
    """Purchases above 50, each with its moments: no window, no state."""
    return purchases.where("price > 5000").select(
        "user_id", "price", F.col("due").alias("max_due"), F.col("ingested").alias("max_ingested"))


def expected(events, params):
    dear = events.filter(pc.greater(events["price"], 5000))
    return dear.select(["user_id", "price"])


def counted_wrongly(events, params):
    return expected(events, params).slice(1)


def raises_in_a_row(purchases):
    return purchases.select(F.udf(explode, IntegerType())("price").alias("price"))


def explode(price):
    raise ValueError(f"no price like {price}")


def raises_at_once(purchases):
    raise RuntimeError("not today")


def wrong_schema(purchases):
    return purchases.select("colour")


def no_frame(purchases):
    return 7


def forgets_a_pack(purchases):
    kept = purchases.where("gem_pack_id != 50").withWatermark("due", "0 seconds")
    sums = kept.groupBy(F.window("due", "1 second"), "gem_pack_id").agg(F.sum("price").alias("sum"))
    return sums.select("gem_pack_id", F.col("window.end").alias("window_end"), "sum")


def packs(events, params):
    second = pc.floor_temporal(events["due"], unit="second")
    table = pa.table({"gem_pack_id": events["gem_pack_id"], "start": second, "price": events["price"]})
    sums = table.group_by(["start", "gem_pack_id"]).aggregate([("price", "sum")])
    ends = pc.add(sums["start"], pa.scalar(1_000_000, pa.duration("us")))
    return pa.table({"gem_pack_id": sums["gem_pack_id"], "window_end": ends, "sum": sums["price_sum"]})


def hoards(purchases):
    return purchases.select(F.length(F.repeat(F.lit("x"), 900_000_000)).alias("n"), F.lit(1).alias("one"))
'''


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("job") / "my_job.py"
    path.write_text(MY_JOB)
    return path


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("session")) as standing:
        yield standing


def test_a_function_of_the_users_own_is_checked_against_their_own_reference(
    session: SparkSession, tmp_path: Path, job: Path
) -> None:
    options = {"pipeline": f"{job}:expensive", "reference": f"{job}:expected"}
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH, options), session, tmp_path))
    account = played.measured.account
    assert played.verdict.kind in (VerdictKind.SUSTAINED, VerdictKind.UNDECIDED), played
    assert (account.checked, account.lost, account.duplicate, account.wrong) == (True, 0, 0, 0), played
    assert account.observed > LOAD, played


def test_without_a_reference_it_is_judged_unchecked(session: SparkSession, tmp_path: Path, job: Path) -> None:
    options = {"pipeline": f"{job}:expensive"}
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH, options), session, tmp_path))
    assert played.verdict.kind in (VerdictKind.SUSTAINED, VerdictKind.UNDECIDED), played
    assert not played.measured.account.checked
    assert "event-time" in played.measured.latencies


def test_outputs_that_the_reference_does_not_have_fail_the_trial(
    session: SparkSession, tmp_path: Path, job: Path
) -> None:
    options = {"pipeline": f"{job}:expensive", "reference": f"{job}:counted_wrongly"}
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH, options), session, tmp_path))
    played.is_(VerdictKind.FAILED, "gives wrong answers")
    assert played.verdict.stops_run


def test_a_pipeline_that_drops_one_key_loses_outputs(session: SparkSession, tmp_path: Path, job: Path) -> None:
    options = {"pipeline": f"{job}:forgets_a_pack", "reference": f"{job}:packs"}
    played = as_if_quiet(play_spark(spark_trial(LOAD, LENGTH, options), session, tmp_path))
    played.is_(VerdictKind.FAILED, "were lost")


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("raises_in_a_row", ["your function failed at", "my_job.py:", "ValueError: no price like"]),
        ("raises_at_once", ["your function failed at", "RuntimeError: not today"]),
        ("wrong_schema", ["your function", "UNRESOLVED_COLUMN", "colour"]),
        ("no_frame", ["returned int: a pipeline returns a streaming DataFrame"]),
    ],
)
def test_what_the_users_code_does_wrong_is_said_to_be_theirs(
    session: SparkSession, tmp_path: Path, job: Path, function: str, words: list[str]
) -> None:
    played = play_spark(spark_trial(LOAD, LENGTH, {"pipeline": f"{job}:{function}"}), session, tmp_path)
    played.is_(VerdictKind.FAILED, *words)
    assert played.verdict.stops_run, "no other load would change it"


def test_a_killed_jvm_fails_the_trial(tmp_path: Path) -> None:
    with spark_session(tmp_path / "session") as mine:
        sabotage: dict[int, Sabotage] = {2: lambda: os.kill(jvm().pid, signal.SIGKILL)}
        played = as_if_quiet(play_spark(spark_trial(LOAD, 10), mine, tmp_path / "trial", sabotage))
        played.is_(VerdictKind.FAILED, "the system under test crashed at 50k/s", "JVM")
        assert not played.verdict.stops_run, "a lower load might hold"


def test_a_job_out_of_memory_says_so_and_what_to_raise(tmp_path: Path, job: Path) -> None:
    options = {"pipeline": f"{job}:hoards", "memory": "512MiB"}
    with spark_session(tmp_path / "session", options) as mine:
        played = as_if_quiet(play_spark(spark_trial(LOAD, 10, options), mine, tmp_path / "trial"))
        played.is_(VerdictKind.FAILED, "out of memory", "engine.memory")
