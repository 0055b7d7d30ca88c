"""What a shared machine takes away from a test that runs in real time: steal, and CPU time of other processes.

The bound is the product's own (judge/decide.py): a trial whose system lost more than 5 % of a core is not judged, so
a test of such a trial is not judged either.
"""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from streamgauge.judge.disturbed import MAX_FOREIGN_SHARE
from streamgauge.model.units import format_share
from streamgauge.processes.procfs import TICK_US, Core, Stat, parse_cores, parse_stat, tree

OURS: set[int] = set()
"""Processes that are not below this one and belong to a test all the same, such as one that disturbs on purpose."""
_EVERY = 1.0


@dataclass(frozen=True)
class Look:
    """The counters of /proc at one moment."""

    time: float
    cores: dict[int, Core]
    processes: dict[int, Stat]


@dataclass(frozen=True)
class Taken:
    """The largest share of a core in any second: what the hypervisor took, and what other processes used."""

    steal: float = 0.0
    strangers: float = 0.0

    @property
    def sentence(self) -> str:
        """What spoiled the test; nothing on a quiet machine."""
        if max(self.steal, self.strangers) <= MAX_FOREIGN_SHARE:
            return ""
        shown = format_share(self.steal), format_share(self.strangers)
        return "in one second the hypervisor took {} of a core and other processes used {}".format(*shown)


def taken(before: Look, after: Look, ours: frozenset[int]) -> Taken:
    """What was taken between two looks by others than ``ours`` (these processes and all below them)."""
    span = (after.time - before.time) * 1e6 / TICK_US
    if span <= 0:
        return Taken()
    steal = max((core.steal - before.cores[n].steal for n, core in after.cores.items() if n in before.cores), default=0)
    below = tree({pid: stat.parent for pid, stat in after.processes.items()}, ours)
    used = 0
    for pid, stat in after.processes.items():
        old = before.processes.get(pid)
        if pid not in below and old is not None and old.started == stat.started:
            used += stat.own_ticks - old.own_ticks
    # one tick of either counter may belong to the second before
    return Taken(max(0, steal - 1) / span, max(0, used - 1) / span)


def look() -> Look:
    """The counters now."""
    processes = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - many times faster than a Path for each
        if name.isdigit():
            try:
                processes[int(name)] = parse_stat(Path(f"/proc/{name}/stat").read_text())
            except (OSError, ValueError):  # it ended meanwhile
                continue
    return Look(time.monotonic(), parse_cores(Path("/proc/stat").read_text()), processes)


class HostNoise:
    """A context that watches the machine once a second."""

    def __init__(self) -> None:
        self.worst = Taken()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="host noise", daemon=True)
        self._able = Path("/proc/stat").exists()

    def _watch(self) -> None:
        before = look()
        while not self._over.wait(_EVERY):
            before = self._add(before)
        self._add(before)

    def _add(self, before: Look) -> Look:
        after = look()
        if after.time - before.time >= _EVERY / 2:  # a shorter time has too few ticks to tell a share
            now = taken(before, after, frozenset({os.getpid(), *OURS}))
            self.worst = Taken(max(now.steal, self.worst.steal), max(now.strangers, self.worst.strangers))
        return after

    def __enter__(self) -> "HostNoise":
        if self._able:
            self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        if self._able:
            self._thread.join()
