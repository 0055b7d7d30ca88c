"""What each role used between two snapshots of /proc. Pure: snapshots in, rows out.

CPU of a role is that of its processes and of their children that have ended and were waited for, so that
short-lived ones are not mistaken for others. Foreign CPU of a core is what was neither idle nor used by a role.
It has a sign: the counters are read one after the other, so one second shows too much and the next too little, and
only their sum over a trial is exact.
"""

from dataclasses import dataclass, field
from mmap import PAGESIZE

from streamgauge.processes.procfs import TICK_US, Core, Stat, tree

Row = dict[str, int | str]


@dataclass(frozen=True, slots=True)
class Role:
    """Processes that belong together: the roots (their guards) and all below, on their cores if pinned."""

    name: str
    roots: tuple[int, ...]
    cores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread: nanoseconds run and waited for a CPU, and the core it was on last."""

    ran: int
    waited: int
    core: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of /proc."""

    time_ns: int
    processes: dict[int, Stat] = field(default_factory=dict)
    threads: dict[tuple[int, int], Thread] = field(default_factory=dict)
    io: dict[int, dict[str, int]] = field(default_factory=dict)
    cores: dict[int, Core] = field(default_factory=dict)
    pressure: dict[str, int] = field(default_factory=dict)
    net: dict[str, tuple[int, int]] = field(default_factory=dict)


def members(processes: dict[int, Stat], role: Role, roles: tuple[Role, ...] = ()) -> frozenset[int]:
    """The live processes of a role. Below the controller are all others: a process belongs to its nearest root."""
    others = {root for other in roles for root in other.roots} - set(role.roots)
    parents = {pid: stat.parent for pid, stat in processes.items() if pid not in others}
    return tree(parents, frozenset(role.roots)) & processes.keys()


def _cpu_us(processes: dict[int, Stat], pids: frozenset[int]) -> int:
    return TICK_US * sum(processes[pid].own_ticks + processes[pid].child_ticks for pid in pids)


def _io(after: Snapshot, before: Snapshot, pids: frozenset[int], name: str) -> int:
    moved = (after.io.get(p, {}).get(name, 0) - before.io.get(p, {}).get(name, 0) for p in pids)
    return sum(max(0, m) for m in moved)


def _threads(before: Snapshot, after: Snapshot, pids: frozenset[int]) -> tuple[int, dict[int, int]]:
    """Nanoseconds that the threads waited, and that they ran on each core."""
    waited, ran = 0, dict[int, int]()
    for key, thread in after.threads.items():
        if key[0] in pids:
            old = before.threads.get(key, Thread(0, 0, 0))
            waited += max(0, thread.waited - old.waited)
            ran[thread.core] = ran.get(thread.core, 0) + max(0, thread.ran - old.ran)
    return waited, ran


def role_rows(before: Snapshot, after: Snapshot, roles: tuple[Role, ...]) -> tuple[list[Row], dict[int, float]]:
    """One row per role, and the microseconds that all of them together used on each core."""
    rows: list[Row] = []
    ours: dict[int, float] = {}
    for role in roles:
        pids, old = (members(look.processes, role, roles) for look in (after, before))
        cpu = max(0, _cpu_us(after.processes, pids) - _cpu_us(before.processes, old))
        waited, ran = _threads(before, after, pids)
        for core, nanos in ran.items():
            ours[core] = ours.get(core, 0.0) + nanos / 1000
        # What ended between the snapshots is only in the sum; on a role's own cores it counts for the role.
        ended = max(0.0, cpu - sum(ran.values()) / 1000)
        for core in role.cores:
            ours[core] = ours.get(core, 0.0) + ended / len(role.cores)
        rows.append(
            {
                "time": after.time_ns,
                "role": role.name,
                "cpu_us": cpu,
                "run_delay_ns": waited,
                "rss_bytes": PAGESIZE * sum(after.processes[p].rss_pages for p in pids),
                "threads": sum(after.processes[p].threads for p in pids),
                "processes": len(pids),
                "read_bytes": _io(after, before, pids, "read_bytes"),
                "write_bytes": _io(after, before, pids, "write_bytes"),
                "rchar": _io(after, before, pids, "rchar"),
                "wchar": _io(after, before, pids, "wchar"),
            }
        )
    return rows, ours


def core_rows(before: Snapshot, after: Snapshot, ours: dict[int, float]) -> list[Row]:
    """One row per core: not idle, stolen by the hypervisor, measured processes, and the rest, in microseconds.

    A thread's own time continues while the hypervisor has its core, so steal may be in either of them.
    """
    rows: list[Row] = []
    for core, now in after.cores.items():
        then = before.cores.get(core, now)
        span, own = (after.time_ns - before.time_ns) // 1000, round(ours.get(core, 0.0))
        busy = span - (now.idle - then.idle) * TICK_US
        rows.append(
            {
                "time": after.time_ns,
                "core": core,
                "span_us": span,
                "busy_us": busy,
                "steal_us": (now.steal - then.steal) * TICK_US,
                "ours_us": own,
                "foreign_us": busy - own,
            }
        )
    return rows


def machine_row(before: Snapshot, after: Snapshot) -> Row:
    """Pressure in microseconds, and bytes over the loopback and over all other interfaces."""
    row: Row = {"time": after.time_ns}
    for what in ("cpu", "memory", "io"):
        row[f"{what}_pressure_us"] = after.pressure.get(what, 0) - before.pressure.get(what, 0)
    for name, chosen in (("loopback", True), ("network", False)):
        for side, way in enumerate(("received", "sent")):
            moved = (
                b[side] - before.net.get(interface, b)[side]
                for interface, b in after.net.items()
                if (interface == "lo") is chosen
            )
            row[f"{name}_{way}_bytes"] = sum(moved)
    return row
