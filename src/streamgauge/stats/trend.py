"""The trend of an integrated series (lag, latency): the mean of its increments, with a confidence interval.

A line fitted to lag has a wrong interval, because the errors of lag add up. The increments are a stationary series with
short memory, and the mean of such a series has a known error. The memory is estimated as an AR(1) process with the
small-sample correction of Marriott and Pope (1954). The interval is Student's with the degrees of freedom of the
equivalent independent sample.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from streamgauge.model.measurement import Interval

Floats = npt.NDArray[np.float64]

MIN_INCREMENTS = 5
MIN_LEVELS = 12
MIN_RECENT = 3
"""The minimum number of increments of a second half. Student's quantile for two degrees of freedom is large enough."""
_ROUNDING = 1e-12
"""Relative difference below which two numbers are equal except for rounding."""
_NORMAL = 1.4826
"""Standard deviation of a normal distribution whose median deviation is one."""
_LONG_STEP = 4
_CAUTION = 1.25
"""A median of few changes is often too small, and so is that of a level at its floor."""
_INFLATION = {1: 3.0, _LONG_STEP: 16 / 11}
"""By the number of samples over which a change is computed: the factor by which its variance per sample is too small
for a lag-1 correlation of 0.5. Changes over four samples have 33/16 of the variance of one sample; the limit is 3."""
_MEMORY = (-0.25, 0.95)
"""The range of a correlation. A more negative one would make intervals narrower than few samples justify."""


def increments(time: Floats, level: Floats, confidence: float = 0.95) -> Interval | None:
    """Mean growth of ``level`` per unit of ``time``; None with too few samples."""
    spans, steps = np.diff(time), np.diff(level)
    if len(steps) < MIN_INCREMENTS or not np.all(spans > 0):
        return None
    total = float(spans.sum())
    growth = float(steps.sum()) / total
    error, memory, freedom = mean_error(steps - growth * spans)
    error *= len(steps) / total
    half = quantile(freedom, 0.5 + confidence / 2) * error
    return Interval(growth, growth - half, growth + half, error, len(steps), memory, freedom)


def recent(time: Floats, level: Floats, confidence: float = 0.95) -> Interval | None:
    """Mean growth of ``level`` over the second half of ``time``, with its error; None with too few samples.

    Few samples do not show their memory. While a system stabilizes, its growth falls from sample to sample, which looks
    like a long memory. So the memory is not estimated: the lag-1 correlation is 0.5 from second to second, and there is
    little correlation between samples that are seconds apart.
    """
    first = max(int(np.searchsorted(time, (time[0] + time[-1]) / 2, "right")) - 1, 0) if len(time) else 0
    spans, steps = np.diff(time[first:]), np.diff(level[first:])
    count = len(steps)
    if count < MIN_RECENT or not np.all(spans > 0):
        return None
    total = float(spans.sum())
    growth = float(steps.sum()) / total
    residuals = steps - growth * spans
    inflation = _inflation_over(total / count)
    variance = float(residuals @ residuals) / max(count - inflation, 0.5)
    error = math.sqrt(variance * inflation * count) / total
    half = quantile(count - 1, 0.5 + confidence / 2) * error
    return Interval(growth, growth - half, growth + half, error, count, freedom=float(count - 1))


def _inflation_over(seconds: float) -> float:
    """The factor by which the variance of a long mean exceeds that of independent means over ``seconds``.

    For a lag-1 correlation ρ of 0.5 from second to second: the variance per second of a long sum is (1 + ρ)/(1 − ρ) = 3
    times that of a single second, and that of a sum over m seconds 3 − 4 (1 − ρ^m) / m times.
    """
    m = max(seconds, 1.0)
    return 3.0 / (3.0 - 4.0 * (1.0 - math.pow(0.5, m)) / m)


def mean_error(residuals: Floats) -> tuple[float, float, float]:
    """Standard error of the mean of a series with these residuals, its lag-1 correlation and its degrees of freedom."""
    n = len(residuals)
    power = float(np.dot(residuals, residuals)) / n
    if power <= 0.0:
        return 0.0, 0.0, float(n - 1)
    observed = float(np.dot(residuals[1:], residuals[:-1])) / n / power
    memory = min(max(observed + (1 + 3 * observed) / n, _MEMORY[0]), _MEMORY[1])
    inflation = (1 + memory) / (1 - memory)
    independent = n / inflation
    variance = power / (1 - min(1 / independent, 0.8))
    # the memory is estimated too, which costs more degrees of freedom than the mean
    return math.sqrt(variance * inflation / n), memory, max(0.55 * independent - 1, 2.0)


def spread(time: Floats, level: Floats) -> float:
    """Standard deviation of a level per square root of a unit of time, without single disturbances; 0: too few samples.

    It is the larger of the median deviations of the changes over one sample and over four. Few large disturbances do
    not change a median. The lag-1 correlation is 0.5, or more if the changes over four samples show it.
    """
    if len(level) <= MIN_INCREMENTS + _LONG_STEP:
        return 0.0
    step = float(time[-1] - time[0]) / (len(time) - 1)
    found = []
    for samples, inflation in _INFLATION.items():
        change = level[samples:] - level[:-samples]
        deviation = float(np.median(np.abs(change - np.median(change)))) * _NORMAL
        found.append(deviation * math.sqrt(inflation / (samples * step)))
    return _CAUTION * max(found)


def reversion(level: Floats) -> float:
    """How clearly a level returns to its mean: the t statistic of Dickey and Fuller (1979), with one lag.

    For a random walk it is below −3.5 in about 1 % of cases, and less often with an upward drift. For a level that
    returns to its mean it is far below. It is 0 with too few samples, and for a level without noise.
    """
    if len(level) < MIN_LEVELS:
        return 0.0
    rounding = _ROUNDING * float(np.abs(level).max())
    level = level - level.mean()
    steps = np.diff(level)
    after, columns = steps[1:], np.column_stack([np.ones(len(steps) - 1), steps[:-1], level[1:-1]])
    # The level is the last column, so its t statistic is read from the last row of the decomposition. The normal
    # equations would square the condition of the columns: those of a straight line are singular.
    basis, triangle = np.linalg.qr(columns)
    if np.any(np.abs(np.diag(triangle)) <= _ROUNDING * np.linalg.norm(columns, axis=0)):
        return 0.0
    along = basis.T @ after
    residuals = after - basis @ along
    power = float(residuals @ residuals) / (len(after) - columns.shape[1])
    if power <= rounding**2:
        return 0.0
    return float(along[-1] / triangle[-1, -1]) * abs(float(triangle[-1, -1])) / math.sqrt(power)


def quantile(freedom: float, share: float) -> float:
    """Quantile of Student's distribution."""
    return float(stdtrit(freedom, share))
