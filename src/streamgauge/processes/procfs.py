"""The content of /proc, as pure functions of its texts."""

from dataclasses import dataclass

TICK_US = 10_000
"""Microseconds of one tick of /proc's CPU times: USER_HZ is 100 on every Linux that Python runs on."""


@dataclass(frozen=True, slots=True)
class Stat:
    """One line of /proc/PID/stat: CPU times in ticks, of the process and of its children that were waited for."""

    parent: int
    session: int
    state: str
    own_ticks: int
    child_ticks: int
    threads: int
    started: int
    rss_pages: int
    core: int


def parse_stat(text: str) -> Stat:
    """/proc/PID/stat or /proc/PID/task/TID/stat. The name in parentheses may contain any character."""
    rest = text.rpartition(")")[2].split()
    if len(rest) < 37:
        raise ValueError(f"not a line of /proc/PID/stat: {text[:80]!r}")
    return Stat(
        state=rest[0],
        parent=int(rest[1]),
        session=int(rest[3]),
        own_ticks=int(rest[11]) + int(rest[12]),
        child_ticks=int(rest[13]) + int(rest[14]),
        threads=int(rest[17]),
        started=int(rest[19]),
        rss_pages=int(rest[21]),
        core=int(rest[36]),
    )


def parse_schedstat(text: str) -> tuple[int, int]:
    """/proc/PID/task/TID/schedstat: nanoseconds on a CPU, and nanoseconds waiting for one."""
    ran, waited, *_ = text.split()
    return int(ran), int(waited)


def parse_io(text: str) -> dict[str, int]:
    """/proc/PID/io."""
    return {key: int(value) for key, _, value in (line.partition(":") for line in text.splitlines()) if value}


@dataclass(frozen=True, slots=True)
class Core:
    """CPU times of one core in ticks since boot.

    What was idle is counted exactly by the kernel; what was busy only by where its ticks fell, so it is not here.
    """

    idle: int
    steal: int


def parse_cores(text: str) -> dict[int, Core]:
    """The lines cpu0, cpu1, … of /proc/stat. Waiting for a disk is idle."""
    cores = {}
    for line in text.splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name[3:].isdigit():
            _, _, _, idle, iowait, _, _, steal = map(int, fields[:8])
            cores[int(name[3:])] = Core(idle + iowait, steal)
    return cores


def parse_pressure(text: str) -> int:
    """/proc/pressure/*: microseconds in which some task waited, since boot."""
    for line in text.splitlines():
        if line.startswith("some"):
            return int(line.rpartition("total=")[2])
    return 0


def parse_net(text: str) -> dict[str, tuple[int, int]]:
    """/proc/net/dev: bytes received and sent, per interface."""
    found = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon:
            fields = rest.split()
            found[name.strip()] = (int(fields[0]), int(fields[8]))
    return found


def tree(parents: dict[int, int], roots: frozenset[int]) -> frozenset[int]:
    """The roots and all below them, from each process's parent."""
    below, grown = set(roots), True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return frozenset(below)
