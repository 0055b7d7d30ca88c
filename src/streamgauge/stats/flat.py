"""Whether a falling series has come to rest."""

import math
from collections.abc import Sequence
from statistics import fmean

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
