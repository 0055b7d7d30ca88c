"""Bad input of any kind is a sentence, never a traceback."""

import os
from pathlib import Path

import pytest
from cli_session import EXPERIMENT, streamgauge, write


def refused(*arguments: str | Path) -> str:
    """What is said when a command refuses its input."""
    said = streamgauge(*arguments)
    assert said.code == 2, said.err
    assert said.out == ""
    assert "Traceback" not in said.err
    assert "bug" not in said.err
    return said.err


def test_a_missing_experiment_names_the_shipped_ones() -> None:
    assert "quickstart" in refused("run", "quickstrat")


def test_a_folder_is_no_experiment(tmp_path: Path) -> None:
    assert "is a folder" in refused("run", tmp_path)


def test_a_binary_file_is_no_experiment(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00\x01" * 100)
    assert "not a text file" in refused("plan", tmp_path / "a.yaml")
    (tmp_path / "b.yaml").write_bytes(b"name: a\0b")
    assert "NUL" in refused("plan", tmp_path / "b.yaml")


def test_a_huge_file_is_no_experiment(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"a" * (1 << 21))
    assert "64 KiB" in refused("plan", tmp_path / "a.yaml")


def test_the_size_of_a_file_has_one_limit(tmp_path: Path) -> None:
    largest = EXPERIMENT + "#" * (64 * 1024 - len(EXPERIMENT))
    assert streamgauge("plan", write(tmp_path, largest)).code == 0
    by_file = refused("plan", write(tmp_path, largest + "#"))
    by_key = refused("plan", write(tmp_path), "--set", f"description={'a' * (64 * 1024 + 1)}")
    limit = "larger than 64 KiB; an experiment is a page, not a data set"
    assert limit in by_file
    assert limit in by_key


@pytest.mark.parametrize(
    "words",
    [
        *("run {file} --out", "list --out", "show --out", "resume --out", "report --out", "clean --out"),
        *("calibrate --out", "doctor --out", "report --html", "init"),
    ],
)
def test_an_empty_path_is_refused(tmp_path: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path)
    assert "is empty" in refused(*words.format(file=file).split(), "")
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_is_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.chmod(0)
    assert "cannot be read" in refused("run", path)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "", "../../nothing"])
def test_a_name_that_no_file_can_have_is_a_sentence(name: str) -> None:
    refused("plan", name)


@pytest.mark.parametrize(
    "override", ["nonsense", "=", "a.b.c=1", "load=", "engine.capacity=fast", "seed=[", "load.0=1"]
)
def test_a_bad_override_is_a_sentence(tmp_path: Path, override: str) -> None:
    refused("plan", write(tmp_path), "--set", override)


@pytest.mark.parametrize("budget", ["10", "soon", "0s", "-5m", ""])
def test_a_bad_budget_is_a_sentence(tmp_path: Path, budget: str) -> None:
    assert "--budget" in refused("run", write(tmp_path), "--out", tmp_path / "runs", "--budget", budget)
    assert not (tmp_path / "runs").exists()


def test_an_out_that_is_a_file_is_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path)
    for verb in (["run", path], ["list"], ["show"], ["resume"], ["clean"]):
        assert "not a folder" in refused(*verb, "--out", path)


def test_an_out_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    assert refused("run", write(tmp_path), "--out", "/proc/nowhere/runs").strip()


@pytest.mark.parametrize("reference", ["nobody", "@last", "@last~7", "@first", ""])
def test_an_unknown_run_is_a_sentence(tmp_path: Path, reference: str) -> None:
    (tmp_path / "runs").mkdir()
    for verb in ("show", "resume", "clean"):
        refused(verb, reference, "--out", tmp_path / "runs")


def test_init_writes_a_file_that_runs_and_overwrites_none(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    assert streamgauge("init", path).code == 0
    assert streamgauge("plan", path).code == 0
    path.write_text(EXPERIMENT, encoding="utf-8")
    assert "--force" in refused("init", path)
    assert path.read_text(encoding="utf-8") == EXPERIMENT
    assert streamgauge("init", path, "--force").code == 0
    assert path.read_text(encoding="utf-8") != EXPERIMENT
    refused("init", tmp_path / "no" / "such" / "folder.yaml")


def test_clean_lists_before_it_deletes(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert streamgauge("run", write(tmp_path), "--out", runs).code == 0
    kept = streamgauge("clean", "@last", "--out", runs)
    assert "Nothing was deleted" in kept.err
    assert len(streamgauge("list", "--out", runs, "--json").document["runs"]) == 1
    assert streamgauge("clean", "@last", "--out", runs, "--yes").code == 0
    assert streamgauge("list", "--out", runs, "--json").document["runs"] == []


def test_clean_removes_what_a_killed_system_under_test_left(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert streamgauge("run", write(tmp_path), "--out", runs).code == 0
    (run,) = runs.glob("*/run.json")
    left = run.with_name("sessions") / "001" / "tmp"
    left.mkdir(parents=True)
    (left / "block").write_bytes(bytes(1000))
    listed = streamgauge("clean", "--out", runs)
    assert "what a system under test left" in listed.out
    assert streamgauge("clean", "--out", runs, "--yes").err.startswith("Deleted 1 folder, ")
    assert not left.exists()
