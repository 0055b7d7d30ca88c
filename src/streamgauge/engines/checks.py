"""Checks that several engines make of a situation."""

from collections.abc import Iterator
from typing import Any

from streamgauge.engines.contract import Situation
from streamgauge.workloads.parameters import Sliding, Windowed


def too_fine(situation: Situation[Any]) -> Iterator[str]:
    """Window lengths that real events cannot have: their times are whole microseconds."""
    for params in situation.params:
        times = {"window": params.window, "watermark": params.watermark} if isinstance(params, Windowed) else {}
        if isinstance(params, Sliding):
            times["slide"] = params.period
        for name, value in times.items():
            if value % 1000:
                yield f"workload.{name} must be a whole number of microseconds: event times have no finer unit"
