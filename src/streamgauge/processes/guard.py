"""The process above a child, which ends it and all that it started when the controller has ended.

Run as a script by ``launch``, with only the standard library, so that it starts in a few milliseconds:
``python -I -S guard.py``. Its standard input is a pipe from the controller: first one line of JSON, the
order; then ``stop``, or the end of the file, which the kernel delivers also after kill -9.

There are two of them, one above the other, both subreapers: whatever daemonises below comes to them. If the
lower is killed, the upper still has everything below it; if the upper is killed, the lower sees its pipe end.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time
from typing import Any

Specification = dict[str, Any]

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
KILL_TIMEOUT = 5.0  # seconds that SIGKILL may take, and that the outer guard waits longer than the inner one

if LINUX:
    _prctl = ctypes.CDLL(None, use_errno=True).prctl


def report(**what: object) -> None:
    """Write to the controller; if it has ended, the line is dropped."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(what).encode() + b"\n")


def descendants(root: int) -> list[int]:
    """All live processes below ``root``. Without /proc: none, and the process group has to do."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc") if LINUX else ():  # noqa: PTH208 - pathlib costs a third of the start
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            if state != b"Z":
                parents[int(entry)] = int(parent)
    below, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return sorted(below - {root})


def signal_all(pids: list[int], group: int, number: int) -> None:
    """Send a signal to these processes, and to the group where there is no /proc."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
    if not LINUX and group:
        with contextlib.suppress(OSError):
            os.killpg(group, number)


class Guard:
    """Waits for the order to stop or the end of its main child; then leaves nothing behind."""

    def __init__(self, control: int, main: int, below: int | None) -> None:
        self.control, self.main, self.below = control, main, below
        self.code: int | None = None
        self.signalled = False
        self.wake, writer = os.pipe()
        os.set_blocking(writer, False)
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, *_: object) -> None:
        self.signalled = True

    def reap(self) -> None:
        """Collect the dead; remember how the main child ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.main:
                self.code = os.waitstatus_to_exitcode(status)

    def pause(self, seconds: float | None, control: bool) -> bytes | None:
        """Sleep until something happens. The data of the controller, b"" at its end, None without data."""
        watched = [self.wake, self.control] if control else [self.wake]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self.wake in ready:
            os.read(self.wake, 4096)
        return os.read(self.control, 4096) if self.control in ready else None

    def wait_for_reason(self) -> bool:
        """Until there is a reason to end. True if the controller has ended."""
        while True:
            self.reap()
            if self.code is not None or self.signalled:
                return False
            data = self.pause(None, control=True)
            if data is not None:
                return data == b""

    def stop_children(self, timeout: float) -> None:
        """SIGTERM to all below, or the order to the inner guard; after the timeout SIGKILL, until none is left."""
        own_pid = os.getpid()
        if self.code is not None:
            timeout = 0.0  # the child has ended: what it left behind gets no time
        elif self.below is not None:
            os.close(self.below)
            timeout += KILL_TIMEOUT
        else:
            signal_all(descendants(own_pid), self.main, signal.SIGTERM)
            signal_all(descendants(own_pid), self.main, signal.SIGCONT)
        ends = time.monotonic() + timeout
        while self._left(own_pid) and time.monotonic() < ends:
            self.pause(0.02, control=False)
        ends = time.monotonic() + KILL_TIMEOUT
        while self._left(own_pid) and time.monotonic() < ends:
            signal_all(descendants(own_pid), self.main, signal.SIGKILL)
            self.pause(0.005, control=False)

    def _left(self, own_pid: int) -> bool:
        self.reap()
        return bool(descendants(own_pid)) or (self.main > 0 and self.code is None)


def become_subreaper() -> None:
    """Become the parent of all orphans below."""
    if LINUX:
        _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def pin(cores: list[int]) -> list[int]:
    """Bind to these cores; what came of it (nothing where the system cannot)."""
    if not cores or not hasattr(os, "sched_setaffinity"):
        return []
    os.sched_setaffinity(0, cores)
    return sorted(os.sched_getaffinity(0))


def exec_child(specification: Specification, parent: int, stdin: int) -> None:
    """In the forked process: turn into the child."""
    os.setsid()
    if LINUX:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    os.dup2(stdin, 0)
    os.dup2(2, 1)
    pin(specification["cores"])
    for key, value in specification["env"].items():
        os.putenv(key, value)
    if specification["folder"]:
        os.chdir(str(specification["folder"]))
    argv = [str(word) for word in specification["argv"]]
    os.execvp(argv[0], argv)  # noqa: S606 - no shell is the point


def secret_pipe(secret: str) -> int:
    """A file descriptor that yields the secret once; /dev/null without one.

    A pipe holds 64 KiB and has no reader yet, so a separate process writes it.
    """
    if not secret:
        return os.open(os.devnull, os.O_RDONLY)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        with contextlib.suppress(OSError), os.fdopen(writer, "wb") as file:  # the child may end without reading
            file.write(secret.encode())
        os._exit(0)
    os.close(writer)
    return reader


def remove_folder(folder: str) -> None:
    """Remove a folder that is no longer needed."""
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


def inner_guard(specification: Specification, control: int) -> None:
    """The guard right above the child."""
    os.setsid()
    become_subreaper()
    stdin, own_pid = secret_pipe(str(specification.pop("secret"))), os.getpid()
    pid = os.fork()
    if pid == 0:
        exec_child(specification, own_pid, stdin)
    os.close(stdin)
    guard = Guard(control, pid, None)
    report(started=pid)
    guard.wait_for_reason()
    guard.stop_children(float(specification["stop_timeout"]))
    remove_folder(specification["temporary"])
    report(exited=guard.code)


def outer_guard(specification: Specification) -> None:
    """The guard that holds the controller's pipe. Without a child it only keeps the runtime folder."""
    become_subreaper()
    os.dup2(os.open(specification["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), 2)
    pid, below = 0, None
    if specification["argv"]:
        reader, below = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(below)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # only the upper process has the controller's pipe
            inner_guard(specification, reader)
            return
        os.close(reader)
    specification.pop("secret", None)
    guard = Guard(0, pid, below)
    orphaned = guard.wait_for_reason()
    guard.stop_children(float(specification["stop_timeout"]))
    remove_folder(specification["temporary"])  # again: the guard below may have been killed
    if orphaned:
        remove_folder(specification["runtime"])


def read_specification() -> Specification:
    """The first line of the controller's pipe."""
    text = b""
    while not text.endswith(b"\n"):
        got = os.read(0, 1 << 16)
        if not got:
            return {}
        text += got
    specification: Specification = json.loads(text)
    return specification


if __name__ == "__main__":
    received = read_specification()
    if received:
        outer_guard(received)
