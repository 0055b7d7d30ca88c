"""The trend of lag: mean increments with an honest interval, where a fitted line's is a lie."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import linregress

from streamgauge.judge.trend_rules import CLEAR_REVERSION
from streamgauge.model.measurement import Interval
from streamgauge.stats.trend import MIN_INCREMENTS, increments, mean_error, quantile, recent, reversion

Floats = npt.NDArray[np.float64]

TRUTH = 12.5
SERIES = 2000


def ar1(rho: float, count: int, length: int, seed: int) -> Floats:
    """Many stationary AR(1) series of variance one, one per row."""
    shock = np.random.default_rng(seed).standard_normal((count, length))
    shock[:, 1:] *= np.sqrt(1 - rho**2)
    for i in range(1, length):
        shock[:, i] += rho * shock[:, i - 1]
    return shock


def lags(rho: float, length: int, seed: int, count: int = SERIES) -> Floats:
    """Lag that grows by TRUTH per second with correlated noise in its increments, one series per row."""
    steps = TRUTH + 40.0 * ar1(rho, count, length, seed)
    return np.concatenate([np.zeros((count, 1)), np.cumsum(steps, axis=1)], axis=1)


def interval(time: Floats, level: Floats) -> Interval:
    found = increments(time, level)
    assert found is not None
    return found


@pytest.mark.parametrize("length", [60, 120])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5])
def test_the_95_percent_interval_contains_the_true_growth_in_93_to_97_percent(rho: float, length: int) -> None:
    time = np.arange(length + 1.0)
    observed = [interval(time, level) for level in lags(rho, length, seed=length)]
    assert 0.93 <= np.mean([i.low <= TRUTH <= i.high for i in observed]) <= 0.97


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_the_interval_of_a_line_fitted_to_lag_contains_the_true_growth_in_less_than_40_percent(rho: float) -> None:
    time = np.arange(61.0)
    held = []
    for level in lags(rho, 60, seed=5, count=500):
        line = linregress(time, level)
        held.append(abs(line.slope - TRUTH) <= quantile(59, 0.975) * line.stderr)
    assert np.mean(held) < 0.40


def test_the_interval_contains_the_true_growth_even_if_samples_are_unevenly_spaced() -> None:
    rng = np.random.default_rng(6)
    held = []
    for _ in range(SERIES):
        spans = rng.uniform(0.2, 2.0, 80)
        level = np.concatenate([[0.0], np.cumsum(TRUTH * spans + 40.0 * np.sqrt(spans) * rng.standard_normal(80))])
        observed = interval(np.concatenate([[0.0], np.cumsum(spans)]), level)
        held.append(observed.low <= TRUTH <= observed.high)
    assert 0.93 <= np.mean(held) <= 0.97


def test_the_trend_is_the_growth_from_first_to_last_however_the_samples_lie_between() -> None:
    observed = interval(np.array([0.0, 0.5, 3.0, 3.2, 7.0, 8.0, 10.0]), np.array([5.0, 9.0, 1.0, 4.0, 2.0, 30.0, 25.0]))
    assert observed.mean == pytest.approx(2.0)
    assert observed.low < 2.0 < observed.high
    assert observed.samples == 6


def test_a_straight_line_has_no_error_at_all() -> None:
    time = np.array([0.0, 1.0, 1.5, 4.0, 5.0, 9.0])
    observed = interval(time, 7.0 - 3.0 * time)
    assert observed.mean == pytest.approx(-3.0)
    assert observed.error == pytest.approx(0.0, abs=1e-9)


def test_too_few_increments_have_no_trend() -> None:
    for samples in range(MIN_INCREMENTS + 1):
        assert increments(np.arange(float(samples)), np.arange(float(samples))) is None
    assert increments(np.arange(MIN_INCREMENTS + 1.0), np.zeros(MIN_INCREMENTS + 1)) is not None


def test_time_that_stands_still_or_runs_back_has_no_trend() -> None:
    assert increments(np.array([0.0, 1, 2, 2, 3, 4, 5]), np.arange(7.0)) is None
    assert increments(np.array([0.0, 1, 3, 2, 4, 5, 6]), np.arange(7.0)) is None


def test_memory_makes_the_interval_wider() -> None:
    error, memory, freedom = np.array([mean_error(s - s.mean()) for s in ar1(0.5, 400, 200, 7)]).mean(axis=0)
    assert memory == pytest.approx(0.5, abs=0.03)
    assert error == pytest.approx(np.sqrt(3 / 200), rel=0.05)
    assert freedom < 100


def test_memory_is_not_underestimated_in_short_series() -> None:
    # without the correction of Marriott and Pope twenty samples would see a third
    observed = [mean_error(s - s.mean())[1] for s in ar1(0.5, 2000, 20, 9)]
    assert 0.42 < np.mean(observed) < 0.5


def test_the_correlation_of_a_saw_tooth_is_limited_to_a_quarter() -> None:
    _, memory, _ = mean_error(np.tile([1.0, -1.0], 50))
    assert memory == -0.25


def test_a_higher_confidence_is_a_wider_interval() -> None:
    level = lags(0.3, 60, 8, count=1)[0]
    wide, narrow = increments(np.arange(61.0), level, 0.99), interval(np.arange(61.0), level)
    assert wide is not None
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high
    assert narrow.high - narrow.mean == pytest.approx(quantile(narrow.freedom, 0.975) * narrow.error)


def test_a_level_that_returns_is_distinguished_from_one_that_walks_or_grows() -> None:
    rng = np.random.default_rng(11)
    returns = {"noise": 0, "walk": 0, "overload": 0}
    for _ in range(500):
        noise = rng.normal(0.0, 0.1, 40)
        levels = {"noise": 1 + noise, "walk": 1 + np.cumsum(noise), "overload": 1 + np.cumsum(0.02 + 0.5 * noise)}
        for name, level in levels.items():
            returns[name] += reversion(level) <= CLEAR_REVERSION
    assert returns["noise"] > 400
    assert returns["walk"] <= 15
    assert returns["overload"] <= 10


@pytest.mark.parametrize("level", [[1.0] * 30, [1.0, 2.0] * 5, []])
def test_too_few_levels_or_none_that_move_prove_nothing(level: list[float]) -> None:
    assert reversion(np.array(level)) == 0.0


def test_a_straight_line_of_any_slope_does_not_return() -> None:
    """A noiseless overload: the lag is a line, rounded to whole events, as a share of the load."""
    rng = np.random.default_rng(17)
    for load in 10 ** rng.uniform(1, 9, 500):
        growth = load * rng.uniform(0.001, 1)
        level = np.rint(growth * np.arange(1, 61)) / load
        assert reversion(level) > CLEAR_REVERSION


@pytest.mark.parametrize("level", [1 + 0.3 * np.arange(40), 1e9 + 1e-3 * np.arange(40), 0.1 * np.arange(12)])
def test_a_line_without_noise_shows_no_returning(level: Floats) -> None:
    assert reversion(level) == 0.0


def test_returning_is_judged_the_same_in_every_unit_and_at_every_level() -> None:
    level = 1 + 0.1 * np.random.default_rng(4).standard_normal(60)
    observed = reversion(level)
    assert observed < CLEAR_REVERSION
    for scale, shift in ((1e9, 0.0), (1e-9, 0.0), (1.0, 1e5), (1e6, -1e9)):
        assert reversion(scale * level + shift) == pytest.approx(observed, rel=1e-6)


@pytest.mark.parametrize("step", [1, 2, 4])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_the_growth_of_the_second_half_is_clearly_wrong_in_at_most_the_stated_share(rho: float, step: int) -> None:
    """Acknowledgements some seconds apart, and noise whose correlation from second to second is at most 0.5."""
    time = np.arange(0.0, 41.0, step)
    above = []
    for level in lags(rho, 40, seed=11)[:, ::step]:
        found = recent(time, level)
        assert found is not None
        above.append(found.mean - TRUTH >= quantile(found.freedom, 0.975) * found.error)
    assert np.mean(above) <= 0.03


def test_the_second_half_is_used_with_three_increments_or_not_at_all() -> None:
    assert recent(np.arange(4.0), np.arange(4.0)) is None
    assert recent(np.array([]), np.array([])) is None
    found = recent(np.arange(7.0), np.concatenate([np.zeros(3), np.arange(1.0, 5.0)]))
    assert found is not None
    assert (found.mean, found.samples) == (1.0, 3)
