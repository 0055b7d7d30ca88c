"""How often a growing level still returns to its floor.

Lag cannot fall below the lag that the trigger causes: it is a random walk that is reflected at a floor. When it is at
the floor, the system has processed everything that came before. A walk with an upward drift leaves its floor forever at
some time, so the number of its returns late in a trial shows whether it drifts.

Let the walk start at the floor with the drift d and the standard deviation s per unit of time, and be reflected. After
the time t it is distributed as the maximum of a free walk over t (Lindley 1952). The probability that it ever returns
from there is, for a Brownian motion, 2 ((1 + z²) Φ(−z) − z φ(z)) with z = d √t / s. From the floor, a walk that is
observed in steps returns with the probability 1 − exp(−Σ Φ(−d √n / s) / n), the sum over n = 1, 2, … steps
(Spitzer 1956). Returns are independent of each other, so k of them or more have the probability first · later^(k − 1).
"""

import math

import numpy as np
from scipy.special import ndtr

_STEPS = np.arange(1, 4001, dtype=np.float64)
_ROOTS = np.sqrt(_STEPS)


def first_return(z: float) -> float:
    """Probability that a reflected walk ever returns to its floor when its drift has z standard deviations."""
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return max(2 * ((1 + z * z) * float(ndtr(-z)) - z * density), 0.0)


def next_return(drift: float, spread: float) -> float:
    """Probability that a walk at its floor returns to it, for this drift and standard deviation per step."""
    return 1 - math.exp(-float(np.sum(ndtr(-drift / spread * _ROOTS) / _STEPS)))


def returns_needed(drift: float, spread: float, *, time: float, step: float, slack: float, share: float) -> int:
    """The number of returns to the floor after ``time`` that a drifting level reaches in only ``share`` of cases.

    ``drift`` and ``spread`` are per second, ``step`` is the time between two observations, and the floor that is
    observed is ``slack`` above the real one.
    """
    first = first_return(max(drift * time - slack, 0.0) / (spread * math.sqrt(time)))
    if first <= share:
        return 1
    later = next_return(drift * step, spread * math.sqrt(step))
    return 1 + math.ceil(math.log(share / first) / math.log(later))
