"""Offline = live: the seconds that Spark counts from raw journals are those that were counted while a trial ran."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest
import synthetic_journals as synthetic
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from streamgauge.analyze.journals import journals_of
from streamgauge.analyze.recompute import recompute
from streamgauge.analyze.rejudge import differences_in_seconds
from streamgauge.analyze.seconds import bucket, floor_division
from streamgauge.analyze.session import session
from streamgauge.install.java import find_java
from streamgauge.model.seconds import COLUMNS, OUTPUT_KINDS, Seconds
from streamgauge.run.trial.assemble import assemble
from streamgauge.stats import buckets
from streamgauge.store import Run

pytestmark = pytest.mark.skipif(find_java() is None, reason="Spark needs a Java")


def _left_behind() -> set[str]:
    """What Spark leaves in the temporary folder if it is not removed."""
    names = ("spark-", "streamgauge-analysis-", "hsperfdata_", "blockmgr-", "artifacts-")
    return {entry.name for entry in Path(tempfile.gettempdir()).iterdir() if entry.name.startswith(names)}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests here; after it no process and no file of it is left."""
    before, here = _left_behind(), Path.cwd()
    os.chdir(tmp_path_factory.mktemp("elsewhere"))
    with session(2) as started:
        jvm = [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]
        assert jvm, "Spark has a separate process"
        yield started
    assert list(Path.cwd().iterdir()) == [], "nothing is written where streamgauge was started"
    os.chdir(here)
    gone, alive = psutil.wait_procs(jvm, timeout=10)
    assert (len(gone), alive) == (len(jvm), [])
    assert _left_behind() - before == set()


def same(live: Seconds, offline: Seconds) -> None:
    """Every column, and every bucket of every second."""
    assert [*differences_in_seconds(live, offline)] == []
    assert set(live.columns) == set(offline.columns) == set(COLUMNS)
    assert live.latencies.keys() == offline.latencies.keys()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (0, 2))])
def test_odd_journals_are_counted_as_live(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    made = synthetic.make(tmp_path / "odd [1] {a,b} * ü", seed, drivers=1 + seed % 3)
    live = assemble(made.folder, made.drivers, synthetic.PLACEMENT, made.stop)
    assert len(live) == made.stop
    for name in COLUMNS:
        assert len(set(live[name].tolist())) > 1, f"{name} would not show a mistake"
    assert all(live.latency(kind).count.sum() > 100 for kind in OUTPUT_KINDS)
    same(live, recompute(spark, made.journals))


def test_a_stored_run_of_spark_is_counted_as_live(spark: SparkSession) -> None:
    """It is of format 1: only what means the same today can be compared."""
    (path,) = (Path(__file__).parents[1] / "golden" / "spark-run").iterdir()
    run = Run.open(path)
    journals = journals_of(run.trial(1))
    assert journals is not None
    live, offline = run.recording(1).seconds, recompute(spark, journals)
    changed = {"schedule_lag", "hiccup", "collector_hiccup", "firings"}
    kept = [name for name in COLUMNS if name not in changed]
    assert [name for name in kept if live[name].tolist() != offline[name].tolist()] == []


def test_what_was_never_written_is_zero(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    synthetic.drive(folder, 0, 4, np.random.default_rng(1))
    made = synthetic.Made(folder, drivers=1, length=4, stop=4)
    live = assemble(folder, 1, synthetic.PLACEMENT, 4)
    assert live["outputs"].tolist() == live["sut_cpu"].tolist() == [0, 0, 0, 0]
    same(live, recompute(spark, made.journals))


def test_journals_that_a_killed_driver_has_left_are_read_too(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "killed"
    folder.mkdir()
    synthetic.drive(folder, 0, 5, np.random.default_rng(2), closed=False)
    synthetic.drive(folder, 1, 3, np.random.default_rng(3))
    assert (folder / "ticks-0.arrows").exists()
    made = synthetic.Made(folder, drivers=2, length=3, stop=9)
    live = assemble(folder, 2, synthetic.PLACEMENT, 9)
    assert len(live) == 3, "the seconds that every driver has closed"
    same(live, recompute(spark, made.journals))


def test_a_driver_that_wrote_no_second_leaves_nothing_to_judge(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    synthetic.drive(folder, 0, 3, np.random.default_rng(4))
    made = synthetic.Made(folder, drivers=2, length=0, stop=3)
    same(assemble(folder, 2, synthetic.PLACEMENT, 3), recompute(spark, made.journals))


def test_a_row_more_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    made = synthetic.make(tmp_path / "made", 11)
    live = assemble(made.folder, made.drivers, synthetic.PLACEMENT, made.stop)
    parts = sorted((made.folder / "outputs" / "sums-of-packs").glob("part-*"))
    (made.folder / "outputs" / "sums-of-packs" / "part-999999.parquet").write_bytes(parts[-2].read_bytes())
    unlike = "\n".join(differences_in_seconds(live, recompute(spark, made.journals)))
    assert "the column outputs differs" in unlike
    assert "the event-time latencies differ" in unlike


def test_the_buckets_of_columns_are_those_of_numpy(spark: SparkSession) -> None:
    edges = [(1 << bits) + step for bits in range(53) for step in (-1, 0, 1)]
    values = np.unique(np.array([0, 2047, 2048, *edges], np.int64))
    values = values[values < 1 << 53]
    frame = spark.createDataFrame(pa.table({"value": values})).select("value", bucket(F.col("value")).alias("bucket"))
    found = {row["value"]: row["bucket"] for row in frame.collect()}
    assert found == dict(zip(values.tolist(), buckets.index(values).tolist(), strict=True))


def test_division_rounds_down_even_below_zero(spark: SparkSession) -> None:
    pairs = [(top, bottom) for top in (-7, -6, -1, 0, 1, 6, 7, -(1 << 60) - 1) for bottom in (1, 3, 1 << 40)]
    frame = spark.createDataFrame(pairs, "top BIGINT, bottom BIGINT")
    found = frame.select(floor_division(F.col("top"), F.col("bottom")).alias("down")).collect()
    assert [row["down"] for row in found] == [top // bottom for top, bottom in pairs]
