"""The narrowest bounds that the trials of a line support, whatever precision was asked for.

A trial decides nothing within half a percent of its threshold, and its estimate of the limit has an error. Bounds that
are closer together than these allow would follow from chance: of many trials beside the limit, some are wrong.
``python -m benches.search_accuracy`` prints how often bounds contain the truth at each precision.
"""

import math
from dataclasses import replace

from streamgauge.model.measurement import Estimate
from streamgauge.model.units import format_share
from streamgauge.search.line import Line

RESOLUTION = 0.01
"""Two loads that differ by less cannot be told apart: a trial decides nothing within 0.5 % of its threshold."""
BIAS = 0.0035
"""Error of an estimate that no further trial makes smaller, as a share of the limit: estimates come from trials whose
queue clearly grew, and the rest of a warm-up is in all of them."""
SURE = 2.6
"""Errors of the estimate that each bound keeps from it."""


def supported(line: Line, pooled: Estimate | None) -> Line:
    """The line with the precision that its trials support, if that is less than it asks for."""
    if line.dimension != "load":
        return line
    error = math.hypot(pooled.error / pooled.boundary, BIAS) if pooled else 0.0
    return replace(line, precision=max(line.precision, RESOLUTION, 2 * SURE * error))


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
