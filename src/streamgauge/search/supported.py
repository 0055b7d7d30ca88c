"""The narrowest bounds that the trials of a line support, whatever precision was asked for.

A trial decides nothing within half a percent of its threshold, and its estimate of the limit has an error. Bounds that
are closer together than these allow would follow from chance: of many trials beside the limit, some are wrong.
``python -m benches.search_accuracy`` prints how often bounds contain the truth at each precision.
"""

import math
from dataclasses import replace

from streamgauge.model.measurement import Estimate
from streamgauge.model.units import format_share
from streamgauge.search.axes import Line

RESOLUTION = 0.01
"""Two loads that differ by less cannot be told apart: a trial decides nothing within 0.5 % of its threshold."""
BIAS = 0.0035
"""Error of an estimate that no further trial makes smaller, as a share of the limit: estimates come from trials whose
queue clearly grew, and the rest of a warm-up is in all of them."""
SURE = 2.6
"""Errors of the estimate that each bound keeps from it."""
_CLOSE = 1.0001  # rounding of a value must not make a difference


def supported(line: Line, pooled: Estimate | None) -> Line:
    """The line with the precision that its trials support, if that is less than it asks for."""
    if line.dimension != "load":
        return line
    return replace(line, precision=max(line.precision, RESOLUTION, 2 * SURE * _error(pooled)))


def _error(pooled: Estimate | None) -> float:
    """Of the estimated limit, as a share of it; 0 where there is none."""
    return math.hypot(pooled.error / pooled.boundary, BIAS) if pooled else 0.0


def reachable(line: Line) -> bool:
    """Whether more trials could support the precision that a line asks for."""
    return line.precision > 2 * SURE * BIAS


def why_wide(wanted: Line, line: Line, pooled: Estimate | None) -> str:
    """Why bounds are wider than was wanted, where the trials do not support closer ones; else nothing."""
    if line.precision <= wanted.precision:
        return ""
    near = f" The limit is probably near {line.text(pooled.boundary)}." if pooled else ""
    return (
        f"The trials support bounds {line.precision:.1%} apart, but search.precision is "
        f"{format_share(wanted.precision)}.{near} Increase trial.duration, trial.limit or trial.repetitions, "
        "or set a larger search.precision"
    )


def why_uncertain(wanted: Line, pooled: Estimate | None, holds: float, fails: float) -> str:
    """Why bounds on a list or a grid are less certain, or wider, than they look or were wanted; else nothing.

    The values stay: they are the user's, or no finer than two loads can be told apart.
    """
    line, apart = supported(wanted, pooled), wanted.gap(holds, fails)
    if line.dimension != "load":
        return ""
    least = max(RESOLUTION, 2 * SURE * _error(pooled))
    if apart * _CLOSE < least:
        beside = pooled is not None and holds / (1 + least) <= pooled.boundary <= fails * (1 + least)
        near = f" The limit is probably near {line.text(pooled.boundary)}." if pooled and beside else ""
        return (
            f"The bounds are {apart:.1%} apart, but the trials support bounds {least:.1%} apart, so the limit may be "
            f"outside of these bounds.{near} Increase trial.duration, trial.limit or trial.repetitions, or search "
            "values that are further apart"
        )
    return (
        why_wide(wanted, line, pooled) if apart <= line.precision * _CLOSE and not wanted.narrow(holds, fails) else ""
    )
