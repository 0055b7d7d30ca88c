"""``streamgauge show --recompute``: a stored run is judged again from its folder alone."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_session import MEASURE, CommandResult, start, streamgauge, write
from real_run import EXPERIMENT, calibrated
from real_trial import PLACEMENT

from streamgauge.install.java import find_java
from streamgauge.judge import decide, measure
from streamgauge.model.trial import Recording
from streamgauge.run.monitor.monitor import available
from streamgauge.store import Run, Store

real = pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores")
spark = pytest.mark.skipif(find_java() is None, reason="Spark needs a Java")


def in_separate_process(*words: str | Path) -> CommandResult:
    """A command in a separate process, as users start it: its Spark must end with it."""
    process = start(*words)
    out, err = process.communicate(timeout=300)
    return CommandResult(process.returncode, out, err)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a run on real processes: two drivers, three partitions."""
    folder = tmp_path_factory.mktemp("made")
    text = EXPERIMENT.replace("warmup: 1s", "warmup: 1s, partitions: 3, drivers: 2")
    # two loads: a second repetition would not be run if the host made the first trial INVALID
    text = text.replace("rate: 100k/s", "values: [50k/s, 100k/s]")
    ran = in_separate_process("run", write(folder, text), "--out", calibrated(folder / "runs"), "--json")
    assert {trial["seconds"] for trial in ran.document["trials"]} == {4}, ran.out + ran.err
    return folder / "runs"


def altered(run: Run, root: Path, change: int) -> Path:
    """The same run elsewhere, its first trial stored with other seconds than its journals have."""
    copy = Run.open(Path(shutil.copytree(run.path, root / run.id)))
    recording, journals = copy.recording(1), copy.trial(1).files
    shutil.move(copy.path / "trials" / "001", root / "before")
    columns = {**recording.seconds.columns, "published": recording.seconds["published"] + np.array([0, 0, change, 0])}
    other = Recording(recording.trial, replace(recording.seconds, columns=columns), recording.outcome, recording.facts)
    partial = copy.begin(recording.trial)
    for name in set(journals) - {"seconds.parquet", "latencies.parquet"}:
        (partial.path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / "before" / name, partial.path / name)
    measured = measure(other)
    partial.finish(other, measured, decide(other, measured, copy.experiment.objectives))
    shutil.rmtree(root / "before")
    return root


@real
@spark
def test_a_real_run_is_judged_again_on_another_machine_and_missing_logs_are_named(made: Path, tmp_path: Path) -> None:
    root = altered(Store(made).find("@last"), tmp_path / "sent on", change=3)
    said = in_separate_process("show", "--recompute", "--out", root, "--json")
    first, *others = said.document["recomputed"]
    assert [trial["number"] for trial in others] == [t.trial.number for t in Store(made).find("@last").trials()][1:]
    assert [(trial["from"], trial["differences"]) for trial in others] == [("journals", [])] * len(others)
    assert others, "a trial that was not altered is the same"
    unlike = "\n".join(first["differences"])
    assert "the column published differs in 1 of 4 seconds (second 2: " in unlike
    assert "measurement.published_rate was stored as " in unlike
    assert (said.code, said.document["exit_code"]) == (1, 1)
    assert "WARN" not in said.err, "what the JVM says is not for the user"


@real
def test_a_journal_that_is_not_the_one_that_was_written_is_refused(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "runs")
    run = Store(tmp_path / "runs").find("@last")
    ticks = run.trial(1).path / "ticks-1.parquet"
    ticks.write_bytes(ticks.read_bytes()[:-1] + b"x")
    said = in_separate_process("show", "--recompute", "--trial", "1", "--out", tmp_path / "runs")
    assert said.code == 2
    assert "ticks-1.parquet is damaged" in said.err


@real
def test_without_pyspark_the_command_to_install_it_is_printed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.install.ensure.package_version", lambda name: None)
    said = streamgauge("show", "--recompute", "--out", made)
    assert (said.code, said.err.strip()) == (
        2,
        "PySpark is not installed. Install it with: pip install 'streamgauge[spark]'",
    )


@real
def test_without_java_the_command_to_install_it_is_printed(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.install.ensure.find_java", lambda *_, **__: None)
    said = streamgauge("show", "--recompute", "--out", made)
    assert said.code == 2
    assert said.err.startswith("Java 17 or newer is required, but ")


def test_a_run_that_is_simulated_is_judged_from_its_seconds_without_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert streamgauge("run", write(tmp_path, MEASURE), "--out", tmp_path / "runs").code == 0
    monkeypatch.setattr("streamgauge.install.ensure.package_version", lambda name: None)
    said = streamgauge("show", "--recompute", "--out", tmp_path / "runs")
    assert (said.code, said.err) == (0, "")
    assert " ".join(said.out.split()) == (
        "trial 1: SUSTAINED, from its stored per-second metrics (a simulated trial has no raw logs): same verdict"
    )


def test_a_single_trial_can_be_recomputed(tmp_path: Path) -> None:
    assert streamgauge("run", write(tmp_path, MEASURE), "--out", tmp_path / "runs").code == 0
    alone = streamgauge("show", "--trial", "1", "--out", tmp_path / "runs")
    assert (alone.code, alone.err.split()) == (
        2,
        ["--trial", "needs", "--recompute.", "Without", "--recompute,", "every", "trial", "is", "shown."],
    )
    said = streamgauge("show", "--recompute", "--trial", "9", "--out", tmp_path / "runs")
    assert said.code == 2
    assert "has no finished trial 9. It has 1 finished trial." in " ".join(said.err.split())
