"""Odd terminals: streams that are closed, full, or of another encoding never change what a command does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_session import MEASURE, CommandResult, write

SHELL = "/bin/sh"


def in_shell(redirection: str, *arguments: str | Path, **variables: str) -> CommandResult:
    """Run a command with its streams redirected by a shell, as a user types it."""
    words = [SHELL, "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "streamgauge", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, env={**os.environ, **variables}, timeout=120, check=False)
    assert b"Traceback" not in done.stderr
    return CommandResult(done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one finished run."""
    made = tmp_path_factory.mktemp("streams")
    assert in_shell("", "run", write(made, MEASURE), "--out", made / "runs").code == 0
    return made


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_these_characters_gets_others(tmp_path: Path, encoding: str) -> None:
    said = in_shell("", "run", write(tmp_path, MEASURE), "--out", tmp_path / "runs", PYTHONIOENCODING=encoding)
    assert said.code == 0, said.err
    assert "SUSTAINED" in said.out
    shown = in_shell("", "show", "--out", tmp_path / "runs", PYTHONIOENCODING=encoding)
    assert (shown.code, shown.out) == (0, said.out)
    wrong = in_shell("", "plan", write(tmp_path, MEASURE + "more…: 1\n", "wrong.yaml"), PYTHONIOENCODING=encoding)
    assert wrong.code == 2
    assert "more..." in wrong.err, "an ellipsis is written with dots"


@pytest.mark.parametrize("verb", ["engines", "workloads", "doctor", "schema", "plan", "--help"])
def test_every_command_writes_to_a_terminal_in_ascii(folder: Path, verb: str) -> None:
    words: list[str | Path] = [verb, *([folder / "experiment.yaml"] if verb == "plan" else [])]
    words += ["--out", folder / "runs"] if verb == "doctor" else []
    said = in_shell("2>/dev/null", *words, PYTHONIOENCODING="ascii")
    assert said.code == 0, said.err
    assert verb == "schema" or said.out.isascii()


@pytest.mark.parametrize("json_", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(("redirection", "rate", "code"), [(">&-", "50k/s", 0), (">/dev/full", "150k/s", 1)])
def test_a_run_keeps_its_exit_code_and_names_its_folder(
    tmp_path: Path, redirection: str, json_: list[str], rate: str, code: int
) -> None:
    words: list[str | Path] = [
        "run",
        write(tmp_path, MEASURE),
        "--out",
        tmp_path / "runs",
        "--set",
        f"load.rate={rate}",
        *json_,
    ]
    said = in_shell(redirection, *words)
    assert said.code == code, said.err
    (made,) = (tmp_path / "runs").glob("*/findings.json")
    assert f"The results are in {made.parent}." in said.err
    assert "could not be written to stdout" in said.err
    assert "--out" not in said.err


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
def test_a_resumed_run_keeps_its_exit_code_and_names_its_folder(folder: Path, redirection: str) -> None:
    said = in_shell(redirection, "resume", "--out", folder / "runs")
    assert said.code == 0, said.err
    (made,) = (folder / "runs").glob("*/findings.json")
    assert f"The results are in {made.parent}." in said.err
    assert "could not be written to stdout" in said.err


def test_a_run_whose_reader_has_left_keeps_its_exit_code(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "streamgauge", "run", str(write(tmp_path, MEASURE)), "--out", str(tmp_path / "runs")]
    process = subprocess.Popen(
        [*words, "--set", "load.rate=150k/s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as stream:
        err = stream.read()
    assert process.wait(60) == 1, err
    assert "Traceback" not in err
    assert str(tmp_path / "runs") in err


@pytest.mark.parametrize(
    ("verb", "redirection", "reason"),
    [
        ("list", ">&-", "it is closed"),
        ("list --json", ">/dev/full", "No space left on device"),
        ("show", ">/dev/full", "No space left on device"),
        ("show --json", ">&-", "it is closed"),
    ],
)
def test_a_command_whose_only_result_is_lost_reports_it(folder: Path, verb: str, redirection: str, reason: str) -> None:
    said = in_shell(redirection, *verb.split(), "--out", folder / "runs")
    assert said.code == 2
    assert f"The output could not be written to stdout: {reason}." in said.err


@pytest.mark.parametrize("verb", ["--help", "--version"])
def test_help_to_a_closed_pipe_is_no_traceback(verb: str) -> None:
    assert in_shell(">/dev/full", verb).code == 2


def test_an_error_keeps_its_exit_code_if_nothing_can_be_written(folder: Path) -> None:
    for redirection in (">/dev/full", "2>/dev/full", "<&- >&- 2>&-"):
        assert in_shell(redirection, "show", "no-such-run", "--out", folder / "runs", "--json").code == 2


@pytest.mark.parametrize("redirection", ["2>/dev/full", "<&- 2>&-"])
def test_stdout_is_complete_if_stderr_cannot_be_written(tmp_path: Path, redirection: str) -> None:
    said = in_shell(redirection, "run", write(tmp_path, MEASURE), "--out", tmp_path / "runs", "--json")
    assert said.code == 0
    assert json.loads(said.out)["trials"][0]["verdict"] == "SUSTAINED"
    (trial,) = (tmp_path / "runs").glob("*/trials/001")
    assert all(b"run 2" not in path.read_bytes() for path in trial.iterdir()), "a file got what was for stderr"


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"COLUMNS": "0", "TERM": "dumb", "HOME": "", "LC_ALL": "C", "TMPDIR": "/nonexistent"}, 0),
        ({"_STREAMGAUGE_COMPLETE": "complete_bash"}, 2),
        ({"_STREAMGAUGE_COMPLETE": "complete_bash", "COMP_WORDS": "streamgauge", "COMP_CWORD": "x"}, 2),
        ({"_STREAMGAUGE_COMPLETE": "nonsense"}, 2),
    ],
)
def test_an_odd_environment_is_no_bug(folder: Path, variables: dict[str, str], code: int) -> None:
    said = in_shell("", "list", "--out", folder / "runs", **variables)
    assert said.code == code, said.err
    assert "bug" not in said.err.lower()
    assert ("small" in said.out) is (code == 0), "a terminal without a width still gets the list"
