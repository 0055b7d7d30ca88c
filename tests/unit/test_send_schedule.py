"""Each send has what became due since the last one, for the partition it belongs to, once and in order."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import constant, steps
from streamgauge.model.streams import StreamPartition
from streamgauge.model.units import SECOND
from streamgauge.run.driver.send_schedule import (
    EventBuffer,
    PartitionBuffer,
    SendSchedule,
    events_in_partition,
    open_source,
)
from streamgauge.run.driver.specs import MILLI
from streamgauge.transports.registry import transports
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.data.shopping import PURCHASE_STREAM, Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation


@pytest.mark.parametrize(("events", "shares"), [(0, (0, 0, 0)), (1, (1, 0, 0)), (3, (1, 1, 1)), (5, (2, 2, 1))])
def test_events_are_dealt_out_to_the_partitions_in_turn(events: int, shares: tuple[int, int, int]) -> None:
    assert tuple(events_in_partition(events, p, 3) for p in range(3)) == shares


@settings(deadline=None)
@given(st.integers(0, 10**12), st.integers(1, 64))
def test_the_partitions_together_contain_every_event(events: int, partitions: int) -> None:
    assert sum(events_in_partition(events, p, partitions) for p in range(partitions)) == events


def test_a_send_has_what_became_due_since_the_last_and_nothing_before_it_is_due() -> None:
    schedule, step = SendSchedule(constant(1000.0).plan(SECOND), 5 * MILLI, 1), 5 * MILLI
    assert [schedule.due_before(step * sends) for sends in range(1, 5)] == [5, 10, 15, 20]
    assert int(schedule.plan.due(4)) < step <= int(schedule.plan.due(5))


def test_a_send_interval_that_is_no_whole_number_of_microseconds_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number of microseconds"):
        SendSchedule(constant(1000.0).plan(SECOND), 1_500, 1)


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("patience", [0, 10**9])
def test_events_that_were_made_ahead_are_those_of_the_workload(partitions: int, patience: int) -> None:
    """Whether there is time to prepare or none at all, the same events come with the same sends."""
    plan = steps([(SECOND // 4, 300_000.0), (SECOND // 4, 20_000.0)]).plan(SECOND // 2)
    params, inputs = WindowedAggregationParams(), Inputs({"purchases": plan}, seed=3, origin_ns=0)
    source = open_source(windowed_aggregation, params, PURCHASE_STREAM, inputs, partitions=partitions)
    step = 10 * MILLI
    schedule = SendSchedule(plan, step, partitions)
    buffers = [PartitionBuffer(StreamPartition("purchases", p), source, schedule) for p in range(partitions)]
    time = iter(range(10**9))
    ready = EventBuffer(buffers, 50 * MILLI, lambda: next(time))
    got: dict[str, list[int]] = {"due": [], "price": [], "user_id": []}
    for moment in range(step, 51 * step, step):
        ready.make_ahead(moment, SECOND // 2, patience)
        parts: list[Any] = ready.take_due(moment)
        rows = np.concatenate([b.column("due").cast("int64").to_numpy() for _, b in parts])
        assert len(rows) == schedule.due_before(moment) - len(got["due"])
        assert (rows * 1000 >= moment - step - 1000).all()
        assert (rows * 1000 < moment).all()
        for name, column in got.items():
            by_partition = [b.column(name).cast("int64").to_numpy() for _, b in parts]
            column.extend(np.concatenate(by_partition).tolist())
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
        (5_000, 4, 50, 8),  # four requests at a time: more of them would take_due the broker's core
        (200, 1, 50, 1),  # most intervals have no event
    ],
)
def test_case_17_the_send_interval_follows_load_and_objective(
    load: float, partitions: int, latency: int, interval: int
) -> None:
    kafka = transports()["kafka"]
    found = kafka.send_interval_ns(load, partitions, latency * MILLI)
    assert found == interval * MILLI
    assert found <= kafka.usual_interval_ns
