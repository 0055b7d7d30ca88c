"""Bad input of any kind is a sentence, never a traceback."""

import os
import subprocess
import sys
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
    limit = "larger than 64 KiB, the limit for experiment files"
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
    assert "temporary files of a system" in listed.out
    assert streamgauge("clean", "--out", runs, "--yes").err.startswith("Deleted 1 folder, ")
    assert not left.exists()


def test_list_and_errors_print_no_escapes_from_a_folders_name(tmp_path: Path) -> None:
    runs = tmp_path / "ru\x1b[31mns"
    assert streamgauge("run", write(tmp_path), "--out", runs).code == 0
    (run,) = (path.parent for path in runs.glob("*/run.json"))
    run.rename(run.with_name("20260101-000000-\x1b[2J\x1b]0;owned\x07\u202egnp"))
    (runs / "20260101-000001-\x9b1m").mkdir()
    broken = write(
        tmp_path, EXPERIMENT.replace("seed: 3", '"s\\e[31m": 1\ndescription: ["\\e]0;x\\a"]'), "\x1b[5m.yaml"
    )
    for words in (["list"], ["show"], ["show", "nobody"], ["clean"], ["clean", "@last~1"], ["report", "@last~1"]):
        said = streamgauge(*words, "--out", runs)
        assert said.code in (0, 2), said.err
        assert not set("\x1b\x07\x9b\u202e") & set(said.out + said.err), words
    said = streamgauge("plan", broken)
    assert said.code == 2
    assert not set("\x1b\x07") & set(said.err)
    assert r"20260101-000001-\x9b1m" in streamgauge("list", "--out", runs).out


def test_clean_of_a_linked_run_removes_the_link_and_states_that_the_folder_stays(tmp_path: Path) -> None:
    elsewhere, runs = tmp_path / "elsewhere", tmp_path / "runs"
    assert streamgauge("run", write(tmp_path), "--out", elsewhere).code == 0
    (run,) = (path.parent for path in elsewhere.glob("*/run.json"))
    runs.mkdir()
    (runs / run.name).symlink_to(run)
    said = streamgauge("clean", run.name, "--out", runs, "--yes")
    assert said.code == 0, said.err
    assert "which is kept" in said.out
    assert [path.name for path in runs.iterdir() if path.name != "index.json"] == []
    assert (run / "run.json").exists()


def test_clean_of_linked_leftovers_removes_the_links(tmp_path: Path) -> None:
    runs, target = tmp_path / "runs", tmp_path / "kept"
    assert streamgauge("run", write(tmp_path), "--out", runs).code == 0
    (run,) = (path.parent for path in runs.glob("*/run.json"))
    target.mkdir()
    (target / "file").write_bytes(b"1")
    (run / "trials" / "099.partial").symlink_to(target)
    (run / "sessions" / "001").mkdir(parents=True)
    (run / "sessions" / "001" / "tmp").symlink_to(target)
    said = streamgauge("clean", "--out", runs, "--yes")
    assert said.code == 0, said.err
    assert not (run / "trials" / "099.partial").is_symlink()
    assert not (run / "sessions" / "001" / "tmp").is_symlink()
    assert (target / "file").exists()


def test_a_folder_that_does_not_exist_is_not_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    for verb in (["run", "simulated"], ["doctor"]):
        words = ["/bin/sh", "-c", script, "sh", str(folder), sys.executable, "-m", "streamgauge", *verb]
        folder.mkdir(exist_ok=True)
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, done.stderr
        assert "The current folder does not exist any more." in done.stderr
        assert "space" not in done.stderr


SPARK_PANES = EXPERIMENT.replace("slide: 8s", "slide: 3s").replace(
    "engine: {name: simulated, capacity: 100k/s, noise: 2%}", "engine: {name: spark, variant: panes}"
)
REFERENCE_KEYS = EXPERIMENT.replace("slide: 8s", "slide: 8s, gem_packs: 2M").replace(
    "engine: {name: simulated, capacity: 100k/s, noise: 2%}", "engine: reference"
)


@pytest.mark.parametrize(
    ("text", "overrides", "words"),
    [
        (SPARK_PANES, [], "3s does not divide 8s"),
        (SPARK_PANES, ["workload.slide=4s", "find={extreme: slide, values: [4s, 3s]}"], "3s does not divide 8s"),
        (SPARK_PANES, ["workload.slide=4s", "find={extreme: slide, between: [1s, 4s]}"], "find.between searches"),
        (SPARK_PANES, ["engine.variant=naive", "workload.slide=1500ns"], "whole number of microseconds"),
        (REFERENCE_KEYS, [], "at most 1M of them, and the workload has 2M"),
        (REFERENCE_KEYS, ["find={extreme: gem_packs, values: [10, 3M]}"], "and the workload has 3M"),
    ],
)
def test_what_an_engine_cannot_compute_is_refused_when_the_file_is_read(
    tmp_path: Path, text: str, overrides: list[str], words: str
) -> None:
    changes = [*overrides, *(["load={rate: 1k/s}"] if any("extreme" in one for one in overrides) else [])]
    for verb in ("plan", "run"):
        said = refused(verb, write(tmp_path, text), *(word for one in changes for word in ("--set", one)))
        assert words in said


def test_what_these_engines_can_compute_is_not_refused(tmp_path: Path) -> None:
    assert streamgauge("plan", write(tmp_path, SPARK_PANES), "--set", "workload.slide=2s").code == 0
    assert streamgauge("plan", write(tmp_path, REFERENCE_KEYS), "--set", "workload.distribution=single").code == 0


@pytest.mark.parametrize("path", ["\0", "a\0b"])
def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path, path: str) -> None:
    for words in (["list", "--out"], ["run", str(write(tmp_path)), "--out"], ["report", "--html"], ["init"]):
        assert "NUL" in refused(*words, path)
