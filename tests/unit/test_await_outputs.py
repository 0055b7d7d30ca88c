"""How long the controller waits for the last outputs: until they are there, or until no more come."""

from collections.abc import Callable

import pytest

from streamgauge.run.trial.drain import await_count
from streamgauge.run.trial.processes import OutputCount

MILLI = 1_000_000
TIMEOUT = 200 * MILLI
"""Four times as long as the controller waits between two looks at the count."""


class Counts:
    """Counts that a collector reports one after the other; the last one stays."""

    def __init__(self, *counts: OutputCount) -> None:
        self.left = [*counts]

    def __call__(self) -> OutputCount:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def always() -> bool:
    return True


def waits_for(*counts: OutputCount, expected: int = 100, alive: Callable[[], bool] = always) -> tuple[OutputCount, int]:
    """The count at which waiting ends, and how many of the counts were not asked for."""
    reported = Counts(*counts)
    await_count(reported, alive, expected, TIMEOUT)
    return reported.left[0], len(reported.left) - 1


def test_waiting_ends_when_an_exact_count_is_high_enough() -> None:
    assert waits_for(OutputCount(60), OutputCount(80), OutputCount(100), OutputCount(120)) == (OutputCount(120), 0)
    assert waits_for(OutputCount(100), OutputCount(120), OutputCount(130)) == (OutputCount(120), 1)


def test_lost_outputs_are_not_waited_for() -> None:
    assert waits_for(OutputCount(60), OutputCount(99)) == (OutputCount(99), 0)


@pytest.mark.parametrize("high", [100, 250])
def test_a_count_that_is_an_upper_bound_ends_waiting_only_when_it_no_longer_changes(high: int) -> None:
    rising = [OutputCount(high + more, exact=False) for more in (0, 0, 7, 7, 9)]
    assert waits_for(*rising) == (OutputCount(high + 9, exact=False), 0)


def test_a_count_that_turns_out_to_be_exact_ends_waiting() -> None:
    found = waits_for(OutputCount(100, exact=False), OutputCount(100), OutputCount(100), OutputCount(200))
    assert found == (OutputCount(200), 0)


def test_nothing_is_waited_for_if_nothing_is_expected_or_the_system_has_ended() -> None:
    counts = [OutputCount(0, exact=False), OutputCount(1, exact=False), OutputCount(2, exact=False)]
    assert waits_for(*counts, expected=0)[1] == 1
    assert waits_for(*counts, alive=lambda: False)[1] == 1
