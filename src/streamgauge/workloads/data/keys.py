"""How keys are distributed: from 32 random bits to a key, through a table of 65,536 quantiles.

Every table is made with integers only: exponentials and roots of the machine's library may differ in
the last bit from one machine to the next, and then the streams would too.
"""

from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from streamgauge.workloads.data.random import Words

Distribution = Literal["normal", "uniform", "zipf", "single"]
Ints = npt.NDArray[np.int64]
Keyed = npt.NDArray[np.int32] | npt.NDArray[np.int64]

QUANTILES = 1 << 16
MOST_SHAPED = 1 << 22
"""Most keys of a normal or Zipf distribution: more would not fit into the arithmetic of the table."""
MOST = (1 << 31) - 1

_FINE_FROM = 1024  # with more keys than this a quantile is spread over the keys that it covers
_POINT = 30  # binary digits after the point
_ONE = 1 << _POINT


def distribution_problem(distribution: str, keys: int) -> str:
    """Why a distribution cannot have so many gem packs; empty if it can."""
    if distribution not in ("normal", "zipf") or keys <= MOST_SHAPED:
        return ""
    most = f"a {distribution} distribution has at most {MOST_SHAPED:,} gem packs, not {keys:,}"
    return f"{most}: use fewer, or the uniform distribution"


def _exp_of_minus(eighth: Ints) -> Ints:
    """exp(−8 x) in fixed point for an x of at most 0.6: Horner's scheme, then squared three times."""
    result = np.full_like(eighth, _ONE)
    for j in range(12, 0, -1):
        result = _ONE - (eighth * result >> _POINT) // j
    for _ in range(3):
        result = result * result >> _POINT
    return result


def weights(distribution: Distribution, keys: int) -> Ints:
    """How often each key comes, in parts of the sum: whole numbers, their sum below 2^46.

    normal: the keys lie evenly on mean ± 3 standard deviations. zipf: the k-th key comes 1/k times as
    often as the first.
    """
    if distribution == "normal":
        place = ((2 * np.arange(keys, dtype=np.int64) + 1 - keys) << _POINT) // keys
        return _exp_of_minus((place * place >> _POINT) * 9 >> 4) >> 7
    if distribution == "zipf":
        ranks = np.arange(1, keys + 1, dtype=np.int64)
        return np.int64(1 << 41) // ranks
    return np.ones(keys if distribution == "uniform" else 1, np.int64)


@lru_cache(maxsize=32)
def quantiles(distribution: Distribution, keys: int) -> tuple[Ints, Ints]:
    """First key and number of keys of each of the 65,536 quantiles, for normal and Zipf."""
    if keys > MOST_SHAPED:
        raise ValueError(f"a {distribution} distribution has at most {MOST_SHAPED:,} keys, not {keys:,}")
    upto = np.cumsum(weights(distribution, keys))
    edges = np.arange(QUANTILES + 1, dtype=np.int64) * upto[-1]
    first = np.searchsorted(upto * QUANTILES, edges[:-1], side="right")
    last = np.searchsorted(upto * QUANTILES, edges[1:], side="left")
    return first, last - first + 1


@lru_cache(maxsize=32)
def _table(distribution: Distribution, keys: int, dtype: str) -> npt.NDArray[np.integer]:
    """The key of each quantile; as uint64 the first key (upper half) and the number of keys (lower half)."""
    first, width = quantiles(distribution, keys)
    table = first << 32 | width if dtype == "uint64" else first
    return table.astype(dtype)


class Keys:
    """Turns words into keys: the upper 32 bits of a word decide. ``dtype`` is that of the keys."""

    def __init__(self, distribution: Distribution, keys: int, rows: int, dtype: type[np.signedinteger]) -> None:
        if not 1 <= keys <= MOST:
            raise ValueError(f"there are 1 to {MOST:,} keys, not {keys:,}")
        self._keys = np.uint64(keys)
        self._shape = "single" if keys == 1 else distribution
        self._upper = np.empty(rows, np.uint64)
        self._part = np.empty(rows, np.uint64)
        if self._shape in ("normal", "zipf"):
            self._fine = keys > _FINE_FROM
            self._table = _table(distribution, keys, "uint64" if self._fine else np.dtype(dtype).name)

    def fill(self, words: Words, out: Keyed) -> None:
        """The key of each word, into ``out``."""
        upper = self._upper[: len(words)]
        if self._shape == "single":
            out[...] = 0
        elif self._shape == "uniform":
            np.right_shift(words, np.uint64(32), out=upper)
            np.multiply(upper, self._keys, out=upper)
            np.right_shift(upper, np.uint64(32), out=out, casting="unsafe")
        else:
            np.right_shift(words, np.uint64(48), out=upper)
            if self._fine:
                self._spread(words, upper, out)
            else:
                np.take(self._table, upper.view(np.int64), out=out, mode="clip")

    def _spread(self, words: Words, upper: Words, out: Keyed) -> None:
        """One of the keys that the quantile covers, by the 16 bits that follow those of the quantile."""
        np.take(self._table, upper.view(np.int64), out=upper, mode="clip")
        part = self._part[: len(words)]
        np.right_shift(words, np.uint64(32), out=part)
        np.bitwise_and(part, np.uint64(0xFFFF), out=part)
        np.multiply(part, np.bitwise_and(upper, np.uint64(0xFFFFFFFF)), out=part)
        np.right_shift(part, np.uint64(16), out=part)
        np.right_shift(upper, np.uint64(32), out=upper)
        np.add(upper, part, out=out, casting="unsafe")
