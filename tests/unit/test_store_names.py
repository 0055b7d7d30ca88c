"""Runs are addressed by name, @last, @last~1 or a unique prefix; the list of them is never a crash."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import store_samples as sample

from streamgauge.store import AmbiguousRun, RunSummary, Store, StoreError, UnknownRun


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three runs of one experiment, a second apart, made in another order than their tokens have."""
    for after, token in ((0, "cc00"), (1, "aa00"), (2, "bb00")):
        sample.new_run(tmp_path, after, token)
    return Store(tmp_path)


@pytest.mark.parametrize(
    ("ref", "token"),
    [
        ("@last", "bb00"),
        ("@last~0", "bb00"),
        ("@last~1", "aa00"),
        ("@last~2", "cc00"),
        ("Quick start", "bb00"),
        ("20261115-235313-quick-start-aa00", "aa00"),
        ("20261115-235313", "aa00"),
        ("20261115-235312-q", "cc00"),
    ],
)
def test_a_run_is_found(store: Store, ref: str, token: str) -> None:
    assert store.find(ref).id.endswith(token)


@pytest.mark.parametrize("ref", ["", "nonsense", "@last~3", "@last~", "@first", "../x", "/", "20261115-235313-quick-*"])
def test_a_run_that_is_not_there_is_a_sentence(store: Store, ref: str) -> None:
    with pytest.raises(UnknownRun) as caught:
        store.find(ref)
    assert str(store.root) in str(caught.value)


def test_a_prefix_of_several_names_them(store: Store) -> None:
    with pytest.raises(AmbiguousRun, match=r"3 runs begin with '2026': .*cc00, .*aa00, .*bb00; type more"):
        store.find("2026")


def test_an_unknown_name_states_what_there_is(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UnknownRun, match=r"has no run 'x'; it has .*bb00"):
        store.find("x")
    with pytest.raises(UnknownRun, match="it has no runs yet"):
        Store(tmp_path / "nowhere").find("x")
    with pytest.raises(UnknownRun, match=r"@last needs at least 1 run, but .* has 0"):
        Store(tmp_path / "nowhere").find("@last")


def test_runs_of_one_moment_are_in_the_order_they_were_made(tmp_path: Path) -> None:
    for i, token in enumerate(("ff", "00")):
        run = sample.new_run(tmp_path, 0, token)
        # Two files of one tick of the file system's clock could not be told apart.
        moment = 1_000_000_000 + i
        os.utime(run.path / "run.json", ns=(moment, moment))
    assert [run.id[-2:] for run in Store(tmp_path).runs()] == ["ff", "00"]


def test_a_renamed_folder_is_a_renamed_run(store: Store) -> None:
    run = store.find("@last")
    run.path.rename(store.root / "before-the-upgrade")
    assert store.find("before-the-upgrade").created == run.created
    assert store.find("@last").id == "before-the-upgrade"


def test_the_list_distinguishes_finished_from_unfinished(tmp_path: Path) -> None:
    sample.whole_run(tmp_path)
    begun = sample.new_run(tmp_path, after=5)
    sample.keep(begun)
    finished, unfinished = Store(tmp_path).runs()
    assert finished == RunSummary(
        id="20261115-235312-quick-start-ab12",
        path=tmp_path / "20261115-235312-quick-start-ab12",
        state="finished",
        experiment="Quick start",
        created=datetime(2026, 11, 15, 23, 53, 12, 345678, tzinfo=UTC),
        engines=("a", "b"),
        trials=2,
        ended="",
        exit_code=0,
        sentences=("a holds 700k/s and fails at 730k/s",),
        titles=("",),
    )
    assert (unfinished.state, unfinished.trials, unfinished.exit_code) == ("unfinished", 1, None)


def test_unreadable_runs_are_listed_with_the_reason(store: Store) -> None:
    one, two, three = store.runs()
    (one.path / "experiment.json").write_bytes(b"{")
    (two.path / "run.json").unlink()
    (three.path / "trials").rmdir()
    again = store.runs()
    assert [run.id for run in again] == [one.id, two.id, three.id]
    assert {run.state for run in again} == {"unreadable"}
    assert [name in run.reason for run, name in zip(again, ("experiment.json", "run.json", "trials"), strict=True)] == [
        True
    ] * 3
    with pytest.raises(StoreError, match=r"experiment\.json is damaged"):
        store.find("@last~2")


def test_other_folders_and_files_are_left_unchanged(store: Store) -> None:
    (store.root / "notes").mkdir()
    (store.root / "20261115-235312-file").write_text("not a folder")
    (store.root / ".new-20261115-235312-crashed-ab").mkdir()
    assert len(store.runs()) == 3


def test_no_folder_is_made_by_looking(tmp_path: Path) -> None:
    assert Store(tmp_path / "runs").runs() == []
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\x00", None], ids=["empty", "other", "bytes", "gone"])
def test_the_index_can_be_thrown_away(tmp_path: Path, content: bytes | None) -> None:
    sample.whole_run(tmp_path)
    store, index = Store(tmp_path), tmp_path / "index.json"
    before, written = store.runs(), index.read_bytes()
    index.unlink()
    if content is not None:
        index.write_bytes(content)
    assert store.runs() == before
    assert index.read_bytes() == written


def test_the_index_notices_a_run_that_went_on(tmp_path: Path) -> None:
    run, store = sample.whole_run(tmp_path), Store(tmp_path)
    assert store.runs()[0].trials == 2
    sample.keep(run, 3)
    run.write_conclusion([], "it was interrupted", 130, 1)
    assert (store.runs()[0].trials, store.runs()[0].exit_code) == (3, 130)


def test_the_index_is_used(tmp_path: Path) -> None:
    run, store = sample.whole_run(tmp_path), Store(tmp_path)
    before = store.runs()
    findings = run.path / "findings.json"
    stat, data = findings.stat(), findings.read_bytes()
    with findings.open("r+b") as file:  # same inode, size and time: only a reader of the file itself would see it
        file.write(b" " * len(data))
    os.utime(findings, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert store.runs() == before
    (tmp_path / "index.json").unlink()
    assert store.runs()[0].state == "unreadable"
