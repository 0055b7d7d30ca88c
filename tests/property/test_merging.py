"""Merging is addition: in whatever order drivers and stretches come together, the counts are the same."""

from collections import Counter
from functools import reduce

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from streamgauge.model.seconds import LARGEST, SUMMED, Latencies, Seconds, join, merge
from streamgauge.stats import buckets

micros = st.lists(st.integers(0, 2**45), min_size=1, max_size=60)
Histogram = Counter[tuple[int, int]]


def counted(values: list[int]) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(buckets.index(values), return_counts=True)


@st.composite
def stretches(draw: st.DrawFn, length: int) -> Seconds:
    """What one driver may have seen of the same ``length`` seconds."""
    names = draw(st.lists(st.sampled_from(SUMMED + LARGEST), min_size=1, unique=True))
    columns = {n: draw(arrays(np.int64, length, elements=st.integers(0, 10**12))) for n in names}
    rows = draw(st.lists(st.tuples(st.integers(0, length - 1), st.integers(0, 50), st.integers(1, 9)), max_size=12))
    table = np.array(rows, np.int64).reshape(-1, 3)
    return Seconds(0, columns, {"event-time": Latencies(table[:, 0], table[:, 1], table[:, 2])})


def histogram(part: Seconds) -> Histogram:
    found: Histogram = Counter()
    latency = part.latency("event-time")
    for second, bucket, count in zip(latency.second, latency.bucket, latency.count, strict=True):
        found[int(second), int(bucket)] += int(count)
    return found


def assert_same(left: Seconds, right: Seconds) -> None:
    for name in SUMMED + LARGEST:
        assert np.array_equal(left[name], right[name]), name
    assert histogram(left) == histogram(right)


untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Properties are searched by examples, not by the clock: a busy machine must not fail one."""


@untimed
@given(micros, micros)
def test_the_histogram_of_two_lists_is_the_sum_of_their_histograms(left: list[int], right: list[int]) -> None:
    (a, a_count), (b, b_count) = counted(left), counted(right)
    bucket, count = counted(left + right)
    stacked, stacked_count = np.concatenate([a, b]), np.concatenate([a_count, b_count])
    for share in (0.05, 0.5, 0.9, 0.99, 1.0):
        assert buckets.quantile(stacked, stacked_count, share) == buckets.quantile(bucket, count, share)


@untimed
@given(st.lists(st.integers(0, 2**45), min_size=1, max_size=300), st.floats(0.0, 1.0))
def test_a_quantile_is_in_the_bucket_of_the_sorted_samples_value(values: list[int], share: float) -> None:
    bucket, count = counted(values)
    exact = sorted(values)[max(1, int(np.ceil(share * len(values) - 1e-9))) - 1]
    found = buckets.quantile(bucket, count, share)
    assert buckets.index(found) == buckets.index(exact)
    assert exact <= found <= exact * 1.001


@untimed
@given(st.data(), st.integers(1, 6))
def test_merging_is_the_same_in_any_order_and_grouping(data: st.DataObject, length: int) -> None:
    a, b, c = (data.draw(stretches(length)) for _ in range(3))
    assert_same(merge(a, b), merge(b, a))
    assert_same(merge(merge(a, b), c), merge(a, merge(b, c)))


@untimed
@given(st.data(), st.integers(1, 8), st.integers(0, 8))
def test_cutting_and_joining_changes_nothing(data: st.DataObject, length: int, at: int) -> None:
    whole = data.draw(stretches(length))
    assert_same(join([whole.between(0, at), whole.between(at, length)]), whole)


@untimed
@given(st.data(), st.integers(2, 8), st.integers(1, 7))
def test_merging_then_joining_is_joining_then_merging(data: st.DataObject, length: int, at: int) -> None:
    drivers = [data.draw(stretches(length)) for _ in range(3)]
    cuts = [(0, min(at, length - 1)), (min(at, length - 1), length)]
    by_stretch = [reduce(merge, [d.between(*c) for d in drivers]) for c in cuts]
    assert_same(join(by_stretch), reduce(merge, drivers))
