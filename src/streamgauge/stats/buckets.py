"""Latency counts in HdrHistogram's bucket layout: unit 1 µs, three significant digits.

A bucket is a number, and a histogram is a vector of counts by that number. Values below 2048 have a bucket
each. Above, every doubling has 1024 buckets, so no value differs from its bucket by more than 0.1 %. Histograms
are merged by addition, so live and offline analysis have exactly the same counts.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

HALF = 1024
"""Buckets of each doubling of the value."""
BITS = 11
"""Values of at most so many bits have a bucket each."""


def index(micros: npt.ArrayLike) -> Ints:
    """Bucket of each value in whole microseconds. Negative values have no bucket and are counted separately."""
    value = np.asarray(micros, np.int64)
    if value.size and int(value.min()) < 0:
        raise ValueError("a negative latency has no bucket; count it separately")
    # frexp's exponent is the bit length, exact below 2^53 µs (285 years)
    shift = np.maximum(np.frexp(value.astype(np.float64))[1].astype(np.int64) - BITS, 0)
    result: Ints = shift * HALF + (value >> shift)
    return result


def lowest(bucket: npt.ArrayLike) -> Ints:
    """Smallest value in the bucket."""
    number = np.asarray(bucket, np.int64)
    shift = np.maximum(number // HALF - 1, 0)
    result: Ints = (number - shift * HALF) << shift
    return result


def highest(bucket: npt.ArrayLike) -> Ints:
    """Largest value in the bucket; HdrHistogram reports it as the percentile."""
    number = np.asarray(bucket, np.int64)
    shift = np.maximum(number // HALF - 1, 0)
    result: Ints = ((number - shift * HALF + 1) << shift) - 1
    return result


def middle(bucket: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Middle of the bucket, for means."""
    return (lowest(bucket) + highest(bucket)) / 2.0


def quantile(bucket: Ints, count: Ints, share: float) -> int:
    """The value in µs that ``share`` of the samples do not exceed."""
    order = np.argsort(bucket, kind="stable")
    running = np.cumsum(count[order])
    if not running.size or running[-1] == 0:
        raise ValueError("no samples, no quantile")
    rank = max(1, int(np.ceil(share * float(running[-1]) - 1e-9)))
    return int(highest(bucket[order][np.searchsorted(running, rank)]))


def mean(bucket: Ints, count: Ints) -> float:
    """Mean in µs, computed from the middles of the buckets."""
    return float(np.dot(middle(bucket), count) / count.sum())


def supported(share: float, samples: int) -> bool:
    """Whether there are enough samples for this percentile: at least one must be beyond it."""
    return samples * min(share, 1.0 - share) >= 1.0 - 1e-9
