"""Ticks publish what became due since the last one, to the partition it belongs to, once and in order."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import constant, steps
from streamgauge.model.units import SECOND
from streamgauge.run.driver.send_schedule import (
    KAFKA_TICK,
    MILLI,
    Pace,
    Preparation,
    Stock,
    held,
    open_source,
    send_interval,
)
from streamgauge.transports.ledger import Lane
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.data.shopping import PURCHASE_STREAM, Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation


@pytest.mark.parametrize(("events", "shares"), [(0, (0, 0, 0)), (1, (1, 0, 0)), (3, (1, 1, 1)), (5, (2, 2, 1))])
def test_events_are_dealt_out_to_the_partitions_in_turn(events: int, shares: tuple[int, int, int]) -> None:
    assert tuple(held(events, p, 3) for p in range(3)) == shares


@settings(deadline=None)
@given(st.integers(0, 10**12), st.integers(1, 64))
def test_the_partitions_together_hold_every_event(events: int, partitions: int) -> None:
    assert sum(held(events, p, partitions) for p in range(partitions)) == events


def test_a_tick_publishes_what_became_due_since_the_last_and_nothing_before_it_is_due() -> None:
    pace = Pace(constant(1000.0).plan(SECOND), 5 * MILLI, 1)
    assert [pace.due_before(pace.moment(tick)) for tick in range(4)] == [5, 10, 15, 20]
    assert int(pace.plan.due(4)) < pace.moment(0) <= int(pace.plan.due(5))


@pytest.mark.parametrize(("elapsed", "tick"), [(0, 0), (1, 0), (5 * MILLI, 0), (5 * MILLI + 1, 1), (11 * MILLI, 2)])
def test_the_tick_of_a_moment_is_the_first_that_does_not_come_before_it(elapsed: int, tick: int) -> None:
    assert Pace(constant(1000.0).plan(SECOND), 5 * MILLI, 1).tick_at(elapsed) == tick


def test_a_tick_that_is_no_whole_number_of_microseconds_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number of microseconds"):
        Pace(constant(1000.0).plan(SECOND), 1_500, 1)


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("patience", [0, 10**9])
def test_what_was_prepared_ahead_is_what_the_workload_says(partitions: int, patience: int) -> None:
    """Whether there is time to prepare or none at all, the same events come at the same ticks."""
    plan = steps([(SECOND // 4, 300_000.0), (SECOND // 4, 20_000.0)]).plan(SECOND // 2)
    params, inputs = WindowedAggregationParams(), Inputs({"purchases": plan}, seed=3, origin_ns=0)
    source = open_source(windowed_aggregation, params, PURCHASE_STREAM, inputs, partitions=partitions)
    pace = Pace(plan, 10 * MILLI, partitions)
    stocks = [Stock(Lane("purchases", p), source, pace) for p in range(partitions)]
    time = iter(range(10**9))
    preparation = Preparation(stocks, 50 * MILLI, lambda: next(time))
    got: dict[str, list[int]] = {"due": [], "price": [], "user_id": []}
    for tick in range(50):
        preparation.fill(pace.moment(tick), SECOND // 2, patience)
        parts: list[Any] = preparation.take(pace.moment(tick))
        rows = np.concatenate([b.column("due").cast("int64").to_numpy() for _, b in parts])
        assert len(rows) == pace.due_before(pace.moment(tick)) - len(got["due"])
        assert (rows * 1000 >= pace.moment(tick - 1) - 1000).all()
        assert (rows * 1000 < pace.moment(tick)).all()
        for name, column in got.items():
            by_lane = [b.column(name).cast("int64").to_numpy() for _, b in parts]
            column.extend(np.concatenate(by_lane).tolist())
    everything = Purchases(params, plan, 3).events(0, plan.total)
    for name, column in got.items():
        assert sorted(column) == sorted(everything[name].tolist())


@pytest.mark.parametrize(
    ("load", "partitions", "latency", "interval"),
    [
        (5_000, 1, 0, 2),  # no objective on a latency: an event waits 1 ms on average
        (5_000, 1, 100, 2),
        (5_000, 1, 300, 6),
        (5_000, 1, 2_000, 10),  # a micro-batch would not be told apart either
        (5_000, 4, 50, 8),  # four requests at a time: more of them would take the broker's core
        (200, 1, 50, 1),  # most ticks send nothing
    ],
)
def test_case_17_the_send_interval_follows_load_and_objective(
    load: float, partitions: int, latency: int, interval: int
) -> None:
    found = send_interval(True, load, partitions, latency * MILLI)
    assert found == interval * MILLI
    assert found <= KAFKA_TICK
