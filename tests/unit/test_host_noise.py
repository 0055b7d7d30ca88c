"""What the host takes from a test in real time: steal time, and CPU time of processes outside the test."""

import pytest
from host_noise import Counters, Taken, disturbance, taken

from streamgauge.processes.procfs import Core, Stat


def process(ticks: int, parent: int = 1, started: int = 5) -> Stat:
    return Stat(parent, 1, "R", ticks, 0, 1, started, 1, 0)


BEFORE = Counters(10.0, {0: Core(0, 0), 1: Core(0, 7)}, {100: process(50), 101: process(10, 100), 200: process(3)})


def after(steal: int = 7, ours: int = 50, child: int = 10, stranger: int = 3, started: int = 5) -> Counters:
    cores = {0: Core(20, 0), 1: Core(10, steal)}
    running = {100: process(ours), 101: process(child, 100), 200: process(stranger, 1, started)}
    return Counters(11.0, cores, running)


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
def test_steal_time_and_other_processes_are_distinguished_from_those_of_the_test(
    changed: Counters, found: Taken
) -> None:
    assert taken(BEFORE, changed, frozenset({100})) == found


@pytest.mark.parametrize(
    ("seconds", "spoiled"),
    [
        ([], False),
        ([Taken(0.05, 0.04)] * 3, False),
        ([Taken(0.12, 0.0)], True),
        ([Taken(), Taken(0.0, 0.08), Taken()], True),
        ([Taken(0.3, 0.3)] + [Taken()] * 18, True),
        ([Taken(0.3, 0.3)] + [Taken()] * 19, False),
    ],
)
def test_a_test_is_spoiled_if_more_than_5_percent_of_a_core_were_taken_in_more_than_5_percent_of_its_seconds(
    seconds: list[Taken], spoiled: bool
) -> None:
    assert bool(disturbance(seconds)) is spoiled


def test_the_sentence_names_the_seconds_and_the_largest_shares() -> None:
    assert disturbance([Taken(0.12, 0.0), Taken(0.0, 0.08), Taken()]) == (
        "in 2 of 3 seconds the host disturbed it: the hypervisor took up to 12% of a core, "
        "and other processes used up to 8%"
    )
