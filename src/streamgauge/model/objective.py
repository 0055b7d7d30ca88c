"""Objective: one condition that a trial must meet, for example ``lag-trend <= 1%``."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Metric = Literal[
    "lag-trend",  # T 2.1: events/s by which the lag grows
    "latency-trend",  # T 2.2: seconds of event-time latency gained per second
    "output-error",  # T 1.1: |observed − expected| / expected
    "lag-growth",  # S §3.6: lag at the end − lag at the beginning, events
    "queue",  # K: the longest queue, events
    "drops",  # K: connections dropped by the SUT
    "event-time",  # latency percentile
    "processing-time",
    "lost",
    "duplicate",
    "wrong",
    "late",
]
Operator = Literal["<", "<=", "==", ">", ">="]
Statistic = Literal["avg", "min", "max", "p5", "p50", "p75", "p90", "p95", "p99", "p99.9"]
SHARES = {"p5": 0.05, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
"""Percentiles among the statistics."""

_COMPARE: dict[Operator, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Objective:
    """``metric [statistic] operator threshold``.

    The threshold's unit follows the metric: events/s for lag-trend, seconds per second for
    latency-trend, nanoseconds for latencies, events or outputs for the rest. ``relative`` makes it a
    fraction of the offered load (trend, queue and growth) or of the expected outputs.
    """

    metric: Metric
    operator: Operator
    threshold: float
    relative: bool = False
    statistic: Statistic | None = None
    text: str = ""

    def holds(self, value: float, threshold: float) -> bool:
        """Whether a value meets the objective."""
        return _COMPARE[self.operator](value, threshold)
