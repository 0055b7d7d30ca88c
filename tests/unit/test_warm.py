"""When a new system is warm, and where it begins to fall behind."""

import numpy as np
import pytest

from streamgauge.engines.base import Warming
from streamgauge.model.seconds import Seconds
from streamgauge.model.units import SECOND
from streamgauge.run.warm import Reach, Warmth


def seconds(done: list[int], used: list[int]) -> Seconds:
    return Seconds(0, {"acknowledged": np.array(done, np.int64), "sut_cpu": np.array(used, np.int64)})


def test_a_system_is_warm_once_an_event_costs_what_it_did_before() -> None:
    falling = [30] * 5 + [20] * 5 + [15] * 5 + [12] * 20
    watch = Warmth(60 * SECOND)
    assert not watch.look(seconds([10] * 35, falling))
    assert watch.look(seconds([10] * 45, [*falling, *[12] * 10]))
    assert watch.said() == {"microseconds_per_event": [3.0, 2.0, 1.5, *[1.2] * 6], "flat": True}


def test_a_system_may_need_some_time_whatever_it_costs() -> None:
    watch = Warmth(60 * SECOND, least=40 * SECOND)
    assert not watch.look(seconds([10] * 39, [12] * 39))
    assert watch.look(seconds([10] * 40, [12] * 40))


def test_a_warm_up_ends_at_its_limit_and_says_that_it_was_not_flat() -> None:
    watch = Warmth(10 * SECOND)
    assert watch.look(seconds([0] * 10, [5] * 10))
    assert watch.said() == {"microseconds_per_event": [], "flat": False}


def grown(load: list[int], lag: list[int], busy: float = 2.0) -> Seconds:
    """A second per value, each acknowledged at its end; what waits then. ``busy`` cores are in use."""
    at = (np.arange(len(load)) + 1) * SECOND
    columns = {"published": np.array(load), "ack_time": at, "ack_lag": np.array(lag), "queue": np.array(lag)}
    columns["acknowledged"] = np.full(len(load), 50)
    columns["sut_cpu"] = np.full(len(load), busy * 1e6)
    return Seconds(0, {name: column.astype(np.int64) for name, column in columns.items()})


def test_the_last_load_that_a_system_kept_up_with_is_where_its_limit_is_looked_for() -> None:
    reach = Reach(trigger=1.0, cores=1)
    assert not reach.look(grown([100, 110, 120], [100, 110, 121]))
    assert not reach.look(grown([100, 110, 120, 130, 140], [100, 110, 121, 200, 400]))
    assert reach.look(grown([100, 110, 120, 130, 140, 150], [100, 110, 121, 200, 400, 600]))
    assert reach.rate == 110, "what waited after the third second came in while the load of the second was worked on"


def test_a_pause_that_was_made_up_for_is_forgotten() -> None:
    reach = Reach(trigger=2.0, cores=2)
    assert not reach.look(grown([100, 110, 120, 130, 140, 150], [100, 700, 300, 250, 300, 290]))
    assert reach.rate == 125


def test_cores_that_were_not_busy_could_have_carried_more() -> None:
    for busy, rate in ((1.0, 110.0), (0.95, 110 / 0.95), (0.1, 110 / 0.9)):
        reach = Reach(trigger=1.0, cores=1)
        reach.look(grown([100, 110, 120, 130], [100, 110, 121, 500], busy))
        assert reach.rate == pytest.approx(rate)


def test_one_that_never_keeps_up_is_given_some_time_and_what_it_gets_done_is_said() -> None:
    reach, lag = Reach(trigger=1.0, cores=1), list(range(500, 2500, 100))
    assert not reach.look(grown([200] * 10, lag[:10]))
    assert reach.look(grown([200] * 20, lag))
    assert reach.rate == 50


def test_a_warm_up_may_differ_in_its_options() -> None:
    assert Warming(1.0, 5, options={"trigger": 0}).options == {"trigger": 0}
