"""Writes one run again and again, killed before its first step in the file system, its second, and so on.

``python store_steps.py ROOT`` says of each run what was finished: ``STEP run ID``, ``STEP trial 1``, …
Each run is written by a separate process, forked from this one so that it starts immediately.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import store_child as child

from streamgauge.model.finding import Finding

# What Python tells of before it does it. Every file is opened, made visible or removed through one of these.
STEPS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate"}


def die_before(step: int) -> None:
    """Kill this process when it is about to take that step."""
    left = step

    def watch(event: str, details: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def say(step: int, text: str) -> None:
    os.write(1, f"{step} {text}\n".encode())


def write_run(root: Path, step: int) -> None:
    die_before(step)
    run = child.open_run(root, f"{step:04x}")
    say(step, f"run {run.id}")
    for number in (1, 2):
        child.write_one(run, number)
        say(step, f"trial {number}")
    for spent in (1, 2):
        run.write_conclusion([Finding("", "sim", "load", "rate", "unfinished", None, None, "")], "", 0, spent)
        say(step, f"concluded {spent}")


def main(root: Path) -> None:
    with TemporaryDirectory() as scratch:  # what is built once per process is built here, before the forks
        child.write_one(child.open_run(Path(scratch), "warm"), 1)
    root.mkdir()
    for step in count(1):
        process = os.fork()
        if not process:
            write_run(root, step)
            os._exit(0)
        if os.waitpid(process, 0)[1] == 0:
            return  # it came to its end before that step


if __name__ == "__main__":
    main(Path(sys.argv[1]))
