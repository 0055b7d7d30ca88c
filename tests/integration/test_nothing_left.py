"""Ctrl-C, SIGTERM and kill -9 in the middle of a real trial leave no process, no stray file and a readable store."""

import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_session import start, streamgauge, write
from real_run import EXPERIMENT, calibrated
from real_trial import COLLECTOR, DRIVER, ENGINE, PLACEMENT, disturbance

from streamgauge.run.monitor import available
from streamgauge.store import Store
from streamgauge.store.journal import read_rows

pytestmark = pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="processes are found through /proc")

MARK = "STREAMGAUGE_TEST_MARK"
PATIENCE = 10.0
"""Seconds by which everything must be gone."""


def marked(mark: str) -> dict[int, str]:
    """Live processes that have inherited the mark, whoever their parent is now, and what they run."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes()
                if f"{MARK}={mark}".encode() in environment.split(b"\0"):
                    found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True


def under_load(process: subprocess.Popen[str], runs: Path) -> None:
    """Wait until the trial has a second behind it."""
    journals = "*/trials/*.partial/driver-0-seconds.arrows"
    reached = within(60, lambda: any(read_rows(j.with_suffix("")).num_rows for j in runs.glob(journals)))
    if not reached:
        process.kill()
    assert reached, process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_run_that_is_ended_in_the_middle_of_a_trial(number: signal.Signals, tmp_path: Path) -> None:
    file = write(tmp_path, EXPERIMENT)
    runs, where, temporary, mark = tmp_path / "runs", tmp_path / "cwd", tmp_path / "tmp", secrets.token_hex(8)
    for folder in (where, temporary):
        folder.mkdir()
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        places = {"XDG_RUNTIME_DIR": short, "TMPDIR": str(temporary), "HOME": str(where), MARK: mark}
        process = start("run", file, "--out", calibrated(runs), env={**os.environ, **places}, cwd=where)
        under_load(process, runs)
        living = " ".join(marked(mark).values())
        assert all(role in living for role in (DRIVER, COLLECTOR, ENGINE, "guard.py")), living
        assert list(Path(short).glob("*/*/*.sock"))

        process.send_signal(number)
        assert within(PATIENCE, lambda: not marked(mark)), marked(mark)
        assert process.wait() == (-signal.SIGKILL if number is signal.SIGKILL else 130)
        _, err = process.communicate()
        assert "Traceback" not in err

        assert within(1, lambda: not list(Path(short).glob("*/*"))), "the runtime folder is gone"
    assert list(where.iterdir()) == list(temporary.iterdir()) == []
    assert {entry.name for entry in tmp_path.iterdir()} == {"experiment.yaml", "runs", "cwd", "tmp"}

    (listed,) = streamgauge("list", "--out", runs, "--json").document["runs"]
    assert listed["state"] == "unfinished"
    assert streamgauge("show", "--out", runs, "--json").document["trials"] == []

    resumed = start("resume", "--out", runs, "--json", env={**os.environ, MARK: mark})
    _, err = resumed.communicate(timeout=120)
    stored = Store(runs).find("@last").trials()
    assert stored, err
    assert resumed.returncode == 0 or (resumed.returncode == 3 and all(disturbance(s.path, s.seconds) for s in stored))
    assert marked(mark) == {}
