"""The closest bounds that the trials of a series support, whatever precision was requested.

A trial decides nothing within 0.5 % of its threshold, and its estimate of the limit has an error. Closer bounds would
result from chance, because some of many trials near the limit have a wrong verdict.
``python -m benches.search_accuracy`` prints how often bounds contain the true limit at each precision.
"""

import math
from dataclasses import replace

from streamgauge.model.measurement import Estimate
from streamgauge.model.units import share_text
from streamgauge.search.axes import SearchAxis

RESOLUTION = 0.01
"""Two loads that differ by less cannot be distinguished: a trial decides nothing within 0.5 % of its threshold."""
BIAS = 0.0035
"""Error of an estimate that further trials do not reduce, as a share of the limit. Estimates come only from trials
whose queue clearly grew, and all of them contain the rest of a warm-up."""
BOUND_ERRORS = 2.6
"""Distance of each bound from the estimate, in errors of the estimate."""
_ROUNDING = 1.0001  # rounding of a value must not make a difference


def supported(axis: SearchAxis, pooled: Estimate | None) -> SearchAxis:
    """The axis with the precision that its trials support, if that is less than the requested one."""
    if axis.dimension != "load":
        return axis
    return replace(axis, precision=max(axis.precision, RESOLUTION, 2 * BOUND_ERRORS * _error(pooled)))


def _error(pooled: Estimate | None) -> float:
    """The error of the estimated limit, as a share of it; 0 without an estimate."""
    return math.hypot(pooled.error / pooled.boundary, BIAS) if pooled else 0.0


def is_reachable(axis: SearchAxis) -> bool:
    """Whether more trials could support the requested precision."""
    return axis.precision > 2 * BOUND_ERRORS * BIAS


def why_wide(wanted: SearchAxis, axis: SearchAxis, pooled: Estimate | None) -> str:
    """Why bounds are further apart than requested, if the trials support no closer ones; otherwise empty."""
    if axis.precision <= wanted.precision:
        return ""
    near = f" The limit is probably near {axis.text(pooled.boundary)}." if pooled else ""
    return (
        f"The trials support bounds {axis.precision * 100:.1f} % apart, but search.precision is "
        f"{share_text(wanted.precision)}.{near} Increase trial.duration, trial.limit or trial.repetitions, "
        "or set a larger search.precision"
    )


def why_uncertain(wanted: SearchAxis, pooled: Estimate | None, holds: float, fails: float) -> str:
    """Why bounds on a list or a grid are less certain than they look, or further apart than requested; otherwise empty.

    The bounds do not change, because they are values of the user, or as far apart as two loads must be to differ.
    """
    axis, apart = supported(wanted, pooled), wanted.gap(holds, fails)
    if axis.dimension != "load":
        return ""
    closest = max(RESOLUTION, 2 * BOUND_ERRORS * _error(pooled))
    if apart * _ROUNDING < closest:
        beside = pooled is not None and holds / (1 + closest) <= pooled.boundary <= fails * (1 + closest)
        near = f" The limit is probably near {axis.text(pooled.boundary)}." if pooled and beside else ""
        return (
            f"The bounds are {apart * 100:.1f} % apart, but the trials support bounds {closest * 100:.1f} % apart, "
            f"so the limit may be outside of these bounds.{near} Increase trial.duration, trial.limit or "
            "trial.repetitions, or search values that are further apart"
        )
    return (
        why_wide(wanted, axis, pooled)
        if apart <= axis.precision * _ROUNDING and not wanted.is_narrow(holds, fails)
        else ""
    )
