"""Whatever range is asked for, it is the slice of the whole stream."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import LoadProfile, Plan, constant, ramp, steps
from streamgauge.model.units import SECOND
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

rates = st.floats(0.5, 60_000)
profiles: st.SearchStrategy[LoadProfile] = st.one_of(
    st.builds(constant, rates),
    st.builds(ramp, rates, rates, st.integers(1, 3 * SECOND)),
    st.lists(st.tuples(st.integers(1, 2 * SECOND), rates), min_size=1, max_size=5).map(steps),
)
plans: st.SearchStrategy[Plan] = profiles.map(lambda profile: profile.plan(3 * SECOND)).filter(
    lambda plan: plan.total > 0
)
WHOLE = Purchases(WindowedAggregationParams(), constant(100_000).plan(SECOND), seed=3)
ALL = WHOLE.events(0, 100_000)


@given(plans, st.data())
@settings(max_examples=200, deadline=None)
def test_due_times_of_a_range_are_those_of_its_events(plan: Plan, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, plan.total))
    stop = data.draw(st.integers(start, plan.total))
    step = data.draw(st.integers(1, 100))
    origin = data.draw(st.integers(-(10**18), 2 * 10**18))
    unit = data.draw(st.sampled_from([1, 1000, 10**6]))
    expected = (origin + plan.due(np.arange(start, stop, step))) // unit
    assert np.array_equal(plan.due_range(start, stop, step, origin=origin, unit=unit), expected)


@given(st.integers(0, 100_000), st.integers(0, 100_000), st.integers(1, 50), st.data())
@settings(max_examples=100, deadline=None)
def test_a_range_of_a_partition_is_a_slice_of_the_whole(a: int, b: int, stride: int, data: st.DataObject) -> None:
    start, stop = sorted((a, b))
    offset = data.draw(st.integers(0, stride - 1))
    part = WHOLE.events(start, stop, stride, offset)
    for name, column in ALL.items():
        assert np.array_equal(part[name], column[start + (offset - start) % stride : stop : stride])
