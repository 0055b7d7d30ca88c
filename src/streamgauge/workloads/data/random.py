"""Randomness by counting: word n of a stream is a hash of its number, so each can be computed without the others.

The hash is splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
It is only integer arithmetic modulo 2^64, so the words are the same on every machine.
"""

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

ROWS = 16_384
"""Rows processed together: a handful of columns of them fits into the second-level cache."""

_MASK = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mix64(word: int) -> int:
    """Splitmix64's finalizer for one word."""
    word &= _MASK
    word = (word ^ word >> 30) * _FIRST & _MASK
    word = (word ^ word >> 27) * _SECOND & _MASK
    return word ^ word >> 31


def stream_state(seed: int, stream: int) -> int:
    """Where the words of a stream begin: streams and seeds next to each other are far apart."""
    return mix64(mix64(seed + _GAMMA) + (stream + 1) * _GAMMA)


def words_at(state: int, numbers: npt.NDArray[np.int64]) -> Words:
    """The words with these numbers, in any order. ``CountedWords`` is faster for ranges."""
    x = numbers.astype(np.uint64)
    x *= np.uint64(_GAMMA)
    x += np.uint64(state & _MASK)
    return _mixed(x, np.empty_like(x))


def _mixed(x: Words, y: Words) -> Words:
    """The hash of each word, in place; ``y`` is room of the same length."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        np.right_shift(x, np.uint64(shift), out=y)
        np.bitwise_xor(x, y, out=x)
        np.multiply(x, np.uint64(factor), out=x)
    np.right_shift(x, np.uint64(31), out=y)
    return np.bitwise_xor(x, y, out=x)


class CountedWords:
    """The words ``first``, ``first + step`` … of one stream, at most ``ROWS`` at a time."""

    def __init__(self, state: int, step: int, rows: int) -> None:
        self._state, self._step = state, step
        size = min(rows, ROWS)
        self._stride = np.arange(size, dtype=np.uint64) * np.uint64(step * _GAMMA & _MASK)
        self._words = np.empty(size, np.uint64)
        self._shifted = np.empty(size, np.uint64)

    def words(self, first: int, rows: int) -> Words:
        """``rows`` words from number ``first`` on. They are overwritten by the next call."""
        x, y = self._words[:rows], self._shifted[:rows]
        np.add(self._stride[:rows], np.uint64((self._state + first * _GAMMA) & _MASK), out=x)
        return _mixed(x, y)
