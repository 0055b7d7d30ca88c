"""The one place that starts children. Each runs under a guard (guard.py), so that it ends with this process.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from streamgauge.model.units import SECOND, duration_text
from streamgauge.processes import runtime_folder
from streamgauge.processes.clock import wait_until
from streamgauge.processes.placement import pin
from streamgauge.processes.spec import (
    LaunchError,
    LineReady,
    PortReady,
    ProcessSpec,
    Readiness,
    RunningProcess,
)

__all__ = ["LaunchError", "Launcher", "LocalHost", "Process"]

_GUARD = Path(__file__).with_name("guard.py")
_LOOK_EVERY = 0.01
_KILL_ALLOWANCE = 10.0
_TAIL_BYTES = 1 << 16
_LAST = 200
"""Lines of the log of a child that did not become ready: a trace, and the lines before it."""


class Process:
    """A child that was started, seen through its guard."""

    def __init__(self, spec: ProcessSpec, log: Path, runtime_folder: Path | None) -> None:
        self.name, self.cores, self.log, self.stop_timeout = spec.name, spec.cores, log, spec.stop_timeout
        order = {
            "argv": spec.argv,
            "env": dict(spec.env),
            "cores": spec.cores,
            "log": str(log),
            "stop_timeout": spec.stop_timeout / SECOND,
            "secret": spec.secret,
            "folder": str(spec.working_folder) if spec.working_folder else "",
            "runtime": str(runtime_folder) if runtime_folder else "",
            "temporary": str(spec.temporary) if spec.temporary else "",
        }
        self._popen = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._received = b""
        self._closed = False
        self._pid: int | None = None
        self._code: int | None = None
        self._send(json.dumps(order).encode() + b"\n")

    def _send(self, data: bytes) -> None:
        """Write all of it to the guard: a pipe takes 64 KiB at a time."""
        pipe = self._popen.stdin
        assert pipe is not None
        while data:
            data = data[pipe.write(data) or 0 :]

    @property
    def guard(self) -> int:
        """The process above it: all that the child ever starts is a descendant of this one."""
        return self._popen.pid

    @property
    def pid(self) -> int:
        """The child's own process id; waits for the guard to report it."""
        while self._pid is None and not self._closed:
            self._listen(1.0)
        if self._pid is None:
            raise LaunchError(f"{self.name} was not started; its supervisor reported: {' / '.join(self.tail())}")
        return self._pid

    def _listen(self, seconds: float = 0.0) -> None:
        """Read what the guard has written."""
        out = self._popen.stdout
        assert out is not None
        while not self._closed and select.select([out], [], [], seconds)[0]:
            got = os.read(out.fileno(), 4096)
            self._closed = not got
            self._received += got
            *lines, self._received = self._received.split(b"\n")
            for line in lines:
                notification: dict[str, Any] = json.loads(line)
                self._pid = notification.get("started", self._pid)
                if "exited" in notification:
                    self._code = notification["exited"]
            seconds = 0.0
        if self._closed:
            self._popen.wait()

    def alive(self) -> bool:
        """Whether the child runs."""
        return self.exit_code() is None

    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it (−9 also when its guard was killed)."""
        self._listen()
        if self._code is None and self._closed:
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
        """Request its end from the guard, without waiting."""
        pipe = self._popen.stdin
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(b"stop\n")

    def stop(self) -> None:
        """SIGTERM, its timeout, SIGKILL, to it and all that it started; returns when they have ended."""
        self.request_stop()
        ends = time.monotonic() + self.stop_timeout / SECOND + _KILL_ALLOWANCE
        while not self._closed and (left := ends - time.monotonic()) > 0:
            self._listen(min(left, 0.2))
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        if not self._closed:
            raise LaunchError(f"{self.name} (process {self._pid}) could not be ended: kill -9 had no effect on it")


class Launcher:
    """Starts children and ends them all. A context manager: it ends what it started when it is left."""

    def __init__(self, preferred: Path | None = None) -> None:
        """``preferred`` is where the runtime folder goes, normally $XDG_RUNTIME_DIR as the command line read it."""
        self.runtime = runtime_folder.create(preferred)
        self._running: list[Process] = []
        # A guard without a child: it removes the runtime folder if this process is killed while no child runs.
        self._folder_guard = Process(ProcessSpec("runtime folder", ()), Path(os.devnull), self.runtime)

    def start(self, spec: ProcessSpec, logs: Path) -> Process:
        """Start it, with its log in the folder ``logs``, and wait until it is ready."""
        slug = re.sub(r"[^A-Za-z0-9]+", "-", spec.name).strip("-")
        process = Process(spec, logs / f"{slug}.log", self.runtime)
        self._running = [p for p in self._running if p.alive()] + [process]
        try:
            self._await(process, spec)
        except BaseException:
            process.stop()
            raise
        return process

    def _await(self, process: Process, spec: ProcessSpec) -> None:
        pid = process.pid
        ends = time.monotonic() + spec.deadline / SECOND
        while not _ready(spec.ready, process):
            code = process.exit_code()
            if code is not None:
                message = f"{spec.name} (process {pid}) {_ended(code)} before it was ready"
                raise LaunchError(message if process.tail() else f"{message}; its log is empty", process.tail(_LAST))
            if time.monotonic() > ends:
                message = f"{spec.name} did not {spec.ready.text} within {duration_text(spec.deadline)}"
                raise LaunchError(message if process.tail() else f"{message}; its log is empty", process.tail(_LAST))
            process._listen(_LOOK_EVERY)

    def close(self) -> None:
        """End all children, side by side, and remove the runtime folder."""
        for process in self._running:
            process.request_stop()
        try:
            for process in [*self._running, self._folder_guard]:
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


@dataclass(frozen=True, slots=True)
class LocalHost:
    """The host of this machine: it starts processes through a launcher."""

    launcher: Launcher
    logs: Path
    cache: Path
    cores: tuple[int, ...] = ()
    boot_cores: tuple[int, ...] = ()
    message: Callable[[str], object] = lambda _: None
    transport: str = ""

    @property
    def runtime(self) -> Path:
        """The folder for sockets and shared memory, removed with the run."""
        return self.launcher.runtime

    def start(self, process: ProcessSpec, logs: Path | None = None) -> Process:
        """Start it and wait until it is ready."""
        folder = logs or self.logs
        folder.mkdir(parents=True, exist_ok=True)
        return self.launcher.start(process, folder)

    def pin(self, processes: Sequence[RunningProcess]) -> None:
        """Bind processes, and all that they started, to the cores."""
        pin([process.guard for process in processes], self.cores)

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until it holds, at most so long; whether it does."""
        return wait_until(holds, seconds)

    def monotonic_ns(self) -> int:
        """The clock that everything is measured with."""
        return time.monotonic_ns()

    def say(self, message: str) -> None:
        """Show the user what takes time."""
        self.message(message)


def _ready(ready: Readiness, process: Process) -> bool:
    match ready:
        case LineReady(prefix):
            return any(line.startswith(prefix) for line in process.tail(10_000))
        case PortReady(port, host):
            try:
                socket.create_connection((host, port), timeout=0.5).close()
            except OSError:
                return False
            return True
        case _:
            return True


def _ended(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
