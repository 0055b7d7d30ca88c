"""The one place that starts children. Each runs under a guard (guard.py), so that it dies with us.

Children have their own session, their cores, their log in the trial's folder, and a deadline by which
they must be ready. What they need to keep secret comes through their standard input.
"""

import contextlib
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from streamgauge.model.units import SECOND, format_duration
from streamgauge.processes import runtime_folder
from streamgauge.processes.spec import CallReady, Child, FileReady, LaunchError, LineReady, PortReady, Readiness

__all__ = ["LaunchError", "Launcher", "Process"]

_GUARD = Path(__file__).with_name("guard.py")
_LOOK_EVERY = 0.01
_KILL_ALLOWANCE = 10.0
_TAIL_BYTES = 1 << 16
_LAST = 200
"""Lines of the log of a child that did not become ready: a trace, and what was said before it."""


class Process:
    """A child that was started, seen through its guard. Satisfies ``transport.child.Running``."""

    def __init__(self, child: Child, log: Path, runtime_folder: Path | None) -> None:
        self.name, self.cores, self.log, self.grace = child.name, child.cores, log, child.grace
        order = {
            "argv": child.argv,
            "env": dict(child.env),
            "cores": child.cores,
            "log": str(log),
            "grace": child.grace / SECOND,
            "secret": child.secret,
            "folder": str(child.folder) if child.folder else "",
            "runtime": str(runtime_folder) if runtime_folder else "",
            "scratch": str(child.scratch) if child.scratch else "",
        }
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._said = b""
        self._over = False
        self._pid: int | None = None
        self._code: int | None = None
        assert self._popen.stdin is not None
        self._popen.stdin.write(json.dumps(order).encode() + b"\n")

    @property
    def guard(self) -> int:
        """The process above it: all that the child ever starts is a descendant of this one."""
        return self._popen.pid

    @property
    def pid(self) -> int:
        """The child's own process id; waits for the guard to say it."""
        while self._pid is None and not self._over:
            self._listen(1.0)
        if self._pid is None:
            raise LaunchError(f"{self.name} was not started; its supervisor reported: {' / '.join(self.tail())}")
        return self._pid

    @property
    def pinned(self) -> tuple[int, ...]:
        """The cores it is bound to; empty where the system cannot pin (macOS), and said so in the report."""
        return self.cores if hasattr(os, "sched_setaffinity") else ()

    def _listen(self, seconds: float = 0.0) -> None:
        """Take in what the guard has said."""
        out = self._popen.stdout
        assert out is not None
        while not self._over and select.select([out], [], [], seconds)[0]:
            got = os.read(out.fileno(), 4096)
            self._over = not got
            self._said += got
            *lines, self._said = self._said.split(b"\n")
            for line in lines:
                told: dict[str, Any] = json.loads(line)
                self._pid = told.get("started", self._pid)
                if "exited" in told:
                    self._code = told["exited"]
            seconds = 0.0
        if self._over:
            self._popen.wait()

    def alive(self) -> bool:
        """Whether the child runs."""
        return self.exit_code() is None

    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it (−9 also when its guard was killed)."""
        self._listen()
        if self._code is None and self._over:
            self._code = -9
        return self._code

    def wait(self, seconds: float) -> int | None:
        """Wait until it ended, at most so long; its exit code, or None."""
        ends = time.monotonic() + seconds
        while self.exit_code() is None and (left := ends - time.monotonic()) > 0:
            self._listen(min(left, 0.2))
        return self._code

    def tail(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
                text = file.read().decode(errors="replace")
        except OSError:  # it was never written, or cannot be read
            return ()
        return tuple(text.splitlines()[-lines:])

    def request_stop(self) -> None:
        """Tell the guard to end it, without waiting."""
        pipe = self._popen.stdin
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(b"stop\n")

    def stop(self) -> None:
        """SIGTERM, its grace, SIGKILL, to it and all that it started; returns when they are gone."""
        self.request_stop()
        ends = time.monotonic() + self.grace / SECOND + _KILL_ALLOWANCE
        while not self._over and (left := ends - time.monotonic()) > 0:
            self._listen(min(left, 0.2))
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        if not self._over:
            raise LaunchError(f"{self.name} (process {self._pid}) could not be ended: kill -9 had no effect on it")


class Launcher:
    """Starts children and ends them all. A context manager: what it started is gone when it is left."""

    def __init__(self, preferred: Path | None = None) -> None:
        """``preferred`` is where the runtime folder goes, normally $XDG_RUNTIME_DIR as the command line read it."""
        self.runtime = runtime_folder.make(preferred)
        self._running: list[Process] = []
        # A guard without a child: it removes the runtime folder if we are killed while no child runs.
        self._keeper = Process(Child("runtime folder", ()), Path(os.devnull), self.runtime)

    def start(self, child: Child, logs: Path) -> Process:
        """Start it, with its log in the folder ``logs``, and wait until it is ready."""
        slug = re.sub(r"[^A-Za-z0-9]+", "-", child.name).strip("-")
        process = Process(child, logs / f"{slug}.log", self.runtime)
        self._running = [p for p in self._running if p.alive()] + [process]
        try:
            self._await(process, child)
        except BaseException:
            process.stop()
            raise
        return process

    def _await(self, process: Process, child: Child) -> None:
        pid = process.pid
        ends = time.monotonic() + child.deadline / SECOND
        while not _ready(child.ready, process):
            code = process.exit_code()
            if code is not None:
                said = f"{child.name} (process {pid}) {_ended(code)} before it was ready"
                raise LaunchError(said if process.tail() else f"{said}; its log is empty", process.tail(_LAST))
            if time.monotonic() > ends:
                said = f"{child.name} did not {child.ready.text} within {format_duration(child.deadline)}"
                raise LaunchError(said if process.tail() else f"{said}; its log is empty", process.tail(_LAST))
            process._listen(_LOOK_EVERY)

    def close(self) -> None:
        """End all children, side by side, and remove the runtime folder."""
        for process in self._running:
            process.request_stop()
        try:
            for process in [*self._running, self._keeper]:
                process.stop()
        finally:
            self._running = []
            runtime_folder.remove(self.runtime)

    def __enter__(self) -> "Launcher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ready(ready: Readiness, process: Process) -> bool:
    match ready:
        case FileReady(path):
            return path.exists()
        case LineReady(words):
            return any(line.startswith(words) for line in process.tail(10_000))
        case PortReady(port, host):
            try:
                socket.create_connection((host, port), timeout=0.5).close()
            except OSError:
                return False
            return True
        case CallReady(ask):
            return ask()
        case _:
            return True


def _ended(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
