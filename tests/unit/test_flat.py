"""When a warm-up is over."""

import math

import pytest

from streamgauge.stats.flat import flat


@pytest.mark.parametrize(
    ("costs", "over"),
    [
        ([], False),
        ([1.0, 1.0, 1.0], False),
        ([3.0, 2.0, 1.2, 1.0], False),
        ([3.0, 1.0, 1.0, 1.0], False),
        ([3.0, 1.0, 0.98, 0.97, 0.96], True),
        ([3.0, 1.0, 1.1, 1.08, 1.07], True),
        ([1.0, 1.0, 1.0, 0.9], False),
        ([math.inf, math.inf, math.inf, math.inf], False),
    ],
)
def test_a_cost_is_flat_once_four_stretches_in_a_row_fall_by_at_most_3_percent(costs: list[float], over: bool) -> None:
    assert flat(costs) is over
