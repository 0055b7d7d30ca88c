"""A specification of any size reaches a child through its standard input: a pipe takes 64 KiB without a reader."""

import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.model.units import SECOND
from streamgauge.processes.launch import Launcher
from streamgauge.processes.spec import LineReady, ProcessSpec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guards adopt orphans only on Linux")

READ = """
import hashlib, sys, time
time.sleep(float(sys.argv[1]))
text = sys.stdin.buffer.read()
print("ready", len(text), hashlib.sha256(text).hexdigest(), flush=True)
time.sleep(600)
"""
READY_FIRST = """
import hashlib, sys, time
print("ready", flush=True)
time.sleep(0.3)
text = sys.stdin.buffer.read()
print("got", len(text), hashlib.sha256(text).hexdigest(), flush=True)
"""
NEVER_READ = "import time; print('ready', flush=True); time.sleep({seconds})"


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as made:
        yield made


def child(code: str, size: int, *arguments: str) -> ProcessSpec:
    """A child with a specification of this size."""
    argv = (sys.executable, "-c", code, *arguments)
    return ProcessSpec("large", argv, ready=LineReady(), secret=text_of(size), deadline=20 * SECOND)


def text_of(size: int) -> str:
    """A text in which no part is like another, so that a loss anywhere changes its digest."""
    numbers = "".join(f"{number:08x}\n" for number in range(size // 9 + 1))
    return numbers[:size]


def digest(size: int) -> str:
    return f"{size} {hashlib.sha256(text_of(size).encode()).hexdigest()}"


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 3_000_000])
@pytest.mark.parametrize("delay", ["0", "0.2"])
def test_a_specification_of_any_size_arrives_whole(launcher: Launcher, tmp_path: Path, size: int, delay: str) -> None:
    process = launcher.start(child(READ, size, delay), tmp_path)
    assert f"ready {digest(size)}" in process.tail()


def test_a_child_may_be_ready_before_it_has_read_its_specification(launcher: Launcher, tmp_path: Path) -> None:
    process = launcher.start(child(READY_FIRST, 1_000_000), tmp_path)
    assert process.wait(20) == 0
    assert f"got {digest(1_000_000)}" in process.tail()


def test_a_child_that_ends_without_reading_its_specification_has_ended(launcher: Launcher, tmp_path: Path) -> None:
    process = launcher.start(child(NEVER_READ.format(seconds=0.3), 1_000_000), tmp_path)
    assert process.wait(20) == 0


def test_a_child_that_never_reads_its_specification_can_be_stopped(launcher: Launcher, tmp_path: Path) -> None:
    process = launcher.start(child(NEVER_READ.format(seconds=600), 1_000_000), tmp_path)
    assert process.alive()
    began = time.monotonic()
    process.stop()
    assert not process.alive()
    assert time.monotonic() - began < 10
