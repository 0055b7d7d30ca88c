"""What a shared machine takes from a test that runs in real time: steal time, and CPU time of other processes.

The limit is that of the product (judge/disturbed.py): a trial whose system lost more than 5 % of a core is not judged,
so a test of such a trial is not judged either. One second in twenty is enough: trials of tests last a few seconds.
"""

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from streamgauge.judge.disturbed import MAX_FOREIGN_SHARE
from streamgauge.model.units import format_share
from streamgauge.processes.procfs import TICK_US, Core, Stat, parse_cores, parse_stat, tree

PART_OF_TEST: set[int] = set()
"""Processes that are not below this one and belong to a test nevertheless, such as one that disturbs on purpose."""
MIN_DISTURBED = 0.05
"""The share of its seconds that must be disturbed for a test to be spoiled."""
_EVERY = 1.0


@dataclass(frozen=True)
class Counters:
    """The counters of /proc at one moment."""

    time: float
    cores: dict[int, Core]
    processes: dict[int, Stat]


@dataclass(frozen=True)
class Taken:
    """Shares of a core in one second: what the hypervisor took, and what other processes used."""

    steal: float = 0.0
    others: float = 0.0

    @property
    def disturbs(self) -> bool:
        """Whether a trial in this second would not be judged."""
        return max(self.steal, self.others) > MAX_FOREIGN_SHARE


def disturbance(seconds: Sequence[Taken]) -> str:
    """What spoiled a test that lasted these seconds; nothing if too few of them were disturbed."""
    disturbed = sum(each.disturbs for each in seconds)
    if disturbed <= MIN_DISTURBED * len(seconds):
        return ""
    steal = format_share(max(each.steal for each in seconds))
    others = format_share(max(each.others for each in seconds))
    return (
        f"in {disturbed} of {len(seconds)} seconds the host disturbed it: the hypervisor took up to {steal} of a core, "
        f"and other processes used up to {others}"
    )


def taken(before: Counters, after: Counters, own: frozenset[int]) -> Taken:
    """What was taken between two moments by others than ``own``, these processes and all below them."""
    span = (after.time - before.time) * 1e6 / TICK_US
    if span <= 0:
        return Taken()
    steal = max((core.steal - before.cores[n].steal for n, core in after.cores.items() if n in before.cores), default=0)
    below = tree({pid: stat.parent for pid, stat in after.processes.items()}, own)
    used = 0
    for pid, stat in after.processes.items():
        old = before.processes.get(pid)
        if pid not in below and old is not None and old.started == stat.started:
            used += stat.own_ticks - old.own_ticks
    # one tick of either counter may belong to the second before
    return Taken(max(0, steal - 1) / span, max(0, used - 1) / span)


def read_counters() -> Counters:
    """The counters now."""
    processes = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - many times faster than a Path for each
        if name.isdigit():
            try:
                processes[int(name)] = parse_stat(Path(f"/proc/{name}/stat").read_text())
            except (OSError, ValueError):  # it ended meanwhile
                continue
    return Counters(time.monotonic(), parse_cores(Path("/proc/stat").read_text()), processes)


class HostNoise:
    """A context that measures once a second what the host takes."""

    def __init__(self) -> None:
        self.seconds: list[Taken] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="host noise", daemon=True)
        self._able = Path("/proc/stat").exists()

    def _watch(self) -> None:
        before = read_counters()
        while not self._over.wait(_EVERY):
            before = self._add(before)
        self._add(before)

    def _add(self, before: Counters) -> Counters:
        after = read_counters()
        if after.time - before.time >= _EVERY / 2:  # a shorter time has too few ticks to tell a share
            self.seconds.append(taken(before, after, frozenset({os.getpid(), *PART_OF_TEST})))
        return after

    @property
    def disturbance(self) -> str:
        """What spoiled the test, if anything did."""
        return disturbance(self.seconds)

    def __enter__(self) -> "HostNoise":
        if self._able:
            self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        if self._able:
            self._thread.join()
