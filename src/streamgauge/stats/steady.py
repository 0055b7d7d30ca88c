"""The end of warm-up: where to cut a series so that what is left is one steady stretch."""

import math
from collections.abc import Sequence
from statistics import fmean

import numpy as np
import numpy.typing as npt

MOST_CHANGE = 0.03
SPAN = 3


def flat(values: Sequence[float], change: float = MOST_CHANGE) -> bool:
    """Whether the mean of the last three values is at most ``change`` below the mean of the three before them.

    Means, because a single value that noise lifts says nothing. A rise says that there is nothing more to gain, so
    only a fall counts. Values that are not finite, where nothing was done, are never flat.
    """
    last = values[-2 * SPAN :]
    if len(last) < 2 * SPAN or not all(math.isfinite(value) for value in last):
        return False
    return fmean(last[SPAN:]) >= (1 - change) * fmean(last[:SPAN])


Floats = npt.NDArray[np.float64]

_BLOCK = 5
_GAIN = 0.6
_NEARLY = 1.3
_CLEAR = 3.0
_ROUNDING = 1e-9
"""Relative difference of two rates that says nothing: moments of a week, in seconds, are no finer."""
_INFLATION = 3.0  # (1 + 0.5) / (1 − 0.5): what that correlation adds to the variance of a mean


def cut(series: Floats) -> int:
    """How many samples of the beginning to leave out: White's MSER rule on blocks of five.

    The first cut with nearly the least (squared) error of the remaining mean wins, in the first half only
    (past it the rule is known to see ghosts; the very least would often be the luckiest piece of the noise),
    and only if it is clearly better than no cut. The rule weighs bias
    against noise, so it leaves the last of a warm-up in; one block more takes that out.
    """
    blocks = len(series) // _BLOCK
    if blocks < 4:
        return 0
    means = series[: blocks * _BLOCK].reshape(blocks, _BLOCK).mean(axis=1)
    squares, left = _tail_squares(means), np.arange(blocks, 0, -1)
    if squares[0] <= blocks * (_ROUNDING * float(np.abs(means).max())) ** 2:
        return 0  # equal values, as far as their rounding tells
    candidates = (squares / (left * left))[: blocks // 2 + 1]
    best = int(np.flatnonzero(candidates <= _NEARLY * candidates.min())[0])
    return (best + 1) * _BLOCK if candidates[best] < _GAIN * candidates[0] else 0


def _tail_squares(values: Floats) -> Floats:
    """Sum of squared deviations from its own mean, of the tail from each value on.

    Welford's recurrence from the end: every term is a square, so rounding cannot make a sum negative, as it does where
    a sum is the difference of two large squares.
    """
    count = np.arange(1, len(values) + 1)
    backwards = values[::-1] - values[-1]
    before = np.concatenate([[0.0], np.cumsum(backwards)[:-1] / count[:-1]])
    return np.cumsum((backwards - before) ** 2 * (count - 1) / count)[::-1]


def is_steady(series: Floats) -> bool:
    """Whether the two halves of the series have the same mean, as far as its noise allows to tell.

    The noise is read from the steps between neighbours, because a warm-up would widen any other measure
    of it; for a lag-1 correlation of 0.5 their standard deviation is that of the series itself.
    """
    half = len(series) // 2
    if half < 3:
        return False
    gap = float(abs(series[:half].mean() - series[-half:].mean()))
    noise, rounding = float(np.std(np.diff(series))), _ROUNDING * float(np.abs(series).max())
    return gap <= _CLEAR * noise * math.sqrt(2 * _INFLATION / half) + rounding
