"""The hierarchy of sensors: which groups contain a sensor when, and the stream that repeats it in every period."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from streamgauge.model.profile import constant, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Inputs, plans_of
from streamgauge.workloads.data.hierarchy import MEMBERSHIPS, Moves, Tree
from streamgauge.workloads.hierarchical_aggregation import (
    HierarchicalAggregationParams,
    hierarchical_aggregation,
    memberships_of,
)

ORIGIN = 1_700_000_000 * SECOND + 123_456_789
MICRO = 1_000


def params(**written: object) -> HierarchicalAggregationParams:
    return HierarchicalAggregationParams.model_validate({"window": "4s", "heartbeat": "2s", **written})


def inputs_of(of: HierarchicalAggregationParams, load: float | None = None, seconds: int = 12) -> Inputs:
    rate = hierarchical_aggregation.rate(of) if load is None else load
    assert rate is not None
    plans = plans_of(hierarchical_aggregation.streams(of), constant(rate), seconds * SECOND)
    return Inputs(plans, seed=5, origin_ns=ORIGIN)


def test_groups_have_numbers_level_after_level() -> None:
    tree = Tree(children=3, height=3)
    assert (tree.sensors, tree.lowest_groups, tree.groups, tree.first_groups) == (27, 9, 13, (0, 1, 4))
    assert tree.level_of(np.array([0, 1, 3, 4, 12])).tolist() == [0, 1, 1, 2, 2]
    lowest = np.array([0, 2, 3, 8])
    assert [tree.group_above(lowest, level).tolist() for level in range(3)] == [
        [0, 0, 0, 0],
        [1, 1, 2, 3],
        [4, 6, 7, 12],
    ]


@pytest.mark.parametrize(("children", "height"), [(1, 1), (1, 64), (5, 1), (100_000, 1), (2, 29)])
def test_trees_of_any_shape_have_groups(children: int, height: int) -> None:
    tree = Tree(children, height)
    assert tree.groups == sum(children**level for level in range(height)) < 2**31


def test_a_share_of_the_sensors_moves_with_each_heartbeat_and_others_stay() -> None:
    moves = Moves(Tree(10, 4), stay=20, seed=3)
    sensors = np.arange(10_000)
    where = [moves.lowest(sensors, period) for period in range(1_000_000, 1_000_041)]
    for before, after in pairwise(where):
        moved = before != after
        assert 0.03 < moved.mean() < 0.07
        assert np.array_equal(after[moved], (before[moved] + 1) % 1_000)
    assert np.array_equal(where[20], (where[0] + 1) % 1_000), "every sensor moves once in 20 periods"
    assert np.array_equal(Moves(Tree(10, 4), 0, 3).lowest(sensors, 77), sensors // 10), "or never"


@pytest.mark.parametrize("frequency", ["0.1/s", "1/s", "50/s"])
@pytest.mark.parametrize("height", [1, 2, 4])
def test_every_period_names_every_sensor_once_with_its_group(height: int, frequency: str) -> None:
    of = params(height=height, frequency=frequency, moves="30%")
    inputs = inputs_of(of)
    plan = inputs.plans["hierarchy"]
    made = hierarchical_aggregation.events(of, "hierarchy", inputs).events(0, plan.total)
    moves = memberships_of(of, inputs).moves
    length = 2 * SECOND // MICRO
    assert [name for name, _ in MEMBERSHIPS] == list(made)
    assert np.all((made["valid_from"] <= made["due"]) & (made["due"] < made["valid_to"]))
    assert np.all(made["valid_to"] - made["valid_from"] == length)
    periods = np.unique(made["valid_from"])
    for begin in periods[1:-1].tolist():
        part = made["valid_from"] == begin
        sensors = made["sensor_id"][part]
        assert sensors.tolist() == list(range(len(sensors)))
        assert of.tree.sensors <= len(sensors) <= of.tree.sensors + 8
        known = sensors < of.tree.sensors
        lowest = moves.lowest(sensors[known].astype(np.int64), begin // length)
        assert made["group_id"][part][known].tolist() == (lowest + of.tree.first_groups[-1]).tolist()


def test_partitions_of_the_hierarchy_together_are_the_whole() -> None:
    of = params(moves="10%")
    inputs = inputs_of(of, load=40_000)
    source = hierarchical_aggregation.events(of, "hierarchy", inputs)
    stop = inputs.plans["hierarchy"].total - 1
    whole = source.events(5, stop)
    for partition in range(7):
        part = source.events(5, stop, stride=7, offset=partition)
        for name, column in whole.items():
            assert np.array_equal(part[name], column[(partition - 5) % 7 :: 7]), name
    with pytest.raises(ValueError, match="0 … 3"):
        source.events(0, 10, stride=4, offset=4)


@pytest.mark.parametrize("load", [None, 20.0, 5_000.0], ids=["implied", "low", "high"])
@pytest.mark.parametrize(("window", "slide"), [("4s", "4s"), ("6s", "2s"), ("5s", "3s")])
def test_statistics_of_groups_equal_the_plain_ones(load: float | None, window: str, slide: str) -> None:
    of = params(window=window, slide=slide, moves="30%", height=2)
    inputs = inputs_of(of, load)
    totals = {name: plan.total for name, plan in inputs.plans.items()}
    sent = hierarchical_aggregation.events(of, "readings", inputs).events(0, totals["readings"])
    named = hierarchical_aggregation.events(of, "hierarchy", inputs).events(0, totals["hierarchy"])
    groups: dict[tuple[int, int], int] = {}
    for sensor, group, begin in zip(
        *(named[name].tolist() for name in ("sensor_id", "group_id", "valid_from")), strict=True
    ):
        assert (sensor, begin) not in groups
        groups[sensor, begin] = group
    beat, long, step = (nanos // MICRO for nanos in (of.beat, of.window, of.period))
    found: Counter[tuple[int, int, str]] = Counter()
    for sensor, value, due in zip(*(sent[name].tolist() for name in ("sensor_id", "value", "due")), strict=True):
        group = groups.get((sensor, due // beat * beat))
        while group is not None:
            for start in range(due // step * step, due - long, -step):
                found.update({(start, group, "count"): 1, (start, group, "sum"): value})
            group = (group - 1) // of.children if group else None
    answer = hierarchical_aggregation.reference(of, inputs).until(totals)
    rows = zip(*(answer[name].tolist() for name in ("window_start", "group_id", "level", "count", "sum")), strict=True)
    got: Counter[tuple[int, int, str]] = Counter()
    for start, group, level, count, total in rows:
        assert level == (0 if group == 0 else 1)
        got.update({(start, group, "count"): count, (start, group, "sum"): total})
    assert got == found
    assert len(found) > 20


def test_the_load_is_that_of_the_readings_and_of_the_hierarchy() -> None:
    of = params(children=10, height=3, frequency="2/s", heartbeat="1s", window="10s")
    assert hierarchical_aggregation.rate(of) == 2_000 + 1_004
    readings, hierarchy = hierarchical_aggregation.streams(of)
    assert (readings.share * 3_004, hierarchy.share * 3_004) == pytest.approx((2_000, 1_004))


def test_the_hierarchy_is_sent_again_in_times_of_which_windows_consist() -> None:
    assert params(window="60s", heartbeat="10s").beat == 10 * SECOND
    assert params(window="60s", slide="4s", heartbeat="10s").beat == 2 * SECOND
    with pytest.raises(ValueError, match="no common divisor of 1ms"):
        params(window="60s", slide="1500us")


def test_without_a_load_of_a_stream_no_sensor_is_in_a_group() -> None:
    of = params()
    shapes = steps([(SECOND, 0.0), (SECOND, 1_000.0)]).plan(4 * SECOND)
    inputs = Inputs({"readings": constant(100).plan(4 * SECOND), "hierarchy": shapes}, 5, ORIGIN)
    answer = hierarchical_aggregation.reference(of, inputs).until({"readings": 400, "hierarchy": 0})
    assert len(answer["group_id"]) == 0
