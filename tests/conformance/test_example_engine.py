"""The engine in ``examples/engine``: a separate package that uses only the public contract, and a run of it."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import plain_python
import pytest
from row_trials import EXAMPLE, missing_for

from streamgauge.engines.contract import RealEngine
from streamgauge.processes.placement import assign_cores
from streamgauge.run.monitor.monitor import available

LINES = 60
TIMEOUT = 240
PUBLIC = {"streamgauge.engines", "collections", "collections.abc", "contextlib"}


def test_the_example_is_short_and_uses_only_the_public_contract() -> None:
    text = (EXAMPLE / "plain_python.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {node.module for node in nodes if isinstance(node, ast.ImportFrom)} <= PUBLIC
    assert not any(isinstance(node, ast.Import) for node in nodes)
    engine: RealEngine = plain_python.engine
    assert isinstance(engine, RealEngine)


def installed(folder: Path) -> dict[str, str]:
    """The environment of a command that finds the engine, as if its package was installed in this folder."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    information = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir()
    metadata = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (information / "METADATA").write_text(metadata, encoding="utf-8")
    points = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (information / "entry_points.txt").write_text("\n".join(points), encoding="utf-8")
    before = os.environ.get("PYTHONPATH")
    paths = [str(folder), str(EXAMPLE), *([before] if before else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def streamgauge(folder: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-m", "streamgauge", *map(str, arguments)]
    return subprocess.run(
        words, env=installed(folder), capture_output=True, text=True, timeout=TIMEOUT, cwd=folder, check=False
    )


def test_the_example_is_listed_once_its_package_is_installed(tmp_path: Path) -> None:
    done = streamgauge(tmp_path, "engines", "plain-python", "--json")
    assert done.returncode == 0, done.stderr
    (engine,) = json.loads(done.stdout)["engines"]
    assert (engine["name"], engine["workloads"]) == ("plain-python", ["windowed-aggregation"])
    assert engine["transports"] == ["kafka"]


@pytest.mark.realtime
@pytest.mark.skipif(not available() or not assign_cores(1).sut, reason="a trial needs /proc and two cores")
def test_a_run_of_the_example_sustains_a_low_load(tmp_path: Path) -> None:
    if missing := missing_for(plain_python.engine, "kafka"):
        pytest.skip("; ".join(missing))
    done = streamgauge(tmp_path, "run", EXAMPLE / "experiment.yaml", "--out", tmp_path / "runs", "--json")
    assert done.returncode == 0, done.stderr + done.stdout[-4000:]
    document = json.loads(done.stdout)
    assert [trial["verdict"] for trial in document["trials"]] == ["SUSTAINED"]
