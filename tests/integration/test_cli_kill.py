"""kill -9 at random moments: no finished trial is lost, and ``resume`` ends with the same finding.

``STREAMGAUGE_KILLS`` says how many kills; ``make soak`` asks for a hundred.
"""

import contextlib
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cli_session import start, streamgauge, write

KILLS = int(os.environ.get("STREAMGAUGE_KILLS", "5"))
PACE = "0.01"
"""Real seconds per virtual second: a search takes about as long as the process takes to start."""


def kill_after(process: subprocess.Popen[str], seconds: float) -> None:
    """Kill it, if it is not done by then. Its first line says that the run's folder is there."""
    assert process.stderr is not None
    process.stderr.readline()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.communicate()


def finished(run: Path) -> dict[str, bytes]:
    """Everything that the whole trials of a run consist of."""
    whole = [p for p in (run / "trials").iterdir() if ".partial" not in p.name]
    return {str(f.relative_to(run)): f.read_bytes() for p in whole for f in p.rglob("*") if f.is_file()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same experiment, left alone."""
    folder = tmp_path_factory.mktemp("whole")
    return streamgauge("run", write(folder), "--out", folder / "runs", "--json").document


@pytest.mark.parametrize("kill", range(KILLS))
def test_a_killed_run_loses_nothing_and_resumes_to_the_same_finding(
    kill: int, whole: dict[str, Any], tmp_path: Path
) -> None:
    chance = random.Random(kill)
    file, runs = write(tmp_path), tmp_path / "runs"
    length = whole["seconds"] * float(PACE)

    kill_after(start("run", file, "--out", runs, "--pace", PACE), chance.uniform(0, length))
    if chance.random() < 0.3:
        kill_after(start("resume", "--out", runs, "--pace", PACE), chance.uniform(0, length / 2))

    listed = streamgauge("list", "--out", runs, "--json").document["runs"]
    assert [run["state"] for run in listed] in (["unfinished"], ["finished"])
    run = runs / listed[0]["run"]
    kept = finished(run)
    assert streamgauge("show", "--out", runs, "--json").document["format"] == 1

    resumed = streamgauge("resume", "--out", runs, "--json")
    assert resumed.code == 0, resumed.err
    assert resumed.document["findings"] == whole["findings"]
    assert [t["seed"] for t in resumed.document["trials"]] == [t["seed"] for t in whole["trials"]]
    after = finished(run)
    assert {name: after.get(name) for name in kept} == kept
    assert streamgauge("clean", "--out", runs, "--yes").code == 0
    assert finished(run) == after
