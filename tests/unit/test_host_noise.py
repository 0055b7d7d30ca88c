"""What the host takes from a test in real time: steal, and CPU time of processes that are not the test's own."""

import pytest
from host_noise import Look, Taken, taken

from streamgauge.processes.procfs import Core, Stat


def process(ticks: int, parent: int = 1, started: int = 5) -> Stat:
    return Stat(parent, 1, "R", ticks, 0, 1, started, 1, 0)


BEFORE = Look(10.0, {0: Core(0, 0), 1: Core(0, 7)}, {100: process(50), 101: process(10, 100), 200: process(3)})


def after(steal: int = 7, ours: int = 50, child: int = 10, stranger: int = 3, started: int = 5) -> Look:
    cores = {0: Core(20, 0), 1: Core(10, steal)}
    running = {100: process(ours), 101: process(child, 100), 200: process(stranger, 1, started)}
    return Look(11.0, cores, running)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        (after(), Taken(0.0, 0.0)),
        (after(steal=8), Taken(0.0, 0.0)),  # one tick may belong to the second before
        (after(steal=18), Taken(0.1, 0.0)),
        (after(ours=150, child=100), Taken(0.0, 0.0)),
        (after(stranger=24), Taken(0.0, 0.2)),
        (after(stranger=24, started=6), Taken(0.0, 0.0)),  # another process under the same number
    ],
)
def test_steal_and_strangers_are_told_from_what_is_ours(changed: Look, found: Taken) -> None:
    assert taken(BEFORE, changed, frozenset({100})) == found


def test_five_percent_of_a_core_spoil_a_test_and_less_does_not() -> None:
    assert Taken(0.05, 0.04).sentence == ""
    assert Taken(0.12, 0.0).sentence == "in one second the hypervisor took 12% of a core and other processes used 0%"
    assert "other processes used 8%" in Taken(0.0, 0.08).sentence
