"""Systems that stay up between trials, and those started for each: how a failed start or a crash is reported."""

from pathlib import Path
from typing import Any

import pytest
from cli_session import CommandResult, start, write
from real_run import EXPERIMENT, calibrated
from real_trial import PLACEMENT
from shared_system_plugin import installed

from streamgauge.run.monitor.monitor import available
from streamgauge.store import Store

pytestmark = pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores")

SEARCH = (
    EXPERIMENT.replace("name: reference", "name: standing, fails: start")
    .replace("find: nothing", "find: sustainable-throughput")
    .replace("rate: 100k/s", "between: [50k/s, 1M/s]")
)
TIMEOUT = 240
"""Seconds that a run of a few short trials may take on a busy machine."""
MEASURE = EXPERIMENT.replace("name: reference", "name: standing, warm_limit: 0s")


def run(folder: Path, text: str) -> CommandResult:
    """A whole run of this experiment."""
    environment = installed(folder)
    process = start("run", write(folder, text), "--out", calibrated(folder / "runs"), "--json", env=environment)
    try:
        out, err = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()  # with all that it started; nothing if it has ended
    return CommandResult(process.returncode, out, err)


def the_only_trial(said: CommandResult) -> dict[str, Any]:
    (trial,) = said.document["trials"]
    assert isinstance(trial, dict)
    return trial


def test_a_system_that_does_not_start_is_a_failed_trial_with_its_log(tmp_path: Path) -> None:
    said = run(tmp_path, SEARCH)
    assert said.code == 4, said.err
    trial = the_only_trial(said)
    assert trial["verdict"] == "FAILED"
    assert "it did not start: standing system" in trial["reasons"][0]
    assert "ended with exit code 3 before it was ready" in trial["reasons"][0]
    assert "its log: its configuration names no such cluster" in trial["reasons"]


@pytest.mark.parametrize(
    "text",
    [
        EXPERIMENT.replace("name: reference", "name: unstartable"),
        SEARCH.replace("name: standing, fails: start", "name: unstartable"),
    ],
    ids=["a plain measurement", "a search"],
)
def test_a_system_of_one_trial_that_does_not_start_is_a_failed_trial_with_its_log(text: str, tmp_path: Path) -> None:
    """An engine that starts a system for every trial is judged as one whose system stays up."""
    said = run(tmp_path, text)
    assert said.code == 4, said.err
    trial = the_only_trial(said)
    assert trial["verdict"] == "FAILED"
    failed = "the system under test failed before the load started: it did not start: system of a trial (process "
    assert trial["reasons"][0].startswith(failed)
    assert "ended with exit code 3 before it was ready" in trial["reasons"][0]
    assert "its log: its configuration names no such cluster" in trial["reasons"]


def test_a_spark_that_does_not_start_is_a_failed_trial_with_the_log_of_java(tmp_path: Path) -> None:
    option = "spark.driver.extraJavaOptions: -Xmx1g"
    said = run(
        tmp_path,
        SEARCH.replace("name: standing, fails: start, capacity: 300k/s", f"name: spark, settings: {{{option}}}"),
    )
    assert said.code == 4, said.err
    trial = the_only_trial(said)
    assert trial["verdict"] == "FAILED"
    assert (
        "the system under test failed before the load started: it did not start: spark (process" in trial["reasons"][0]
    )
    assert "Error: Not allowed to specify max heap(Xmx)" in trial["reasons"][0]
    assert "its log: pyspark.errors.exceptions.base.PySparkRuntimeError: [JAVA_GATEWAY_EXITED]" in trial["reasons"][-1]
    (page,) = (tmp_path / "runs").glob("*/report.html")
    settings = page.read_text(encoding="utf-8").partition("Effective settings of ")[2].partition("</table>")[0]
    assert "2GiB" in settings, "sizes have units"
    assert "2147483648" not in settings


def test_a_warm_up_that_crashed_is_a_failed_trial_with_its_log(tmp_path: Path) -> None:
    said = run(tmp_path, SEARCH.replace("fails: start", "fails: warm-up"))
    assert said.code == 4, said.err
    trial = the_only_trial(said)
    assert trial["verdict"] == "FAILED"
    assert "it crashed in its warm-up at 100k/s: its process ended with exit code 1" in trial["reasons"][0]
    assert any("its log: " in reason and "crashed, as configured" in reason for reason in trial["reasons"])


def test_a_warm_up_under_a_fixed_load_that_crashed_is_a_failed_trial_too(tmp_path: Path) -> None:
    said = run(tmp_path, MEASURE.replace("warm_limit: 0s", "warm_limit: 4s, fails: warm-up"))
    assert said.code == 4, said.err
    trial = the_only_trial(said)
    assert trial["verdict"] == "FAILED"
    assert "it crashed in its warm-up at 100k/s: its process ended with exit code 1" in trial["reasons"][0]


@pytest.mark.soak
def test_a_crash_under_the_growing_load_restarts_the_system_and_the_search_continues(tmp_path: Path) -> None:
    said = run(
        tmp_path,
        SEARCH.replace("fails: start", "fails: growing, warm_limit: 30s").replace(
            "between: [50k/s, 1M/s]", "values: [50k/s]"
        ),
    )
    assert "standing crashed under the increasing load" in said.err
    assert said.err.count("Starting standing") == 2
    assert said.code in (0, 3, 6), said.err
    for trial in said.document["trials"]:
        assert trial["verdict"] != "FAILED", trial


@pytest.mark.soak
def test_a_system_ends_when_the_search_of_its_engine_ends(tmp_path: Path) -> None:
    engines = (
        "engines:\n  - {name: standing, label: one, warm_limit: 0s}\n  - {name: standing, label: two, warm_limit: 0s}\n"
    )
    text = "".join(engines if line.startswith("engine:") else line for line in EXPERIMENT.splitlines(keepends=True))
    said = run(tmp_path, text)
    assert said.code in (0, 3, 6), said.err
    kept = Store(tmp_path / "runs").find("@last").trials()
    assert {each.trial.engine for each in kept} == {"one", "two"}
    assert [each.facts.engine.settings["standing"] for each in kept] == [1] * len(kept)


def test_an_engine_that_cannot_describe_itself_does_not_spoil_its_trial(tmp_path: Path) -> None:
    said = run(tmp_path, MEASURE.replace("warm_limit: 0s", "warm_limit: 0s, fails: describe"))
    assert said.code in (0, 3, 6), said.err
    for trial in said.document["trials"]:
        assert trial["verdict"] in ("SUSTAINED", "INVALID", "UNDECIDED"), trial
