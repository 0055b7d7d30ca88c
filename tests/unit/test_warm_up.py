"""When a new system is warm, and where it begins to fall behind."""

from dataclasses import replace

import numpy as np
import pytest
from judge_samples import trial

from streamgauge.engines.contract import Traits
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Seconds
from streamgauge.model.units import SECOND
from streamgauge.run.warm_up import (
    LimitProbe,
    WarmUpWatch,
    growing_load_probe,
    growing_load_trial,
    warm_up_trial,
)

SPARK = Traits(
    2 * SECOND,
    warm_load=5_000.0,
    warm_limit_ns=60 * SECOND,
    warm_min_ns=45 * SECOND,
    warm_options={"trigger": 0},
)
"""The warm-up of an engine that behaves as Spark does."""


def seconds(done: list[int], used: list[int]) -> Seconds:
    return Seconds(0, {"acknowledged": np.array(done, np.int64), "sut_cpu": np.array(used, np.int64)})


def test_a_system_is_warm_once_an_event_costs_what_it_did_before() -> None:
    falling = [30] * 5 + [20] * 5 + [15] * 5 + [12] * 20
    watch = WarmUpWatch(60 * SECOND)
    assert not watch.decided(seconds([10] * 35, falling))
    assert watch.decided(seconds([10] * 45, [*falling, *[12] * 10]))
    assert (watch.finite_costs, watch.steady) == ((3.0, 2.0, 1.5, *[1.2] * 6), True)


def test_a_system_may_need_some_time_whatever_it_costs() -> None:
    watch = WarmUpWatch(60 * SECOND, minimum=40 * SECOND)
    assert not watch.decided(seconds([10] * 39, [12] * 39))
    assert watch.decided(seconds([10] * 40, [12] * 40))


def test_a_warm_up_ends_at_its_limit_and_is_marked_as_not_steady() -> None:
    watch = WarmUpWatch(10 * SECOND)
    assert watch.decided(seconds([0] * 10, [5] * 10))
    assert (watch.finite_costs, watch.steady) == ((), False)


def grown(load: list[int], *, costs: float, behind: int = 0) -> Seconds:
    """A second per value, each worked on in the next one, in which an event costs so many microseconds."""
    length = len(load)
    done = np.array([0, *load[:-1]])
    columns = {"published": np.array(load), "acknowledged": done, "sut_cpu": np.append(done[1:], load[-1]) * costs}
    columns |= {"ack_time": np.arange(length) * SECOND, "queue": np.full(length, behind)}
    return Seconds(0, {name: column.astype(np.int64) for name, column in columns.items()})


def test_the_limit_of_the_cores_follows_from_what_an_event_costs() -> None:
    load = [100_000 + 10_000 * n for n in range(12)]
    for cores, costs, rate in ((1, 1.0, 1e6), (2, 1.0, 2e6), (1, 4.0, 0.25e6)):
        probe = LimitProbe(trigger=2.0, cores=cores)
        assert not probe.decided(grown(load, costs=costs))
        assert probe.estimate == pytest.approx(1.05 * rate, rel=0.01)


def test_the_estimate_is_made_from_the_last_seconds_because_earlier_events_cost_more() -> None:
    load = [100_000] * 40
    cold, warm = grown(load, costs=6.0), grown(load, costs=1.0)
    columns = {name: warm[name] for name in ("published", "acknowledged", "ack_time", "queue")}
    used = np.concatenate([cold["sut_cpu"][:25], warm["sut_cpu"][25:]])
    probe = LimitProbe(trigger=2.0, cores=1)
    probe.decided(Seconds(0, {**columns, "sut_cpu": used}))
    assert probe.estimate == pytest.approx(1.05 * 1e6, rel=0.01)


def test_a_growing_load_is_over_when_some_triggers_of_it_wait() -> None:
    probe, load = LimitProbe(trigger=2.0, cores=1), [100] * 10
    assert not probe.decided(grown(load, costs=1, behind=299))
    assert probe.decided(grown(load, costs=1, behind=300))
    assert not probe.decided(grown(load[:4], costs=1, behind=300)), "four acknowledgements are too few to end it"


def test_a_growing_load_lasts_until_a_new_system_is_warm() -> None:
    probe = growing_load_probe(SPARK, 1, lambda: None, warm=False)
    assert not probe.decided(grown([100] * 29, costs=1, behind=300))
    assert probe.decided(grown([100] * 30, costs=1, behind=300))
    again = growing_load_probe(SPARK, 1, lambda: None, warm=True)
    assert again.decided(grown([100] * 8, costs=1, behind=300)), "a system that is warm already needs no shortest time"


def test_a_new_system_is_bound_to_its_cores_once_while_the_load_grows() -> None:
    bound: list[int] = []
    probe = growing_load_probe(SPARK, 1, lambda: bound.append(1), warm=False)
    counts = []
    for length in (5, 19, 20, 21, 30):
        probe.decided(grown([100] * length, costs=1))
        counts.append(len(bound))
    assert counts == [0, 0, 1, 1, 1]


def test_a_load_that_is_far_too_high_from_its_beginning_ends_before_it_fills_the_memory() -> None:
    probe, load = growing_load_probe(SPARK, 1, lambda: None, warm=False), [100_000] * 3
    assert not probe.decided(grown(load[:2], costs=5, behind=10**6))
    assert probe.estimate == 0, "the first micro-batch is left out, so nothing is known yet"
    assert probe.decided(grown(load, costs=5, behind=10**6))
    assert probe.estimate == pytest.approx(1.05 * 200_000, rel=0.01)


def test_a_growing_load_begins_at_that_of_a_warm_up_and_doubles_every_six_seconds() -> None:
    growing = growing_load_trial(replace(trial(), options={"trigger": SECOND}), SPARK)
    rates = [growing.profile.mean_between(second * SECOND, (second + 1) * SECOND) for second in (0, 7, 13, 19)]
    assert rates == pytest.approx([5_000.0, 5_000.0, 10_000.0, 20_000.0])
    assert (growing.options, growing.limit) == ({"trigger": 0}, 60 * SECOND)


def test_without_cpu_times_nothing_is_flat_and_nothing_is_hinted_at() -> None:
    watch = WarmUpWatch(60 * SECOND)
    assert not watch.decided(seconds([10] * 45, [0] * 45)), (
        "a monitor that recorded nothing does not make a system warm"
    )
    probe = LimitProbe(trigger=2.0, cores=1)
    probe.decided(grown([100_000] * 12, costs=0))
    assert probe.estimate == 0


def test_a_warm_up_may_differ_in_its_options() -> None:
    of = replace(trial(), options={"trigger": SECOND, "cores": 1})
    warm = warm_up_trial(of, SPARK)
    assert warm.options == {"trigger": 0, "cores": 1}
    assert (warm.profile, warm.limit) == (constant(5_000.0), 60 * SECOND)
