"""When brokers count as warm."""

import pytest

from streamgauge.transports.kafka.brokers.start import is_warm


@pytest.mark.parametrize(
    ("paces", "warm"),
    [
        ([], False),
        ([100] * 7, False),  # a pause at the beginning is no end
        ([10, 20, 40, 80, 90, 95, 98, 100, 99], True),
        ([10, 20, 40, 80, 90, 95, 98, 110, 100], False),  # it is still getting faster
        ([10 * n for n in range(1, 26)], True),  # no wait is endless
    ],
)
def test_brokers_are_warm_once_two_rounds_bring_nothing_new(paces: list[int], warm: bool) -> None:
    assert is_warm(paces) is warm
