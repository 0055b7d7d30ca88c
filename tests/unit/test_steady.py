"""The end of warm-up: a curve is cut off, noise alone is not."""

import numpy as np
import numpy.typing as npt
import pytest

from streamgauge.stats.steady import is_steady, warm_up_samples

Floats = npt.NDArray[np.float64]

HALF = 60 + 5
"""The middle of the series below, and a block more."""


def noise(length: int, seed: int, scale: float = 0.05, memory: float = 0.5) -> Floats:
    shock = np.random.default_rng(seed).standard_normal(length) * scale
    for i in range(1, length):
        shock[i] = memory * shock[i - 1] + np.sqrt(1 - memory**2) * shock[i]
    return shock


def warming(length: int, until: int, seed: int, scale: float = 0.05) -> Floats:
    """Growth of lag while a capacity comes up from 30 % to its full value."""
    to_go = np.maximum(1 - np.arange(length) / until, 0.0)
    return 0.7 * to_go**2 + noise(length, seed, scale)


@pytest.mark.parametrize("until", [10, 20, 30])
def test_a_warm_up_curve_is_cut_where_it_has_come_close_to_its_end(until: int) -> None:
    found = [warm_up_samples(warming(120, until, seed)) for seed in range(200)]
    assert min(found) >= until * 0.4
    assert np.mean([c <= until + 15 for c in found]) > 0.75
    assert max(found) <= HALF


def test_what_is_left_after_the_cut_has_the_mean_of_the_steady_part() -> None:
    kept = [(s := warming(120, 20, seed))[warm_up_samples(s) :].mean() for seed in range(100)]
    whole = [warming(120, 20, seed).mean() for seed in range(100)]
    assert abs(np.mean(kept)) < 0.01 < np.mean(whole)


def test_a_steady_series_is_left_unchanged_in_most_cases() -> None:
    cuts = [warm_up_samples(noise(120, seed)) for seed in range(400)]
    assert np.mean([c == 0 for c in cuts]) > 0.7
    assert max(cuts) <= HALF


def test_no_cut_goes_further_than_a_block_past_the_middle() -> None:
    late = np.concatenate([np.ones(90), np.zeros(30)])
    assert warm_up_samples(late) <= HALF


def test_a_series_of_equal_values_and_one_that_is_too_short_are_not_cut() -> None:
    assert warm_up_samples(np.full(100, 3.0)) == 0
    assert warm_up_samples(np.concatenate([[100.0], np.zeros(18)])) == 0


def test_no_rate_makes_rounding_errors_look_like_a_warm_up() -> None:
    """A noiseless overload: the lag grows by the same amount every second, rounded to whole events."""
    rng = np.random.default_rng(17)
    for rate in 10 ** rng.uniform(1, 9, 500):
        growth = np.diff(np.rint(rate * np.arange(1, 62)))
        assert warm_up_samples(growth) <= 30 + 5
        assert is_steady(growth)


@pytest.mark.parametrize("rate", [1 / 3, 19_607.843137, 779_700.1, 5e9 / 7])
def test_equal_values_that_differ_by_rounding_only_are_not_cut_and_are_steady(rate: float) -> None:
    time = np.arange(1, 200) * 0.1
    growth = np.diff(rate * time) / np.diff(time)
    assert np.ptp(growth) > 0
    assert warm_up_samples(growth) == 0
    assert is_steady(growth)


def test_a_cut_does_not_depend_on_the_level_of_the_series() -> None:
    curve = warming(120, 20, 3)
    assert warm_up_samples(curve) == warm_up_samples(curve + 1e6) > 0


def test_a_series_inside_its_warm_up_is_not_steady() -> None:
    inside = [is_steady(warming(20, 20, seed)) for seed in range(200)]
    assert np.mean(inside) < 0.02


def test_noise_around_one_level_is_steady() -> None:
    assert np.mean([is_steady(noise(60, seed)) for seed in range(300)]) > 0.95
    assert is_steady(np.full(20, 3.0))


def test_a_step_is_not_steady() -> None:
    assert not is_steady(np.concatenate([noise(30, 1), noise(30, 2) + 1.0]))


def test_too_few_samples_are_not_steady() -> None:
    assert not is_steady(np.zeros(5))
    assert is_steady(np.zeros(6))
