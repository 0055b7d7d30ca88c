"""One rule for floats of 16 and 32 bits in both comparisons with a reference result.

A number that was rounded to a narrower type is equal to the number before it was rounded. So both sides are rounded to
the narrowest of their types, and may then differ by the relative distance of neighbouring values of this type.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

_STEPS = {"float16": 2.0**-10, "float32": 2.0**-23}
"""Relative distance of neighbouring values."""


def tolerance_of(kinds: Iterable[str], wide: float) -> float:
    """The relative tolerance of a column whose sides have these types of floats; ``wide`` is that of 64 bits."""
    return max([wide, *(_STEPS[kind] for kind in kinds if kind in _STEPS)])


def rounded(values: npt.NDArray[np.float64], kinds: Iterable[str]) -> npt.NDArray[np.float64]:
    """The values rounded to the narrowest of these types."""
    narrow = sorted((kind for kind in kinds if kind in _STEPS), key=lambda kind: -_STEPS[kind])
    if not narrow:
        return values
    with np.errstate(over="ignore"):
        return values.astype(np.dtype(narrow[0])).astype(np.float64)
