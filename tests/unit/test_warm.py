"""When a new system is warm, and where it begins to fall behind."""

import numpy as np
import pytest

from streamgauge.engines.contract import Warming
from streamgauge.model.seconds import Seconds
from streamgauge.model.units import SECOND
from streamgauge.run.warm_up import Reach, Warmth


def seconds(done: list[int], used: list[int]) -> Seconds:
    return Seconds(0, {"acknowledged": np.array(done, np.int64), "sut_cpu": np.array(used, np.int64)})


def test_a_system_is_warm_once_an_event_costs_what_it_did_before() -> None:
    falling = [30] * 5 + [20] * 5 + [15] * 5 + [12] * 20
    watch = Warmth(60 * SECOND)
    assert not watch.look(seconds([10] * 35, falling))
    assert watch.look(seconds([10] * 45, [*falling, *[12] * 10]))
    assert (watch.cost_us, watch.steady) == ((3.0, 2.0, 1.5, *[1.2] * 6), True)


def test_a_system_may_need_some_time_whatever_it_costs() -> None:
    watch = Warmth(60 * SECOND, least=40 * SECOND)
    assert not watch.look(seconds([10] * 39, [12] * 39))
    assert watch.look(seconds([10] * 40, [12] * 40))


def test_a_warm_up_ends_at_its_limit_and_says_that_it_was_not_flat() -> None:
    watch = Warmth(10 * SECOND)
    assert watch.look(seconds([0] * 10, [5] * 10))
    assert (watch.cost_us, watch.steady) == ((), False)


def grown(load: list[int], *, costs: float, behind: int = 0) -> Seconds:
    """A second per value, each worked on in the next one, in which an event costs so many microseconds."""
    length = len(load)
    done = np.array([0, *load[:-1]])
    columns = {"published": np.array(load), "acknowledged": done, "sut_cpu": np.append(done[1:], load[-1]) * costs}
    columns |= {"ack_time": np.arange(length) * SECOND, "queue": np.full(length, behind)}
    return Seconds(0, {name: column.astype(np.int64) for name, column in columns.items()})


def test_what_an_event_costs_says_what_the_cores_would_carry() -> None:
    load = [100_000 + 10_000 * n for n in range(12)]
    for cores, costs, rate in ((1, 1.0, 1e6), (2, 1.0, 2e6), (1, 4.0, 0.25e6)):
        reach = Reach(trigger=2.0, cores=cores)
        assert not reach.look(grown(load, costs=costs))
        assert reach.rate == pytest.approx(1.05 * rate, rel=0.01)


def test_a_growing_load_is_over_when_some_triggers_of_it_wait() -> None:
    reach, load = Reach(trigger=2.0, cores=1), [100] * 10
    assert not reach.look(grown(load, costs=1, behind=299))
    assert reach.look(grown(load, costs=1, behind=300))
    assert not reach.look(grown(load[:4], costs=1, behind=300)), "four acknowledgements are too few to end it"


def test_a_load_that_is_too_high_from_its_beginning_on_tells_something_too() -> None:
    reach, load = Reach(trigger=2.0, cores=1), [100_000] * 3
    assert not reach.look(grown(load[:2], costs=5, behind=10**6))
    assert reach.rate == 0, "the first micro-batch is left out, so nothing is known yet"
    assert not reach.look(grown(load, costs=5, behind=10**6))
    assert reach.rate == pytest.approx(1.05 * 200_000, rel=0.01)


def test_without_cpu_times_nothing_is_flat_and_nothing_is_hinted_at() -> None:
    watch = Warmth(60 * SECOND)
    assert not watch.look(seconds([10] * 45, [0] * 45)), "a monitor that recorded nothing does not make a system warm"
    reach = Reach(trigger=2.0, cores=1)
    reach.look(grown([100_000] * 12, costs=0))
    assert reach.rate == 0


def test_a_warm_up_may_differ_in_its_options() -> None:
    assert Warming(1.0, 5, options={"trigger": 0}).options == {"trigger": 0}
