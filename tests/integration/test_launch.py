"""Children are started in one place, are ready by a deadline or named, and never outlive the controller."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.model.units import SECOND
from streamgauge.processes import runtime_folder
from streamgauge.processes.launch import Launcher, LaunchError
from streamgauge.processes.spec import LineReady, ProcessSpec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guards adopt orphans on Linux alone")

FAMILY = """
import os, subprocess, sys, time
note = lambda name: open(os.path.join(sys.argv[1], name), "w").write(str(os.getpid()))
def stubborn():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    stubborn(); note("grandchild"); time.sleep(600)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        stubborn(); note("daemon"); time.sleep(600)
    os._exit(0)
note("child")
print("ready", flush=True)
time.sleep(600)
"""

CONTROLLER = """
import sys, json, pathlib, time
from streamgauge.processes.launch import Launcher
from streamgauge.processes.spec import LineReady, ProcessSpec
folder = pathlib.Path(sys.argv[1])
launcher = Launcher(pathlib.Path(sys.argv[3]))
spec = ProcessSpec("family", (sys.executable, "-c", sys.argv[2], str(folder)), ready=LineReady())
process = launcher.start(spec, folder)
(folder / "controller").write_text(json.dumps({"runtime": str(launcher.runtime), "guard": process.guard}))
print("up", flush=True)
time.sleep(600)
"""


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *arguments)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.01)
    return True


def family(folder: Path) -> list[int]:
    names = ("child", "grandchild", "daemon")
    assert within(10, lambda: all((folder / n).exists() and (folder / n).read_text() for n in names))
    return [int((folder / name).read_text()) for name in names]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path short enough for sockets, which pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="sg") as folder:
        yield Path(folder)


@pytest.fixture
def launcher(short: Path) -> Iterator[Launcher]:
    with Launcher(short) as made:
        yield made


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_controller_takes_children_grandchildren_and_daemons_with_it(
    tmp_path: Path, short: Path, number: int
) -> None:
    with subprocess.Popen(python(CONTROLLER, str(tmp_path), FAMILY, str(short)), stdout=subprocess.PIPE) as controller:
        assert controller.stdout is not None
        assert controller.stdout.readline() == b"up\n"
        known = json.loads((tmp_path / "controller").read_text())
        pids = [*family(tmp_path), known["guard"]]
        assert not any(gone(pid) for pid in pids)
        controller.send_signal(number)
        controller.wait()
    assert within(10, lambda: all(gone(pid) for pid in pids))
    assert within(5, lambda: not Path(known["runtime"]).exists())


@pytest.mark.parametrize("which", ["upper", "lower"])
def test_killing_a_guard_ends_the_child_and_all_that_it_started(tmp_path: Path, launcher: Launcher, which: str) -> None:
    process = launcher.start(ProcessSpec("family", python(FAMILY, str(tmp_path)), ready=LineReady()), tmp_path)
    pids = family(tmp_path)
    parent = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(process.guard if which == "upper" else parent, signal.SIGKILL)
    assert within(10, lambda: all(gone(pid) for pid in pids))
    assert within(10, lambda: not process.alive())


@pytest.mark.parametrize("how", ["stop", "child", "upper", "lower"])
def test_the_folder_of_a_child_is_removed_however_it_ends(tmp_path: Path, launcher: Launcher, how: str) -> None:
    temporary = tmp_path / "temporary"
    (temporary / "deep").mkdir(parents=True)
    child = ProcessSpec(
        "hoarder", python("import time; print('ready', flush=True); time.sleep(600)"), ready=LineReady()
    )
    process = launcher.start(replace(child, temporary=temporary), tmp_path)
    parent = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert (temporary / "deep").exists()
    if how == "stop":
        process.stop()
        assert not temporary.exists(), "who stops it need not wait any longer"
    else:
        os.kill({"child": process.pid, "upper": process.guard, "lower": parent}[how], signal.SIGKILL)
    assert within(10, lambda: not temporary.exists())


def test_stopping_ends_the_whole_family_and_leaves_no_runtime_folder(tmp_path: Path, short: Path) -> None:
    with Launcher(short) as launcher:
        child = ProcessSpec("family", python(FAMILY, str(tmp_path)), ready=LineReady(), stop_timeout=SECOND // 10)
        process = launcher.start(child, tmp_path)
        pids = family(tmp_path)
        process.stop()
        assert all(gone(pid) for pid in pids)
        assert process.exit_code() == -signal.SIGTERM
        assert launcher.runtime.exists()
    assert not launcher.runtime.exists()


def test_what_a_child_leaves_behind_at_its_own_end_is_ended_too(tmp_path: Path, launcher: Launcher) -> None:
    code = FAMILY.replace('print("ready", flush=True)\ntime.sleep(600)', "raise SystemExit(7)")
    process = launcher.start(ProcessSpec("short", python(code, str(tmp_path))), tmp_path)
    pids = family(tmp_path)
    assert process.wait(10) == 7
    assert within(5, lambda: all(gone(pid) for pid in pids))


def test_a_child_that_is_not_ready_in_time_is_named_with_its_deadline_and_log(
    tmp_path: Path, launcher: Launcher
) -> None:
    code = "import time; print('opening the books', flush=True); time.sleep(600)"
    child = ProcessSpec("driver 0", python(code), ready=LineReady(), deadline=SECOND // 2)
    with pytest.raises(LaunchError, match=r"driver 0 did not print ready within 500 ms; (.|\n)*opening the books"):
        launcher.start(child, tmp_path)


def test_a_child_that_ends_before_it_is_ready_is_named_with_its_exit_code(tmp_path: Path, launcher: Launcher) -> None:
    child = ProcessSpec("driver 1", python("raise SystemExit('no such workload')"), ready=LineReady())
    with pytest.raises(LaunchError, match=r"driver 1 .* exit code 1 before it was ready(.|\n)*no such workload"):
        launcher.start(child, tmp_path)


def test_a_program_that_is_not_there_is_reported_in_the_log(tmp_path: Path, launcher: Launcher) -> None:
    with pytest.raises(LaunchError, match="FileNotFoundError"):
        launcher.start(ProcessSpec("ghost", ("/no/such/program",), ready=LineReady()), tmp_path)


def test_a_secret_comes_through_standard_input_and_stands_nowhere_else(tmp_path: Path, launcher: Launcher) -> None:
    code = "import sys, time; print('ready', len(sys.stdin.read()), flush=True); time.sleep(600)"
    child = ProcessSpec("keeper", python(code), secret="-".join(["a", "well", "kept", "secret"]), ready=LineReady())
    process = launcher.start(child, tmp_path)
    assert process.tail()[-1] == "ready 18"
    assert "secret" not in repr(child)
    for pid in (process.pid, process.guard):
        for file in ("cmdline", "environ"):
            assert b"well-kept" not in Path(f"/proc/{pid}/{file}").read_bytes()


def test_a_child_runs_on_its_cores_with_its_environment_in_its_folder(tmp_path: Path, launcher: Launcher) -> None:
    core = max(os.sched_getaffinity(0))
    code = "import os; print('ready', os.sched_getaffinity(0), os.environ['ROLE'], os.getcwd(), flush=True)"
    child = ProcessSpec("sut", python(code), {"ROLE": "tested"}, (core,), LineReady(), working_folder=tmp_path)
    process = launcher.start(child, tmp_path)
    assert process.tail()[-1] == f"ready {{{core}}} tested {tmp_path}"
    assert process.cores == (core,)


def test_folders_of_dead_owners_are_swept_and_those_of_the_living_are_kept(short: Path) -> None:
    mine = runtime_folder.create(short)
    dead = mine.with_name("4194303-1-abcdef")
    reborn = mine.with_name(f"{os.getpid()}-1-abcdef")
    for folder in (dead, reborn):
        folder.mkdir()
    assert set(runtime_folder.remove_stale(short)) == {dead, reborn}
    assert mine.exists()
    assert mine.stat().st_mode & 0o777 == 0o700


def test_a_runtime_folder_that_others_can_read_is_refused(tmp_path: Path) -> None:
    home = tmp_path / f"streamgauge-{os.getuid()}"
    home.mkdir(mode=0o755)
    with pytest.raises(runtime_folder.RuntimeFolderError, match="accessible to others"):
        runtime_folder.create(tmp_path)


def test_a_runtime_folder_too_deep_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(runtime_folder.RuntimeFolderError, match="too long for the path of a socket"):
        runtime_folder.create(tmp_path / ("x" * 90))
