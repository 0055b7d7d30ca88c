"""A test in real time that fails while the host is disturbed is repeated, and then called spoiled instead of failed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from host_noise import PART_OF_TEST, HostNoise
from real_trial import PLACEMENT, hogs

from streamgauge.run.monitor.monitor import available

HERE = Path(__file__).parent
TESTS = """
from pathlib import Path

import pytest

pytestmark = pytest.mark.realtime

def attempts(name):
    file = Path(__file__).with_name(name)
    file.write_text(file.read_text() + "x" if file.exists() else "x")
    return len(file.read_text())

def test_that_passes():
    assert attempts("passes") == 1

def test_that_fails_at_first():
    assert attempts("at-first") == 2

def test_that_fails_always():
    assert attempts("always") == 0, "no luck"
"""
NOISE = """
class HostNoise:
    disturbance = "{sentence}"
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
"""


def run(folder: Path, sentence: str) -> tuple[int, str]:
    """Run three tests in real time on a host of which this is said."""
    (folder / "conftest.py").write_text((HERE.parent / "conftest.py").read_text())
    (folder / "host_noise.py").write_text(NOISE.format(sentence=sentence))
    (folder / "test_three.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = realtime: real\npythonpath = .\n")
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder)]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout


def test_on_a_disturbed_host_a_failure_is_repeated_twice_and_then_spoiled(tmp_path: Path) -> None:
    code, said = run(tmp_path, "the hypervisor took 12% of a core")
    assert "2 passed, 1 spoiled" in said, said
    assert len((tmp_path / "always").read_text()) == 3
    assert "judged after 1 repetitions: test_three.py::test_that_fails_at_first" in said
    assert "spoiled 2 repetitions: test_three.py::test_that_fails_always: the hypervisor took 12% of a core" in said
    assert "no luck" in said, "what the test itself said is shown"
    assert code == 1, "one of three is more than 5 %"


def test_on_a_quiet_host_a_failure_is_a_failure(tmp_path: Path) -> None:
    code, said = run(tmp_path, "")
    assert code == 1
    assert "2 failed, 1 passed" in said, said


@pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="processes are found through /proc")
def test_another_process_on_a_core_is_noticed() -> None:
    with hogs(PLACEMENT.sut[0]):
        PART_OF_TEST.clear()
        with HostNoise() as noise:
            time.sleep(2.2)
    assert max(second.others for second in noise.seconds) > 0.2
    assert noise.disturbance
