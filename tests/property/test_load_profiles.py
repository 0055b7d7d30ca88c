"""Load profiles: ``due(n)`` and its inverse are exact for every shape and for billions of events."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import (
    LoadProfile,
    Plan,
    constant,
    fluctuating,
    ramp,
    replay,
    scaled,
    spikes,
    steps,
)
from streamgauge.model.units import SECOND

modest = settings(deadline=None, max_examples=60, derandomize=True)
rates = st.one_of(st.floats(0.01, 5e9), st.integers(1, 10**9).map(float))
spans = st.one_of(st.integers(1, 30 * SECOND), st.integers(1, 30).map(lambda s: s * SECOND))

profiles = st.one_of(
    rates.map(constant),
    st.lists(st.tuples(spans, rates), min_size=1, max_size=5).map(steps),
    st.builds(ramp, rates, rates, st.integers(SECOND, 30 * SECOND)),
    st.builds(
        lambda base, peak, every, share: spikes(base, peak, every, max(1, every // share), 4 * every),
        rates,
        rates,
        st.integers(1000, 10 * SECOND),
        st.integers(2, 50),
    ),
    st.builds(fluctuating, rates, st.one_of(st.just(0.0), rates), st.integers(3, 60 * SECOND)),
    st.builds(replay, st.lists(rates, min_size=1, max_size=8), spans),
)


def numbers(plan: Plan, data: st.DataObject) -> "np.typing.NDArray[np.int64]":
    drawn = data.draw(st.lists(st.integers(0, plan.total - 1), min_size=1, max_size=50))
    near_ends = [n for f in plan.first[:5].tolist() for n in (f - 1, f, f + 1)]
    return np.array([n for n in [*drawn, *near_ends, plan.total - 1] if 0 <= n < plan.total], np.int64)


@modest
@given(profiles, st.integers(SECOND, 90 * SECOND), st.data())
def test_count_is_the_exact_inverse_of_due(profile: LoadProfile, horizon: int, data: st.DataObject) -> None:
    plan = profile.plan(horizon)
    if plan.total == 0:
        return
    n = numbers(plan, data)
    due = plan.due(n)
    before, until = plan.count(due), plan.count(due + 1)
    assert (before <= n).all()  # at its moment, the event itself is not yet counted
    assert (until > n).all()  # and a nanosecond later it is
    first_of_the_moment = plan.due(before[before < plan.total])
    assert (first_of_the_moment == due[before < plan.total]).all()


@modest
@given(profiles, st.integers(SECOND, 90 * SECOND), st.data())
def test_no_event_overtakes_another(profile: LoadProfile, horizon: int, data: st.DataObject) -> None:
    plan = profile.plan(horizon)
    if plan.total == 0:
        return
    due = plan.due(np.sort(numbers(plan, data)))
    assert (np.diff(due) >= 0).all()
    assert due.min() >= 0
    assert due.max() < plan.horizon
    moments = np.sort(np.array(data.draw(st.lists(st.integers(0, plan.horizon), min_size=2, max_size=20)), np.int64))
    assert (np.diff(plan.count(moments)) >= 0).all()


@modest
@given(profiles, st.integers(SECOND, 90 * SECOND))
def test_there_is_no_drift_from_the_exact_integral(profile: LoadProfile, horizon: int) -> None:
    plan = profile.plan(horizon)
    elapsed, exact = 0, Fraction(0)
    for piece in profile.pieces:
        elapsed, exact = elapsed + piece.duration, exact + piece.count(piece.duration)
        assert int(plan.count(elapsed)) == int(exact)
    rest = max(0, horizon - elapsed)
    assert plan.total == int(exact + Fraction(profile.last_rate) * Fraction(rest, SECOND))
    assert plan.horizon == max(horizon, elapsed)


def test_a_week_at_a_million_per_second_ends_on_the_very_event() -> None:
    week = 7 * 86_400
    plan = constant(1e6).plan(week * SECOND)
    assert plan.total == week * 10**6
    last = plan.total - 1
    assert plan.due(last) == week * SECOND - 1000
    assert plan.due([0, 1, last // 2]).tolist() == [0, 1000, last // 2 * 1000]


def test_billions_of_events_in_one_second_keep_their_order() -> None:
    plan = constant(8_999_999_999.0).plan(3 * SECOND)
    n = np.arange(plan.total - 1000, plan.total)
    assert (np.diff(plan.due(n)) >= 0).all()
    assert plan.total == 3 * 8_999_999_999


def test_more_than_can_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="nine billion"):
        constant(1e10).plan(SECOND)


def test_a_fractional_rate_loses_nothing_over_time() -> None:
    plan = constant(0.1).plan(1000 * SECOND)
    assert plan.total == 100
    assert constant(1 / 3).plan(30_000 * SECOND).total == int(Fraction(1 / 3) * 30_000) == 9_999


def test_an_event_outside_the_plan_is_refused() -> None:
    plan = constant(10.0).plan(SECOND)
    for n in (-1, 10):
        with pytest.raises(IndexError, match="0 … 9"):
            plan.due(n)


def test_a_silence_holds_no_event_and_moves_none() -> None:
    plan = steps([(SECOND, 2.0), (SECOND, 0.0), (SECOND, 2.0)]).plan(3 * SECOND)
    assert plan.due([0, 1, 2, 3]).tolist() == [0, SECOND // 2, 2 * SECOND, 5 * SECOND // 2]


def test_each_shape_has_the_rates_of_its_description() -> None:
    spiky = spikes(base=100.0, peak=1000.0, every=10 * SECOND, length=SECOND, duration=20 * SECOND)
    assert [(p.duration // SECOND, p.rate) for p in spiky.pieces] == [(9, 100.0), (1, 1000.0)] * 2
    assert spiky.peak == 1000.0
    wave = fluctuating(840.0, 280.0, 30 * SECOND)
    assert [p.rate for p in wave.pieces] == [840.0, 280.0, 840.0]
    assert ramp(0.0, 100.0, 10 * SECOND).mean_between(0, 10 * SECOND) == 50.0
    assert replay([10.0, 30.0], 2 * SECOND).plan(4 * SECOND).total == 80
    assert [piece.rate for piece in scaled(wave, lambda rate: rate * 2).pieces] == [1680.0, 560.0, 1680.0]


def test_a_ramp_grows_with_the_square_of_time() -> None:
    counts = ramp(0.0, 1000.0, 10 * SECOND).plan(10 * SECOND).count([t * SECOND for t in range(11)])
    assert counts.tolist() == [50 * t * t for t in range(11)]
    assert all(a < b for a, b in pairwise(counts.tolist()))


@modest
@given(profiles, st.integers(0, 60 * SECOND), st.integers(1, 60 * SECOND))
def test_the_mean_of_an_interval_is_what_the_plan_has_there(profile: LoadProfile, start: int, length: int) -> None:
    plan = profile.plan(start + length)
    planned = int(plan.count(start + length)) - int(plan.count(start))
    # events are whole, and evenly spread over segments of at most a second
    slack = 2 + 2 * profile.peak * 0.1
    assert profile.mean_between(start, start + length) * length / SECOND == pytest.approx(planned, abs=slack)


@modest
@given(rates, st.integers(0, 10**15), st.integers(0, 10**15))
def test_a_constant_profile_has_its_own_rate_in_every_interval(rate: float, start: int, length: int) -> None:
    assert constant(rate).mean_between(start, start + length) == rate
    assert steps([(SECOND, rate), (SECOND, rate)]).mean_between(start, start + length) == rate


def test_after_its_last_piece_the_last_rate_counts() -> None:
    profile = ramp(100.0, 2000.0, 30 * SECOND)
    assert profile.mean_between(0, 60 * SECOND) == 1525.0
    assert profile.mean_between(30 * SECOND, 90 * SECOND) == 2000.0
    assert profile.mean_between(15 * SECOND, 15 * SECOND) == pytest.approx(1050.0)


def test_a_rate_is_reached_at_the_moment_that_the_shape_has_for_it() -> None:
    spiky = spikes(base=100.0, peak=1000.0, every=10 * SECOND, length=SECOND, duration=20 * SECOND)
    assert spiky.reaches(500.0) == 9 * SECOND
    assert spiky.reaches(100.0) == 0
    assert spiky.reaches(1000.1) is None
    assert ramp(0.0, 100.0, 10 * SECOND).reaches(50.0) == 5 * SECOND
    assert ramp(100.0, 0.0, 10 * SECOND).reaches(50.0) == 0
