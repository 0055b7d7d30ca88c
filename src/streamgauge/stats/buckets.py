"""Latency counts in HdrHistogram's bucket layout: unit 1 µs, three significant digits.

Bucket b of the layout is a number; a histogram is a vector of counts by that number. Values below 2048
have a bucket each; above, every doubling has 1024 buckets, so no value is off by more than 0.1 %.
Merging histograms is addition, which is why live and offline analysis agree to the last count.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_HALF = 1024
_BITS = 11


def index(micros: npt.ArrayLike) -> Ints:
    """Bucket of each value, in whole microseconds. Negative values have none: count them apart."""
    value = np.asarray(micros, np.int64)
    if value.size and int(value.min()) < 0:
        raise ValueError("a negative latency has no bucket; count it apart")
    # frexp's exponent is the bit length, exact below 2^53 µs (285 years)
    shift = np.maximum(np.frexp(value.astype(np.float64))[1].astype(np.int64) - _BITS, 0)
    result: Ints = shift * _HALF + (value >> shift)
    return result


def lowest(bucket: npt.ArrayLike) -> Ints:
    """Least value that falls into the bucket."""
    number = np.asarray(bucket, np.int64)
    shift = np.maximum(number // _HALF - 1, 0)
    result: Ints = (number - shift * _HALF) << shift
    return result


def highest(bucket: npt.ArrayLike) -> Ints:
    """Largest value that falls into the bucket; HdrHistogram reports percentiles with it."""
    number = np.asarray(bucket, np.int64)
    shift = np.maximum(number // _HALF - 1, 0)
    result: Ints = ((number - shift * _HALF + 1) << shift) - 1
    return result


def middle(bucket: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Middle of the bucket, for means."""
    return (lowest(bucket) + highest(bucket)) / 2.0


def quantile(bucket: Ints, count: Ints, share: float) -> int:
    """Value in µs below or at which ``share`` of the samples lie."""
    order = np.argsort(bucket, kind="stable")
    running = np.cumsum(count[order])
    if not running.size or running[-1] == 0:
        raise ValueError("no samples, no quantile")
    rank = max(1, int(np.ceil(share * float(running[-1]) - 1e-9)))
    return int(highest(bucket[order][np.searchsorted(running, rank)]))


def mean(bucket: Ints, count: Ints) -> float:
    """Mean in µs, from the middles of the buckets."""
    return float(np.dot(middle(bucket), count) / count.sum())


def supported(share: float, samples: int) -> bool:
    """Whether ``samples`` carry this percentile: at least one of them must lie on its far side."""
    return samples * min(share, 1.0 - share) >= 1.0 - 1e-9
