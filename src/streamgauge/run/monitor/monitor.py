"""The monitor: once a second, what every role used, who else was on its cores, and how the machine was pressed.

A thread of the controller: it only reads /proc, and a late snapshot is no harm, because every row has its time.
Network bytes are those of the machine, since Linux does not count them by process; sockets of the Unix
family are in ``rchar`` and ``wchar`` only as far as they are read and written like files.
"""

import os
import threading
from pathlib import Path

import pyarrow as pa

from streamgauge.model.units import SECOND
from streamgauge.processes import procfs
from streamgauge.processes.clock import Clock
from streamgauge.run.monitor.usage import Role, Row, Snapshot, Thread, core_rows, machine_row, members, role_rows
from streamgauge.store.journal import CORES, MACHINE, ROLES, Journal

_PROC = Path("/proc")


def available() -> bool:
    """Whether this system can be watched: Linux can, macOS cannot."""
    return (_PROC / "self" / "stat").exists() and bool(procfs.parse_cores(_read(_PROC / "stat")))


def _read(path: Path) -> str:
    """A file of /proc; nothing if its process has ended or it may not be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _processes() -> dict[int, procfs.Stat]:
    found = {}
    for name in os.listdir(_PROC):  # noqa: PTH208 - a thousand Paths a second are for nothing
        text = _read(_PROC / name / "stat") if name.isdigit() else ""
        if text:
            found[int(name)] = procfs.parse_stat(text)
    return found


def _threads(pid: int) -> dict[tuple[int, int], Thread]:
    found = {}
    folder = _PROC / str(pid) / "task"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return {}
    for name in names:
        stat, times = _read(folder / name / "stat"), _read(folder / name / "schedstat")
        if stat and times:
            found[pid, int(name)] = Thread(*procfs.parse_schedstat(times), procfs.parse_stat(stat).core)
    return found


def look(roles: tuple[Role, ...], time_ns: int) -> Snapshot:
    """A snapshot of /proc: all processes, and the threads and bytes of the measured ones."""
    processes = _processes()
    ours = frozenset[int]().union(*(members(processes, role) for role in roles))
    threads: dict[tuple[int, int], Thread] = {}
    for pid in ours:
        threads |= _threads(pid)
    return Snapshot(
        time_ns=time_ns,
        processes=processes,
        threads=threads,
        io={pid: procfs.parse_io(_read(_PROC / str(pid) / "io")) for pid in ours},
        cores=procfs.parse_cores(_read(_PROC / "stat")),
        pressure={w: procfs.parse_pressure(_read(_PROC / "pressure" / w)) for w in ("cpu", "memory", "io")},
        net=procfs.parse_net(_read(_PROC / "net" / "dev")),
    )


class Monitor:
    """Writes the journals ``monitor-roles``, ``monitor-cores`` and ``monitor-machine`` into the trial's folder."""

    def __init__(self, roles: tuple[Role, ...], folder: Path, clock: Clock | None = None) -> None:
        self.roles, self.clock = roles, clock or Clock()
        names = {"roles": ROLES, "cores": CORES, "machine": MACHINE}
        self._journals = {name: Journal(folder / f"monitor-{name}", schema) for name, schema in names.items()}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._start_ns = 0
        self.error: Exception | None = None
        """What ended it before it was stopped."""

    def start(self, monotonic_ns: int) -> None:
        """Take a snapshot at the start of the load and at the end of every second after it. Times are since then."""
        self._start_ns = monotonic_ns
        self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
        self._thread.start()

    def _elapsed(self) -> int:
        return self.clock.monotonic_ns() - self._start_ns

    def _run(self) -> None:
        try:
            self._look_on()
        except (OSError, ValueError, LookupError, pa.ArrowException) as error:  # anything else is found by its gap
            self.error = error

    def _look_on(self) -> None:
        second = 0
        self._stop.wait(max(0, -self._elapsed()) / SECOND)
        before = look(self.roles, self._elapsed())
        while not self._stop.wait(max(0, (second + 1) * SECOND - self._elapsed()) / SECOND):
            before = self._write(before)
            second = max(second + 1, self._elapsed() // SECOND)
        if self._elapsed() - before.time_ns > SECOND // 10:
            self._write(before)

    def _write(self, before: Snapshot) -> Snapshot:
        after = look(self.roles, self._elapsed())
        roles, ours = role_rows(before, after, self.roles)
        tables: dict[str, list[Row]] = {
            "roles": roles,
            "cores": core_rows(before, after, ours),
            "machine": [machine_row(before, after)],
        }
        for name, rows in tables.items():
            if rows:
                journal = self._journals[name]
                journal.append({field: [row[field] for row in rows] for field in journal.schema.names})
        return after

    def alive(self) -> bool:
        """Whether it is still running."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Take a last snapshot, then write the raw logs as Parquet."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        for journal in self._journals.values():
            try:
                journal.close()
            except (OSError, pa.ArrowException) as error:  # a full disk, perhaps: what is missing is found missing
                self.error = self.error or error
