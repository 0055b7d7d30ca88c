"""A run's folder: what goes in comes out, whole or not at all."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import store_samples as sample

from streamgauge.model.finding import TrialResult
from streamgauge.model.units import SECOND
from streamgauge.store import Run, RunLocked, Store, StoreError, read_partial
from streamgauge.store.runs import TEMPORARY, newest_session


def test_a_run_is_named_after_its_time_and_its_experiment(tmp_path: Path) -> None:
    assert sample.new_run(tmp_path).id == "20261115-235312-quick-start-ab12"


def test_the_time_in_the_name_is_utc(tmp_path: Path) -> None:
    there = datetime(2026, 11, 16, 1, 0, 0, tzinfo=timezone(timedelta(hours=2)))
    run = Store(tmp_path).create(sample.EXPERIMENT, "", {}, there, "0000")
    assert run.id.startswith("20261115-230000-")
    assert run.created == there
    assert run.created.tzinfo is UTC


def test_a_run_gives_back_what_it_was_made_of(tmp_path: Path) -> None:
    made = sample.new_run(tmp_path / "deep" / "runs")
    run = Run.open(made.path)
    assert run.experiment == sample.EXPERIMENT
    assert run.text == sample.TEXT
    assert run.environment == sample.ENVIRONMENT
    assert run.created == sample.NOW
    assert run.command == ("run", "quick")
    assert run.trials() == []
    assert run.conclusion() is None


def test_a_run_is_never_written_over(tmp_path: Path) -> None:
    sample.new_run(tmp_path)
    with pytest.raises(StoreError, match="already exists; a run is never overwritten"):
        sample.new_run(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot create .*file"):
        sample.new_run(tmp_path / "file")


def test_whole_trials_come_back_in_order(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    for number in (2, 10, 1, 1000):
        sample.keep(run, number)
    for opened in (run, Run.open(run.path)):
        assert [t.trial.number for t in opened.trials()] == [1, 2, 10, 1000]
        assert opened.trials()[0].trial == sample.trial(1)
        assert opened.trials()[0].verdict == sample.VERDICT
        assert repr(opened.trials()[0].measurement) == repr(sample.MEASUREMENT)  # it holds a nan
        assert opened.trials()[0].outcome == sample.recording().outcome
        assert opened.trials()[0].facts == sample.recording().facts
        assert opened.trials()[0].seconds == 5


def test_a_recording_comes_back_with_its_seconds(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    sample.keep(run)
    read = run.recording(1)
    assert sample.same_seconds(read.seconds, sample.recording().seconds)
    assert (read.trial, read.outcome, read.facts) == (
        sample.trial(1),
        sample.recording().outcome,
        sample.recording().facts,
    )


def test_a_trial_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    with pytest.raises(StoreError, match="has no finished trial 7"):
        run.recording(7)


def test_a_finished_trial_leaves_nothing_of_its_growing(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    stored = sample.keep(run)
    names = sorted(path.name for path in stored.path.iterdir())
    assert names == ["latencies.parquet", "manifest.json", "seconds.parquet"]
    assert [path.name for path in (run.path / "trials").iterdir()] == ["001"]


def test_logs_stay_with_their_trial_and_are_marked(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    partial = run.begin(sample.trial())
    (partial.path / "logs").mkdir()
    (partial.path / "logs" / "sut.log").write_bytes(b"hello")
    stored = partial.finish(sample.recording(), sample.MEASUREMENT, sample.VERDICT)
    assert (stored.path / "logs" / "sut.log").read_bytes() == b"hello"
    assert stored.files["logs/sut.log"].bytes == 5
    assert set(stored.files) == {"logs/sut.log", "seconds.parquet", "latencies.parquet"}


def test_a_trial_that_grows_is_seen_but_not_counted(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    partial = run.begin(sample.trial(3))
    partial.append(sample.seconds(2))
    partial.append(sample.seconds(1, start=2))
    watched = Run.open(run.path)
    assert watched.trials() == []
    assert watched.partials() == [run.path / "trials" / "003.partial"]
    growing = watched.growing()
    assert growing is not None
    assert growing.trial == sample.trial(3)
    assert len(growing.seconds) == 3


def test_nothing_grows_between_two_trials(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    sample.keep(run)
    assert run.growing() is None


def test_what_a_crash_left_is_moved_aside_and_kept(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    for crash in range(3):
        partial = run.begin(sample.trial(1))
        (partial.path / "sut.log").write_text(f"crash {crash}")
        partial.append(sample.seconds(crash + 1))
        partial.close()
    sample.keep(run, 1)
    assert [path.name for path in run.partials()] == ["001.partial.1", "001.partial.2", "001.partial.3"]
    assert [(path / "sut.log").read_text() for path in run.partials()] == ["crash 0", "crash 1", "crash 2"]
    assert [len(read_partial(path).seconds) for path in run.partials()] == [1, 2, 3]
    assert [t.trial.number for t in run.trials()] == [1]
    assert run.discard_leftovers() > 0
    assert run.partials() == []
    assert len(run.trials()) == 1


def test_what_a_killed_system_left_is_swept_and_its_log_kept(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    assert (run.temporary_folders(), newest_session(run.sessions)) == ([], 0)
    for number in ("001", "012"):
        (run.sessions / number / TEMPORARY / "spark").mkdir(parents=True)
        (run.sessions / number / TEMPORARY / "spark" / "block").write_bytes(bytes(100))
        (run.sessions / number / "spark.log").write_text("killed")
    assert newest_session(run.sessions) == 12, "the next one does not write into a folder of the killed run"
    assert [path.parent.name for path in run.temporary_folders()] == ["001", "012"]
    assert run.discard_leftovers() == 200
    assert run.temporary_folders() == []
    assert [path.name for path in sorted(run.sessions.glob("*/*"))] == ["spark.log"] * 2


def test_a_trial_that_died_in_its_last_step_can_be_looked_into(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    sample.keep(run).path.rename(run.path / "trials" / "001.partial")  # all is written but for the rename
    growing = run.growing()
    assert growing is not None
    assert growing.trial == sample.trial()
    assert sample.same_seconds(growing.seconds, sample.recording().seconds)


def test_a_whole_trial_is_never_written_again(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    sample.keep(run)
    with pytest.raises(StoreError, match="never overwritten"):
        run.begin(sample.trial(1))


def test_a_trial_takes_no_recording_of_another(tmp_path: Path) -> None:
    partial = sample.new_run(tmp_path).begin(sample.trial(1))
    with pytest.raises(ValueError, match="of trial 1, not of 2"):
        partial.finish(sample.recording(2), sample.MEASUREMENT, sample.VERDICT)


def test_a_trial_folder_under_another_number_is_refused(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    sample.keep(run, 1).path.rename(run.path / "trials" / "002")
    with pytest.raises(StoreError, match="is of trial 1"):
        Run.open(run.path).trials()


def test_the_past_is_passed_engine_by_engine(tmp_path: Path) -> None:
    run = sample.whole_run(tmp_path)
    assert run.trial_results("b") == [TrialResult(sample.trial(2).ask, sample.VERDICT, 2, sample.MEASUREMENT.load)]
    assert [told.trial for told in run.trial_results()] == [1, 2]
    assert run.trial_results("c") == []


def test_the_result_is_read_back_and_a_resumed_run_replaces_it(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    run.write_conclusion([], "the budget is spent", 5, SECOND)
    run.write_conclusion([sample.FINDING], "", 0, 2 * SECOND)
    read = Run.open(run.path)
    ending = read.conclusion()
    assert ending is not None
    assert [*ending.findings] == [sample.FINDING]
    assert (ending.ended, ending.exit_code, ending.spent_ns) == ("", 0, 2 * SECOND)
    assert not list(run.path.glob(".*"))


def test_one_run_is_written_by_one_process(tmp_path: Path) -> None:
    run = sample.new_run(tmp_path)
    script = (
        "import sys\nfrom pathlib import Path\nfrom streamgauge.store import Run\n"
        "with Run.open(Path(sys.argv[1])).lock():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(RunLocked, match=rf"{run.id} is being written by another process \(pid {child.pid}\)"):
            Store(tmp_path).remove(run)
        child.kill()
    with run.lock(), pytest.raises(RunLocked), Run.open(run.path).lock():
        pass
    with run.lock():
        pass


def test_removing_a_run_frees_what_it_took(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run, other = sample.whole_run(tmp_path), sample.new_run(tmp_path, after=1)
    taken = sum(path.stat().st_size for path in run.path.rglob("*") if path.is_file())
    assert store.size(run) == taken
    assert store.remove(run) == taken
    assert [left.id for left in store.runs()] == [other.id]
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.id]
