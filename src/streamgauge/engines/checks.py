"""Checks that several engines make of a situation."""

from collections.abc import Iterator

from streamgauge.engines.contract import Situation


def too_fine(situation: Situation) -> Iterator[str]:
    """Window lengths that real events cannot have: their times are whole microseconds."""
    for params in situation.params:
        for name in ("window", "slide", "watermark"):
            value = getattr(params, name, None)
            if value and value % 1000:
                yield f"workload.{name} must be a whole number of microseconds: event times have no finer unit"
