"""Which cores the load driver and the system under test get."""

import pytest

from streamgauge.model.layout import Placement
from streamgauge.processes.placement import NotEnoughCores, assign_cores


@pytest.mark.parametrize(
    ("wanted", "have", "expected"),
    [
        (1, (0, 1), Placement((0,), (1,))),
        (2, (0, 1, 2, 3), Placement((0, 1), (2, 3))),
        (1, (0,), Placement()),
        (8, (), Placement()),
    ],
)
def test_the_system_gets_the_last_cores_and_the_driver_the_others(
    wanted: int, have: tuple[int, ...], expected: Placement
) -> None:
    assert assign_cores(wanted, have) == expected


@pytest.mark.parametrize(("wanted", "have"), [(2, (0, 1)), (64, (0, 1)), (2, (0,)), (1024, (0,))])
def test_more_cores_than_there_are_beside_the_driver_are_refused(wanted: int, have: tuple[int, ...]) -> None:
    with pytest.raises(NotEnoughCores, match=r"set engine.cores to 1 or less"):
        assign_cores(wanted, have)
