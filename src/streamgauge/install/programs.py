"""Run Java for its version, and install programs with the system's package manager if no password is needed."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from streamgauge.install.packages import PackageManager, Tool, package_manager

_JAVA_TIMEOUT = 20.0
_INSTALL_TIMEOUT = 900.0
_NONINTERACTIVE = ("env", "DEBIAN_FRONTEND=noninteractive")
"""Without it the packages of Debian ask questions."""
_MAX_LINES = 5

Found = TypeVar("Found")

RunCommand = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a program to its end: its exit code, and what it printed."""


def run_java(program: Path) -> str:
    """What ``java -version`` prints; empty if it cannot be run."""
    code, printed = _run([str(program), "-version"], _JAVA_TIMEOUT)
    return printed if code == 0 else ""


def _run(argv: Sequence[str], seconds: float = _INSTALL_TIMEOUT) -> tuple[int, str]:
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
    """Whether this process runs as root."""
    return os.geteuid() == 0


def sudo_prefix(known: PackageManager, run: RunCommand = _run, root: bool | None = None) -> tuple[str, ...] | None:
    """What must precede the package manager's program so that it may install; None if it needs a password."""
    if not known.as_root or (is_root() if root is None else root):
        return ()
    if shutil.which("sudo") and run(["sudo", "-n", "true"])[0] == 0:
        return ("sudo", "-n")
    return None


def install(
    tool: Tool,
    find: Callable[[], Found | None],
    say: Callable[[str], object],
    known: PackageManager | None = None,
    run: RunCommand = _run,
) -> Found | None:
    """Install a tool if no password is needed, and return what ``find`` then finds; None if that was not possible."""
    known = known or package_manager()
    prefix = sudo_prefix(known, run) if known else None
    if known is None or prefix is None:
        return None
    if known.refresh:
        run([*prefix, *_NONINTERACTIVE, known.program, *known.refresh])  # a new system has no list of packages
    printed = ""
    for package in known.packages[tool]:
        say(f"Installing {package} with {known.program} ...")
        code, printed = run([*prefix, *_NONINTERACTIVE, known.program, *known.install, package])
        if code == 0 and (found := find()) is not None:
            return found
    say("\n".join([f"{known.program} could not install {tool.capitalize()}:", *printed.splitlines()[-_MAX_LINES:]]))
    return None
