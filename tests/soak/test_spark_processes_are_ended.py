"""Ctrl-C, SIGTERM and kill -9 in the middle of a Spark trial leave no process and no stray file."""

import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_session import start, streamgauge
from marked_processes import MARK, TIMEOUT, await_or_kill, marked, seconds_of_load, within
from real_run import calibrated
from real_trial import COLLECTOR, DRIVER, PLACEMENT
from spark_trial import TIMEOUT as SPARK_TIMEOUT

from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]

LOADS = {"starting": "20k/s, 100k/s", "keeping up": "20k/s, 100k/s", "behind": "600k/s, 800k/s"}
"""A moment of the quickstart, and the loads at which it comes to it without a warm-up: a cold JVM falls behind."""
SECONDS = {"keeping up": 1, "behind": 8}
"""How many seconds of load the trial then has behind it."""
SPARK, JVM, WORKERS = (
    "streamgauge.engines.spark.session_process",
    "org.apache.spark.deploy.SparkSubmit",
    "pyspark.daemon",
)
SHARED = (Path("/tmp"), Path("/dev/shm"))  # noqa: S108
OWN = ("streamgauge", "spark", "blockmgr", "lib", "snappy", "pyspark", "artifacts")
"""How the names of files begin that streamgauge, Spark or its libraries write outside the run."""


def strays() -> set[Path]:
    """Files that this run may have written into the folders that all programs share."""
    return {path for folder in SHARED for path in folder.iterdir() if path.name.startswith(OWN)}


def ctrl_c(process: subprocess.Popen[str]) -> None:
    """What a terminal does: SIGINT to the whole group."""
    os.killpg(process.pid, signal.SIGINT)


@pytest.mark.parametrize("moment", [*LOADS])
@pytest.mark.parametrize(
    ("end", "code"),
    [(ctrl_c, 130), (subprocess.Popen.terminate, 130), (subprocess.Popen.kill, -signal.SIGKILL)],
    ids=["ctrl-c", "terminate", "kill"],
)
def test_nothing_of_spark_outlives_the_command(
    end: Callable[[subprocess.Popen[str]], None],
    code: int,
    moment: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs, where, temporary, mark = tmp_path / "runs", tmp_path / "cwd", tmp_path / "tmp", secrets.token_hex(8)
    for folder in (where, temporary):
        folder.mkdir()
    before = strays()
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        places = {"XDG_RUNTIME_DIR": short, "TMPDIR": str(temporary), "HOME": str(where), MARK: mark}
        sets = ("--set", f"load.between=[{LOADS[moment]}]", "--set", "engine.warm_limit=0s")
        words = ("run", "quickstart", *sets, "--out", calibrated(runs))
        process = start(*words, env={**os.environ, **places}, cwd=where, group=0)
        wanted = (JVM,) if moment == "starting" else (SPARK, JVM, WORKERS, DRIVER, COLLECTOR, "guard.py")

        def there() -> bool:
            living = " ".join(marked(mark).values())
            return all(role in living for role in wanted) and (
                moment == "starting" or seconds_of_load(runs) >= SECONDS[moment]
            )

        await_or_kill(process, SPARK_TIMEOUT, there)
        end(process)
        ended = time.monotonic()
        assert within(TIMEOUT, lambda: not marked(mark)), marked(mark)
        with capsys.disabled():
            print(f"\n{end.__name__}, Spark {moment}: nothing is alive after {time.monotonic() - ended:.1f} s")
        _, err = process.communicate()
        assert process.returncode == code, err
        assert "Traceback" not in err
        assert within(1, lambda: not list(Path(short).glob("*/*"))), list(Path(short).rglob("*"))
    assert list(where.iterdir()) == list(temporary.iterdir()) == []
    assert strays() == before

    (session,) = runs.glob("*/sessions/*")
    if code == 130:
        assert not (session / "tmp").exists(), "its temporary files"
    assert streamgauge("clean", "--yes", "--out", runs).code == 0
    assert not (session / "tmp").exists()
    assert not list(runs.rglob("*.sock"))
    assert not list(runs.glob("*/trials/*"))
    assert (session / "spark.log").exists(), "the log shows why it ended"
