"""The texts of /proc, and what the roles used between two looks at them."""

import os
from itertools import pairwise
from mmap import PAGESIZE
from pathlib import Path

import pytest

from streamgauge.processes import procfs
from streamgauge.processes.procfs import Core, Stat
from streamgauge.run.monitor.usage import Role, Snapshot, Thread, core_rows, machine_row, members, role_rows

STAT = (
    "4711 (java (odd) name) S 4700 4711 4711 0 -1 4194560 9 8 0 0 150 50 30 20 20 0 42 0 654321 "
    "8000000 2500 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n"
)


def test_a_stat_line_is_read_whatever_its_process_is_called() -> None:
    assert procfs.parse_stat(STAT) == Stat(
        parent=4700, session=4711, state="S", own_ticks=200, child_ticks=50, threads=42, started=654321,
        rss_pages=2500, core=1,
    )  # fmt: skip


def test_a_line_that_is_no_stat_line_is_refused() -> None:
    with pytest.raises(ValueError, match="not a line of"):
        procfs.parse_stat("4711 (cat) S 1 2 3")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux alone has /proc")
def test_the_stat_line_of_this_process_has_its_id_and_its_times() -> None:
    stat = procfs.parse_stat(Path("/proc/self/stat").read_text())
    assert stat.parent == os.getppid()
    assert stat.core in os.sched_getaffinity(0)


def test_run_and_wait_times_are_read() -> None:
    assert procfs.parse_schedstat("485145 11495315 2\n") == (485145, 11495315)


def test_cores_are_read_without_the_sum_and_waiting_for_disks_is_idle() -> None:
    text = (
        "cpu  6862 0 3282 199058 1177 0 63 549 0 0\ncpu0 100 10 50 900 70 3 7 20 40 0\n"
        "cpu12 1 2 3 4 5 6 7 8 0 0\nintr 5\n"
    )
    assert procfs.parse_cores(text) == {0: Core(970, 20), 12: Core(9, 8)}


def test_pressure_bytes_and_interfaces_are_read() -> None:
    assert (
        procfs.parse_pressure("some avg10=1.02 avg60=0.71 avg300=0.31 total=6203534\nfull avg10=0 total=9\n") == 6203534
    )
    assert procfs.parse_pressure("") == 0
    assert procfs.parse_io("rchar: 12\nwchar: 7\nread_bytes: 0\n") == {"rchar": 12, "wchar": 7, "read_bytes": 0}
    net = "Inter-| Receive\n face |bytes packets\n    lo:    3193      29    0 0 0 0 0 0  3194 29 0 0 0 0 0 0\n"
    assert procfs.parse_net(net) == {"lo": (3193, 3194)}


def stat(parent: int, own: int = 0, child: int = 0, threads: int = 1, pages: int = 10) -> Stat:
    return Stat(parent, 0, "S", own, child, threads, 0, pages, 0)


SUT = Role("sut", (10,), (1,))
DRIVER = Role("driver", (20,), (0,))


def test_a_role_is_its_guards_and_all_below_them() -> None:
    processes = {1: stat(0), 10: stat(1), 11: stat(10), 12: stat(11), 20: stat(1), 99: stat(1)}
    assert members(processes, SUT) == {10, 11, 12}
    assert members(processes, Role("gone", (404,))) == frozenset()


def test_a_process_below_two_roots_belongs_to_the_nearer_one_and_is_counted_once() -> None:
    before = Snapshot(0, {1: stat(0), 10: stat(1), 11: stat(10)}, {(11, 11): Thread(0, 0, 1), (1, 1): Thread(0, 0, 1)})
    ran = {(11, 11): Thread(400_000_000, 0, 1), (1, 1): Thread(50_000_000, 0, 1)}
    after = Snapshot(1_000_000_000, before.processes, ran)
    rows, ours = role_rows(before, after, (SUT, Role("controller", (1,))))
    assert [row["processes"] for row in rows] == [2, 1]
    assert ours[1] == 450_000


def test_what_a_short_lived_child_used_still_belongs_to_its_role() -> None:
    before = Snapshot(0, {10: stat(1), 11: stat(10, 100), 12: stat(11, 5)})
    after = Snapshot(10**9, {10: stat(1), 11: stat(10, 150, 25)})
    (row,), ours = role_rows(before, after, (SUT,))
    assert row["cpu_us"] == (150 + 25 - 100 - 5) * 10_000
    assert ours == {1: 700_000}


def test_foreign_time_is_what_was_neither_idle_nor_used_by_a_role() -> None:
    before = Snapshot(0, {10: stat(1), 20: stat(1)}, cores={0: Core(1000, 3), 1: Core(2000, 0)})
    after = Snapshot(
        10**9,
        {10: stat(1, 60), 20: stat(1, 30)},
        {(10, 10): Thread(600_000_000, 5_000, 1), (20, 20): Thread(300_000_000, 7_000, 0)},
        cores={0: Core(1060, 13), 1: Core(2010, 0)},
    )
    rows, ours = role_rows(before, after, (SUT, DRIVER))
    assert [(r["role"], r["cpu_us"], r["run_delay_ns"]) for r in rows] == [
        ("sut", 600_000, 5_000),
        ("driver", 300_000, 7_000),
    ]
    cores = core_rows(before, after, ours)
    assert [(c["core"], c["busy_us"], c["ours_us"], c["foreign_us"], c["steal_us"]) for c in cores] == [
        (0, 400_000, 300_000, 100_000, 100_000),
        (1, 900_000, 600_000, 300_000, 0),
    ]


def test_what_one_look_shows_too_much_of_the_next_shows_too_little_of_so_that_the_sum_is_true() -> None:
    looks = [
        Snapshot(second * 10**9, {10: stat(1)}, {(10, 10): Thread(ran * 10**6, 0, 1)}, cores={1: Core(idle, 0)})
        for second, ran, idle in ((0, 0, 0), (1, 450, 50), (2, 1000, 100))
    ]
    foreign = [
        core_rows(before, after, role_rows(before, after, (SUT,))[1])[0]["foreign_us"]
        for before, after in pairwise(looks)
    ]
    assert foreign == [50_000, -50_000]


def test_memory_threads_and_bytes_are_summed_over_the_role() -> None:
    before = Snapshot(0, {10: stat(1), 11: stat(10)}, io={10: {"read_bytes": 5}, 11: {"read_bytes": 1}})
    after = Snapshot(
        1, {10: stat(1, threads=3), 11: stat(10, pages=2)}, io={10: {"read_bytes": 9}, 11: {"read_bytes": 2}}
    )
    (row,), _ = role_rows(before, after, (SUT,))
    assert (row["rss_bytes"], row["threads"], row["processes"], row["read_bytes"]) == (12 * PAGESIZE, 4, 2, 5)


def test_the_machine_shows_its_pressure_and_the_loopback_apart_from_the_network() -> None:
    before = Snapshot(0, pressure={"cpu": 5}, net={"lo": (1, 2), "eth0": (10, 20)})
    after = Snapshot(7, pressure={"cpu": 9}, net={"lo": (4, 6), "eth0": (11, 22), "eth1": (5, 5)})
    row = machine_row(before, after)
    assert row["cpu_pressure_us"] == 4
    assert (row["loopback_received_bytes"], row["loopback_sent_bytes"]) == (3, 4)
    assert (row["network_received_bytes"], row["network_sent_bytes"]) == (1, 2)
