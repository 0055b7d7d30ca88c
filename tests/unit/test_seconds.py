"""Seconds: columns of equal length that can be cut, joined, and merged over drivers."""

import numpy as np
import pytest
from judge_samples import latencies, seconds

from streamgauge.model.seconds import COLUMNS, Seconds, join, merge
from streamgauge.model.units import SECOND


def test_a_column_that_was_not_recorded_is_all_zero() -> None:
    part = Seconds(3, {"offered": np.array([5, 6])})
    assert part["drops"].tolist() == [0, 0]
    assert part.latency("event-time").count.size == 0


def test_a_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no such columns"):
        Seconds(0, {"offerred": np.zeros(1, np.int64)})
    with pytest.raises(KeyError):
        Seconds(0, {})["offerred"]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        Seconds(0, {"offered": np.zeros(2, np.int64), "acks": np.zeros(3, np.int64)})


def test_a_cut_keeps_the_requested_seconds_and_their_latencies() -> None:
    whole = seconds(range(10), kinds={"event-time": latencies([(s, s * SECOND, 1) for s in range(10)])})
    part = whole.between(3, 6)
    assert (part.start, part.stop, len(part)) == (3, 6, 3)
    assert part["ack_lag"].tolist() == [3, 4, 5]
    assert part.latency("event-time").second.tolist() == [3, 4, 5]


def test_a_cut_outside_of_what_there_is_is_empty_or_shorter() -> None:
    whole = seconds(range(10))
    assert len(whole.between(20, 30)) == 0
    assert len(whole.between(7, 30)) == 3
    assert len(whole.between(6, 2)) == 0


def test_stretches_that_follow_each_other_join_to_the_whole() -> None:
    whole = seconds(range(10), kinds={"event-time": latencies([(s, s * SECOND, 2) for s in range(10)])})
    again = join([whole.between(0, 4), whole.between(4, 4), whole.between(4, 10)])
    for name in COLUMNS:
        assert np.array_equal(again[name], whole[name])
    assert np.array_equal(again.latency("event-time").bucket, whole.latency("event-time").bucket)


def test_nothing_joins_to_nothing() -> None:
    assert len(join([])) == 0
    assert join([])["offered"].size == 0


def test_stretches_with_a_gap_between_them_do_not_join() -> None:
    whole = seconds(range(10))
    with pytest.raises(ValueError, match="4 and 5 do not follow"):
        join([whole.between(0, 4), whole.between(5, 10)])


def test_a_column_that_one_stretch_lacks_is_zero_there() -> None:
    left, right = Seconds(0, {"offered": np.array([1])}), Seconds(1, {"offered": np.array([2]), "drops": np.array([3])})
    assert join([left, right])["drops"].tolist() == [0, 3]


def test_two_drivers_of_one_trial_add_up_and_the_larger_extreme_stays() -> None:
    one = seconds([10, 20], schedule_lag=5, drops=1)
    other = seconds([40, 10], schedule_lag=9, drops=2)
    both = merge(one, other)
    assert both["offered"].tolist() == [200_000, 200_000]
    assert both["drops"].tolist() == [3, 3]
    assert both["queue"].tolist() == [50, 30]
    assert both["schedule_lag"].tolist() == [9, 9]


def test_the_lags_of_two_drivers_add_up() -> None:
    early = Seconds(0, {"ack_time": np.array([5, -1]), "ack_lag": np.array([700, -1])})
    late = Seconds(0, {"ack_time": np.array([6, 8]), "ack_lag": np.array([3, 4])})
    for both in (merge(early, late), merge(late, early)):
        assert both["ack_time"].tolist() == [6, 8]
        assert both["ack_lag"].tolist() == [703, 4]


def test_different_stretches_cannot_be_merged() -> None:
    whole = seconds(range(10))
    with pytest.raises(ValueError, match="the same seconds"):
        merge(whole.between(0, 4), whole.between(1, 5))
