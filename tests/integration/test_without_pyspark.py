"""Where PySpark is not installed, commands say so with the command that installs it, and all others work."""

import os
from pathlib import Path

import pytest
from cli_session import CommandResult, start

HIDE_PYSPARK = """
import sys
from importlib import metadata
from importlib.abc import MetaPathFinder


class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Hidden())
from_name = metadata.Distribution.from_name


def hide(name):
    if name == "pyspark":
        raise metadata.PackageNotFoundError(name)
    return from_name(name)


metadata.Distribution.from_name = hide
"""
MESSAGE = "PySpark is not installed. Install it with: pip install 'streamgauge[spark]'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that hides PySpark from every Python process that has it on its path."""
    (tmp_path / "sitecustomize.py").write_text(HIDE_PYSPARK, encoding="utf-8")
    return tmp_path


def without_pyspark(folder: Path, *arguments: str) -> CommandResult:
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = start(*arguments, env={**os.environ, "PYTHONPATH": path}, cwd=folder)
    out, err = process.communicate(timeout=60)
    return CommandResult(process.returncode, out, err)


def test_all_engines_are_listed(folder: Path) -> None:
    listed = without_pyspark(folder, "engines", "--json")
    assert listed.code == 0, listed.err
    assert [engine["name"] for engine in listed.document["engines"]] == ["reference", "simulated", "spark"]
    assert listed.document["problems"] == []


@pytest.mark.parametrize("words", [("run", "quickstart"), ("plan", "quickstart"), ("setup", "spark")])
def test_a_command_that_needs_pyspark_states_what_to_install(folder: Path, words: tuple[str, ...]) -> None:
    refused = without_pyspark(folder, *words)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.strip() == MESSAGE
    assert not (folder / "runs").exists()


def test_doctor_names_what_needs_it(folder: Path) -> None:
    (check,) = [c for c in without_pyspark(folder, "doctor", "--json").document["checks"] if c["name"] == "spark"]
    assert check == {
        "name": "spark",
        "state": "note",
        "found": "PySpark is not installed; engine spark and `show --recompute` need it",
        "fix": "pip install 'streamgauge[spark]'",
    }


def test_what_needs_no_spark_works(folder: Path) -> None:
    done = without_pyspark(folder, "run", "simulated", "--json")
    assert done.code == 0, done.err
