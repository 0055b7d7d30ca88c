"""Whether a falling series has come to rest."""

import math
from collections.abc import Sequence
from itertools import pairwise

MOST_CHANGE = 0.03
LAST = 4


def flat(values: Sequence[float], change: float = MOST_CHANGE) -> bool:
    """Whether each of the last four values is at most ``change`` below the one before it.

    A rise is noise and says that there is nothing more to gain, so only a fall counts. Values that are not finite,
    where nothing was done, are never flat.
    """
    last = values[-LAST:]
    if len(last) < LAST or not all(math.isfinite(value) for value in last):
        return False
    return all(after >= (1 - change) * before for before, after in pairwise(last))
