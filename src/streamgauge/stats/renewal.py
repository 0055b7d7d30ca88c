"""How often a level that grows would still be found at its floor.

Lag cannot fall below what the trigger alone leaves: it is a walk that a floor reflects. When it is at the floor,
everything that happened before is done. A walk that drifts upwards leaves its floor for good sooner or later, so the
number of times it is found there, late in a trial, says whether it drifts.

Let the walk start at the floor with the drift d and the standard deviation s per unit of time, and be reflected. After
the time t it is distributed as the maximum of a free walk over t (Lindley 1952). The chance that it ever comes back
from there is, for a Brownian motion, 2 ((1 + z²) Φ(−z) − z φ(z)) with z = d √t / s. From the floor, a walk that is
looked at in steps comes back with the probability 1 − exp(−Σ Φ(−d √n / s) / n), the sum over n = 1, 2, … steps
(Spitzer 1956). Returns are independent of each other, so k of them or more have the probability first · again^(k − 1).
"""

import math

import numpy as np
from scipy.special import ndtr

_STEPS = np.arange(1, 4001, dtype=np.float64)
_ROOTS = np.sqrt(_STEPS)


def first_return(z: float) -> float:
    """Chance that a reflected walk is at its floor ever again, once its drift has z standard deviations."""
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return max(2 * ((1 + z * z) * float(ndtr(-z)) - z * density), 0.0)


def next_return(drift: float, spread: float) -> float:
    """Chance that a walk which is at its floor is there once more, by its drift and deviation per step."""
    return 1 - math.exp(-float(np.sum(ndtr(-drift / spread * _ROOTS) / _STEPS)))


def returns_needed(drift: float, spread: float, *, time: float, step: float, slack: float, share: float) -> int:
    """How often a level must be found at its floor after ``time`` so that a drift would do it in ``share`` of cases.

    ``drift`` and ``spread`` are those of one second, ``step`` is the time between two looks, and what is called the
    floor is ``slack`` above the true one.
    """
    first = first_return(max(drift * time - slack, 0.0) / (spread * math.sqrt(time)))
    if first <= share:
        return 1
    again = next_return(drift * step, spread * math.sqrt(step))
    return 1 + math.ceil(math.log(share / first) / math.log(again))
