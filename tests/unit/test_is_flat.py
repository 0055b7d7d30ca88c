"""When a warm-up is over."""

import math

import pytest

from streamgauge.stats.steady import is_flat


@pytest.mark.parametrize(
    ("costs", "over"),
    [
        ([], False),
        ([1.0, 1.0, 1.0, 1.0, 1.0], False),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], True),
        ([3.0, 2.0, 1.2, 1.0, 1.0, 1.0], False),
        ([9.0, 1.0, 0.99, 1.0, 0.98, 0.97, 0.99], True),
        ([1.3, 1.2, 1.1, 1.4, 1.2, 1.1], True),
        ([1.0, 1.0, 1.0, 0.96, 0.95, 0.96], False),
        ([1.2, 1.1, 1.0, 1.3, 0.9, 0.8], False),
        ([math.inf] * 6, False),
    ],
)
def test_a_cost_is_flat_once_three_stretches_cost_together_what_the_three_before_them_did(
    costs: list[float], over: bool
) -> None:
    assert is_flat(costs) is over
