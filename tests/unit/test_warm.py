"""When a new system is warm, and where it begins to fall behind."""

import numpy as np
import pytest

from streamgauge.engines.base import Warming
from streamgauge.model.seconds import Seconds
from streamgauge.model.units import SECOND
from streamgauge.run.warm import Reach, Warmth


def seconds(done: list[int], used: list[int], queue: list[int] | None = None) -> Seconds:
    length = len(done)
    at = (np.arange(length) + 1) * SECOND
    columns = {
        "acknowledged": np.array(done, np.int64),
        "sut_cpu": np.array(used, np.int64),
        "ack_time": np.where(np.array(done) > 0, at, -1),
        "queue": np.array(queue or [0] * length, np.int64),
    }
    return Seconds(0, columns)


def test_a_system_is_warm_once_an_event_costs_the_same_for_four_stretches() -> None:
    falling = [30] * 5 + [20] * 5 + [15] * 5 + [12] * 5
    watch = Warmth(60 * SECOND)
    assert not watch.look(seconds([10] * 20, falling))
    assert watch.look(seconds([10] * 35, [*falling, *[12] * 15]))
    assert watch.said() == {"microseconds_per_event": [3.0, 2.0, 1.5, 1.2, 1.2, 1.2, 1.2], "flat": True}


def test_a_warm_up_ends_at_its_limit_and_says_that_it_was_not_flat() -> None:
    watch = Warmth(10 * SECOND)
    assert watch.look(seconds([0] * 10, [5] * 10))
    assert watch.said() == {"microseconds_per_event": [], "flat": False}


def test_a_system_has_fallen_behind_when_three_seconds_of_its_own_work_wait() -> None:
    reach = Reach()
    assert not reach.look(seconds([100, 200, 400], [0] * 3, [100, 200, 400]))
    assert reach.look(seconds([100, 200, 400, 500, 500], [0] * 5, [100, 200, 400, 900, 1500]))
    assert reach.rate == pytest.approx(400.0)


def test_one_that_has_done_nothing_yet_is_not_behind() -> None:
    assert not Reach().look(seconds([0, 0], [0, 0], [10, 9000]))


def test_a_warm_up_may_differ_in_its_options() -> None:
    assert Warming(1.0, 5, options={"trigger": 0}).options == {"trigger": 0}
