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


def grown(load: list[int], batches: list[tuple[int, int]]) -> Seconds:
    """A load, second by second, and the micro-batches that it was worked on in: from when to when, in seconds. Each
    takes all that was published when it began, and is acknowledged at its end."""
    length, published = len(load), np.concatenate([[0], np.cumsum(load)])
    columns = {name: np.zeros(length, np.int64) for name in ("acknowledged", "acks", "queue")}
    columns |= {"published": np.array(load), "ack_time": np.full(length, -1), "ack_lag": np.full(length, -1)}
    done = 0
    for begun, ended in batches:
        second = ended - 1
        columns["acknowledged"][second], columns["acks"][second] = published[begun] - done, 1
        columns["ack_time"][second] = ended * SECOND
        done = published[begun]
    columns["queue"][-1] = published[-1] - done
    return Seconds(0, {name: column.astype(np.int64) for name, column in columns.items()})


def test_what_late_micro_batches_get_done_is_where_the_limit_is_looked_for() -> None:
    load, kept = [100 + 10 * n for n in range(17)], [(2, 4), (4, 6)]
    reach = Reach(trigger=2.0)
    assert not reach.look(grown(load[:6], kept))
    assert reach.rate == 145, "none was late: the load of the last two seconds"
    assert reach.look(grown(load, [*kept, (6, 9), (9, 17)]))
    # the first late one worked for three seconds on the events of two, the other for eight on those of three
    assert reach.rate == pytest.approx(0.93 * np.median([(140 + 150) / 3, (160 + 170 + 180) / 8]))


def test_one_late_micro_batch_among_several_counts_little() -> None:
    load = [100] * 20
    steady = [(2, 5), (5, 8), (8, 11), (11, 14)]
    reach = Reach(trigger=2.0)
    reach.look(grown(load, steady))
    assert reach.rate == pytest.approx(0.93 * 100)
    reach.look(grown(load, [*steady, (14, 20)]))
    assert reach.rate == pytest.approx(0.93 * 100), "one that took twice as long is not the middle of four"


def test_a_warm_up_may_differ_in_its_options() -> None:
    assert Warming(1.0, 5, options={"trigger": 0}).options == {"trigger": 0}
