"""Every format ever written keeps reading; a newer one asks for an upgrade."""

import shutil
from pathlib import Path

import pytest
import store_samples as sample

from streamgauge.cli.commands.show import chosen_trials
from streamgauge.cli.errors import UserError
from streamgauge.model.measurement import VerdictKind
from streamgauge.store import NewerFormat, Run, Store
from streamgauge.store.documents import FORMAT, READERS, lacks

GOLDEN = Path(__file__).parents[1] / "golden" / "store"


@pytest.fixture(params=sorted(READERS))
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A copy of the golden run of one format: listing writes an index."""
    shutil.copytree(GOLDEN / f"format-{request.param}", tmp_path / "runs")
    return Store(tmp_path / "runs")


def test_what_is_written_can_be_read() -> None:
    assert max(READERS) == FORMAT


def test_the_run_of_every_format_keeps_reading(old: Store) -> None:
    (summary,) = old.runs()
    assert (summary.state, summary.trials, summary.exit_code) == ("finished", 2, 0)
    run = old.find("Quick start")
    assert run.id == "20261115-235312-quick-start-ab12"
    assert run.created == sample.NOW
    assert run.text == sample.TEXT
    assert run.environment["cpu"] == {"model": "Abacus", "usable": [0, 1]}
    assert run.experiment.objectives[1].statistic == "p99"
    ending = run.conclusion()
    assert ending is not None
    assert [f.sentence for f in ending.findings] == ["a holds 700k/s and fails at 730k/s"]


def test_the_trials_of_every_format_keep_reading(old: Store) -> None:
    run = old.find("@last")
    assert [(t.trial.engine, t.verdict.kind) for t in run.trials()] == [
        ("a", VerdictKind.SUSTAINED),
        ("b", VerdictKind.SUSTAINED),
    ]
    first = run.recording(1)
    assert first.outcome.ending == "decided"
    assert first.seconds["published"].tolist() == PUBLISHED
    assert first.seconds.latency("event-time").bucket.tolist()[:4] == BUCKETS[run.trial(1).format]


PUBLISHED = [1952248665957342225, 3817104479337814856, 1887097935946223281, 127093977223315607, 2481747993483536168]
BUCKETS = {1: [878, 4064, 8152, 5676], 2: [16065, 2489, 19382, 14671]}


def test_a_trial_of_format_1_is_known_as_one_and_states_what_it_lacks(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "format-1", tmp_path / "runs")
    first = Store(tmp_path / "runs").find("@last").trial(1)
    assert first.format == 1
    assert "the lag behind the plan" in lacks(first.format)
    written = sample.whole_run(tmp_path / "new").trial(1)
    assert (written.format, lacks(written.format)) == (FORMAT, "")


def test_a_run_of_format_1_is_shown_as_it_was_judged_and_not_recomputed(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "format-1", tmp_path / "runs")
    run = Store(tmp_path / "runs").find("@last")
    assert {trial.verdict.kind for trial in run.trials()} == {VerdictKind.SUSTAINED}
    with pytest.raises(
        UserError, match=r"Trial 1 .* was recorded in format 1, which lacks data that the current rules need"
    ):
        chosen_trials(run, None)


def test_a_newer_format_requires_an_upgrade(tmp_path: Path) -> None:
    run = sample.whole_run(tmp_path)
    header = run.path / "run.json"
    header.write_bytes(header.read_bytes().replace(b'"format": 2', b'"format": 3'))
    with pytest.raises(NewerFormat, match=r"run\.json was written by a newer streamgauge \(format 3\); upgrade"):
        Run.open(run.path)
    (summary,) = Store(tmp_path).runs()
    assert summary.state == "unreadable"
    assert "newer streamgauge" in summary.reason
