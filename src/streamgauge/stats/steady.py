"""The end of a warm-up: when a series has become flat, and which of its first samples to exclude."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt

MAX_FALL = 0.03
SPAN = 3


def is_flat(values: Sequence[float], change: float = MAX_FALL) -> bool:
    """Whether the mean of the last three values is at most ``change`` below the mean of the three before them.

    Means are compared, because a single value may be high by noise. Only a fall counts, because a rise shows that the
    values do not get smaller. Values that are not finite are never flat.
    """
    last = values[-2 * SPAN :]
    if len(last) < 2 * SPAN or not all(math.isfinite(value) for value in last):
        return False
    return fmean(last[SPAN:]) >= (1 - change) * fmean(last[:SPAN])


def has_stopped_rising(values: Sequence[float], gain: float) -> bool:
    """Whether the last two values are at most ``gain`` above the largest one before them."""
    return len(values) > 2 and max(values[-2:]) <= (1 + gain) * max(values[:-2])


Floats = npt.NDArray[np.float64]

_BLOCK = 5
_MAX_REMAINING_ERROR = 0.6
_NEAR_MINIMUM = 1.3
_CLEAR = 3.0
_ROUNDING = 1e-9
"""Relative difference below which two rates are equal: times within a week, in seconds, are not more precise."""
_INFLATION = 3.0  # (1 + 0.5) / (1 − 0.5): what that correlation adds to the variance of a mean


def warm_up_samples(series: Floats) -> int:
    """The number of samples at the beginning to exclude, by White's MSER rule on blocks of five.

    The rule selects the first cut with nearly the smallest squared error of the remaining mean. Cuts in the second half
    are not considered, because the rule is not reliable there. The smallest error would often be a chance of the noise.
    The cut must be clearly better than none. The rule balances bias against noise and keeps the last part of a warm-up,
    so one more block is excluded.
    """
    blocks = len(series) // _BLOCK
    if blocks < 4:
        return 0
    means = series[: blocks * _BLOCK].reshape(blocks, _BLOCK).mean(axis=1)
    squares, remaining = _tail_squares(means), np.arange(blocks, 0, -1)
    if squares[0] <= blocks * (_ROUNDING * float(np.abs(means).max())) ** 2:
        return 0  # the values are equal except for rounding
    candidates = (squares / (remaining * remaining))[: blocks // 2 + 1]
    best = int(np.flatnonzero(candidates <= _NEAR_MINIMUM * candidates.min())[0])
    return (best + 1) * _BLOCK if candidates[best] < _MAX_REMAINING_ERROR * candidates[0] else 0


def _tail_squares(values: Floats) -> Floats:
    """For each value, the sum of squared deviations of it and all later values from their mean.

    It is computed with Welford's recurrence from the end. Every term is a square, so rounding cannot make a sum
    negative, as it can with the difference of two large squares.
    """
    count = np.arange(1, len(values) + 1)
    backwards = values[::-1] - values[-1]
    before = np.concatenate([[0.0], np.cumsum(backwards)[:-1] / count[:-1]])
    return np.cumsum((backwards - before) ** 2 * (count - 1) / count)[::-1]


def is_steady(series: Floats) -> bool:
    """Whether the two halves of the series have the same mean, within its noise.

    The noise is the standard deviation of the steps between neighbours, because a warm-up would increase other measures
    of it. For a lag-1 correlation of 0.5, it is equal to the standard deviation of the series.
    """
    half = len(series) // 2
    if half < 3:
        return False
    gap = float(abs(series[:half].mean() - series[-half:].mean()))
    noise, rounding = float(np.std(np.diff(series))), _ROUNDING * float(np.abs(series).max())
    return gap <= _CLEAR * noise * math.sqrt(2 * _INFLATION / half) + rounding
