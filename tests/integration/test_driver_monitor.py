"""The monitor on a real child: its CPU, its threads, and another process on its core."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from streamgauge.model.units import SECOND
from streamgauge.processes.launch import Launcher
from streamgauge.processes.spec import LineReady, ProcessSpec
from streamgauge.run.monitor.monitor import Monitor, available
from streamgauge.run.monitor.usage import Role
from streamgauge.store.journal import read_rows

pytestmark = pytest.mark.skipif(not available(), reason="only Linux can be watched")
SPIN = "print('ready', flush=True)\nwhile True: pass"
SPIN_BELOW = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {SPIN!r}])"


def test_a_busy_grandchild_counts_for_the_role_and_another_process_on_its_core_as_foreign(tmp_path: Path) -> None:
    core = max(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        spec = ProcessSpec("sut", (sys.executable, "-c", SPIN_BELOW), cores=(core,), ready=LineReady())
        sut = launcher.start(spec, tmp_path)
        stranger = subprocess.Popen((sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{core}}})\n{SPIN}"))
        try:
            monitor = Monitor((Role("sut", (sut.guard,), (core,)),), tmp_path)
            monitor.start(time.monotonic_ns())
            time.sleep(2.2)
            monitor.stop()
        finally:
            stranger.kill()
            stranger.wait()
    roles = read_rows(tmp_path / "monitor-roles").to_pydict()
    span, used = roles["time"][-1] / 1000, sum(roles["cpu_us"])
    assert len(roles["time"]) >= 3
    assert 0.1 * span < used < 0.75 * span, "the two share a core"
    assert set(roles["processes"]) == {4}, "two guards, the child and its child"
    assert sum(roles["run_delay_ns"]) > 0.1 * roles["time"][-1], "it waited for the other process"
    cores = read_rows(tmp_path / "monitor-cores").to_pylist()
    mine = [row for row in cores if row["core"] == core]
    assert sum(row["foreign_us"] for row in mine) > 0.2 * span
    assert abs(sum(row["ours_us"] for row in mine) - used) < 0.1 * SECOND / 1000
    assert read_rows(tmp_path / "monitor-machine").num_rows == len(mine)
