"""A stored run of Spark: its folder alone is enough to show it, draw it and judge it, wherever it is."""

import shutil
from pathlib import Path

import pytest
from cli_session import streamgauge
from other_machine import OtherMachine

from streamgauge.analyze.journals import journals_of
from streamgauge.analyze.rejudge import rejudge
from streamgauge.model.measurement import VerdictKind
from streamgauge.run.result import stored_hint
from streamgauge.store import Run, Store
from streamgauge.store.trials import check_files

GOLDEN = Path(__file__).parents[1] / "golden" / "spark-run"
"""One short trial as `streamgauge run` has kept it, without the session's folder and the page, which are not needed."""


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A copy: showing a run writes an index beside it."""
    return Path(shutil.copytree(GOLDEN, tmp_path / "runs"))


@pytest.fixture
def run(runs: Path) -> Run:
    return Store(runs).find("@last")


def test_every_file_is_the_one_that_was_written(run: Run) -> None:
    (stored,) = run.trials()
    check_files(stored)
    assert journals_of(stored) is not None, "what it was counted from is there"
    assert {"spark-batches.arrows", "spark-numbers.arrows"} <= stored.files.keys()


def test_its_trial_is_judged_again_to_the_same_verdict(run: Run) -> None:
    (stored,) = run.trials()
    judged = stored.measurement, stored.verdict
    again = rejudge(run.recording(1), judged, run.experiment.objectives, None)
    assert again.verdict.kind is stored.verdict.kind is VerdictKind.SUSTAINED
    assert again.measurement.account == stored.measurement.account
    assert stored.measurement.account.checked


def test_another_machine_prints_and_draws_the_same(runs: Path, run: Run, tmp_path: Path) -> None:
    sent = tmp_path / "sent on"
    shutil.copytree(runs, sent)
    shown = streamgauge("show", "--out", runs, "--json").document
    assert streamgauge("report", "--out", runs, "--html", tmp_path / "here.html").code == 0
    page = (tmp_path / "here.html").read_bytes()
    shutil.rmtree(runs)

    there = OtherMachine(tmp_path / "home")
    said = there.streamgauge("show", "--out", sent, "--json")
    assert (said.code, said.document) == (0, shown), said.err
    assert there.streamgauge("report", "--out", sent, "--html", tmp_path / "there.html").code == 0
    assert (tmp_path / "there.html").read_bytes() == page
    assert b"the JVM" in page, "why Spark stops where it does comes from the folder too"
    assert list(there.home.iterdir()) == []


def test_a_run_is_answered_by_the_load_that_its_search_began_with(run: Run) -> None:
    assert stored_hint(run, "spark") == 1_262_915.0
    assert stored_hint(run, "another") == 0.0
