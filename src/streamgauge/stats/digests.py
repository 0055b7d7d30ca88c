"""Digests of texts: 64 bits for each, so that millions of long texts can be compared without their bytes in memory.

Every step is a bijection of what came before it. So two texts of the same length that differ in eight bytes or fewer
never have the same digest, and any others have it with a chance of 2^-64.
"""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

WORD = 8
"""Bytes that are taken together."""
_ROWS = 16_384
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


def digests(rows: Bytes, lengths: Ints) -> Ints:
    """The digest of each row, a text of so many bytes with zeros after it."""
    width = -(-rows.shape[1] // WORD) * WORD
    result = np.empty(len(rows), np.uint64)
    padded = np.zeros((min(len(rows), _ROWS), width), np.uint8)
    for low in range(0, len(rows), _ROWS):
        part = rows[low : low + _ROWS]
        padded[: len(part), : rows.shape[1]] = part
        words = padded[: len(part)].view("<u8")
        own = lengths[low : low + _ROWS]
        state, shortest = own.astype(np.uint64), int(own.min())
        for place in range(words.shape[1]):
            mixed = (state ^ words[:, place]) * _FACTOR
            mixed ^= mixed >> _HALF
            # the digest of a text does not depend on the texts beside it
            state = mixed if place * WORD < shortest else np.where(place * WORD < own, mixed, state)
        result[low : low + len(part)] = state
    return result.view(np.int64)


def ragged_digests(flat: Bytes, ends: Ints) -> Ints:
    """The digests of texts that follow each other in ``flat``; ``ends`` are the positions at which each begins, and the
    end of the last one."""
    result = np.empty(len(ends) - 1, np.int64)
    for low in range(0, len(result), _ROWS):
        cuts = ends[low : low + _ROWS + 1]
        lengths = np.diff(cuts)
        rows = np.zeros((len(lengths), int(lengths.max(initial=0))), np.uint8)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = flat[cuts[0] : cuts[-1]]
        result[low : low + len(rows)] = digests(rows, lengths)
    return result
