"""What is left of a command that was ended: processes that have inherited its mark, wherever they are now."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from streamgauge.store.journal import read_rows

MARK = "STREAMGAUGE_TEST_MARK"
TIMEOUT = 10.0
"""Seconds by which everything must be gone."""


def marked(mark: str) -> dict[int, str]:
    """Live processes that have inherited the mark, with any parent, and what they run."""
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
    """Wait until it holds, at most so long; whether it does."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True


def await_or_kill(process: subprocess.Popen[str], seconds: float, holds: Callable[[], bool]) -> None:
    """Wait until it holds; a command that does not come to it is ended, and what it said is shown."""
    reached = within(seconds, lambda: holds() or process.poll() is not None) and process.poll() is None
    if not reached:
        process.kill()
    assert reached, process.communicate()


def seconds_of_load(runs: Path) -> int:
    """How many seconds a trial that grows has behind it."""
    journals = runs.glob("*/trials/*.partial/driver-0-seconds.arrows")
    return max((read_rows(journal.with_suffix("")).num_rows for journal in journals), default=0)
