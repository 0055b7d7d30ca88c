"""Asking a Java for its version, and installing tools through the system's own package manager, without a question."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from streamgauge.install.packages import Manager, Tool, manager

_ANSWER_SECONDS = 20.0
_INSTALL_SECONDS = 900.0
_QUIET = ("env", "DEBIAN_FRONTEND=noninteractive")
"""Debian's packages ask questions unless they are told that nobody is there."""
_TAIL = 5

Found = TypeVar("Found")

Do = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a program to its end: its exit code, and what it printed."""


def ask_java(program: Path) -> str:
    """What ``java -version`` prints; nothing if it cannot be run."""
    code, said = _do([str(program), "-version"], _ANSWER_SECONDS)
    return said if code == 0 else ""


def _do(argv: Sequence[str], seconds: float = _INSTALL_SECONDS) -> tuple[int, str]:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    return done.returncode, done.stdout + done.stderr


def is_root() -> bool:
    """Whether we may write everywhere."""
    return os.geteuid() == 0


def rights(known: Manager, do: Do = _do, root: bool | None = None) -> tuple[str, ...] | None:
    """What to put before the manager's program so that it may install; None if somebody would have to be asked."""
    if not known.as_root or (is_root() if root is None else root):
        return ()
    if shutil.which("sudo") and do(["sudo", "-n", "true"])[0] == 0:
        return ("sudo", "-n")
    return None


def install(
    tool: Tool,
    find: Callable[[], Found | None],
    say: Callable[[str], object],
    known: Manager | None = None,
    do: Do = _do,
) -> Found | None:
    """Install a tool if that is possible without asking anybody: what is found then, or None with what was said."""
    known = known or manager()
    before = rights(known, do) if known else None
    if known is None or before is None:
        return None
    if known.refresh:
        do([*before, *_QUIET, known.program, *known.refresh])  # without it a fresh system knows no packages
    said = ""
    for package in known.packages[tool]:
        say(f"Installing {package} with {known.program} ...")
        code, said = do([*before, *_QUIET, known.program, *known.install, package])
        if code == 0 and (found := find()) is not None:
            return found
    say("\n".join([f"{known.program} could not install {tool.capitalize()}:", *said.splitlines()[-_TAIL:]]))
    return None
