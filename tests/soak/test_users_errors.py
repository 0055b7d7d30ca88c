"""Errors of users on Spark as they type the command: exit code 4, and a sentence that says what to correct."""

import sys
from pathlib import Path

import pytest
from cli_session import CommandResult, start, write
from real_run import calibrated
from real_trial import PLACEMENT

from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]

TIMEOUT = 300.0
"""Seconds that Spark may take to start and to refuse its query on a busy machine."""
EXPERIMENT = """\
name: users-error
workload: {{name: windowed-aggregation, window: 1s, slide: 1s}}
engine: {{name: spark, {option}}}
find: nothing
load: {{rate: 20k/s}}
objective: [lag-trend <= 1%, lost == 0]
trial: {{duration: 5s, limit: 5s, warmup: 1s, invalid_retries: 0}}
"""
JOB = """\
import sys

from pyspark.sql import functions as F


def twice(purchases):
    return purchases.select("user_id", F.col("price").alias("user_id"))


def leaves(purchases):
    sys.exit(3)


def prices(purchases):
    return purchases.select("user_id", "price", F.col("due").alias("max_due"))


def text_ends(events, params):
    import pyarrow as pa

    return pa.table({"user_id": events["user_id"], "window_end": events["due"].cast(pa.string())})
"""
BROKEN = "import no_such_package\n"
"""The file of a reference that cannot be imported."""


def run(folder: Path, option: str) -> CommandResult:
    """A plain measurement with one short trial, in the folder of the user's file."""
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    (folder / "broken.py").write_text(BROKEN, encoding="utf-8")
    file = write(folder, EXPERIMENT.format(option=option))
    with start("run", file, "--out", calibrated(folder / "runs"), "--json", cwd=folder) as process:
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()  # nothing if it has ended
    sys.stderr.write(err)
    return CommandResult(process.returncode, out, err)


@pytest.mark.parametrize(
    ("option", "sentences"),
    [
        (
            "settings: {spark.sql.shuffle.partitions: abc}",
            ("abc", "; correct engine.settings: spark.sql.shuffle.partitions"),
        ),
        (
            "pipeline: job.py:twice",
            ("outputs two columns with the name 'user_id'; rename one of them with alias",),
        ),
        ("pipeline: job.py:leaves", ("your function failed at ", "job.py:11: SystemExit: 3")),
        ("pipeline: job.py:prices, reference: broken.py:expected", ("no_such_package",)),
        ("pipeline: job.py:prices, reference: job.py:text_ends", ("window_end",)),
    ],
    ids=[
        "a setting that is no number",
        "a column twice",
        "sys.exit",
        "a reference that cannot be imported",
        "a reference with a text as window_end",
    ],
)
def test_an_error_of_the_users_ends_a_run_with_exit_code_4_and_a_sentence(
    option: str, sentences: tuple[str, ...], tmp_path: Path
) -> None:
    said = run(tmp_path, option)
    assert said.code == 4, said.err
    (trial,) = said.document["trials"]
    assert trial["verdict"] == "FAILED", trial
    for sentence in sentences:
        assert sentence in trial["reasons"][0], trial["reasons"]
