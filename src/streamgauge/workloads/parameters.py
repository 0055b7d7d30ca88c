"""What workloads with event-time windows have in common: their parameters and what cannot be."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration, Rate
from streamgauge.model.units import format_duration
from streamgauge.workloads.contract import Params

SKEW = 200_000_000
"""Nanoseconds that a window waits over Kafka unless the experiment says: its partitions are not cut at one moment, and
Spark's watermark follows the one that is furthest."""

WINDOW = Dimension("window", "duration", "higher", "length of the event-time window")
SLIDE = Dimension("slide", "duration", "lower", "time from one window to the next: the shorter, the more overlap")


def shortest(params: Mapping[str, Any], trigger: int) -> int:
    """Nanoseconds that a trial must last at least, so that outputs of whole windows come that can be checked."""
    return 2 * int(params["window"]) + int(params.get("watermark") or 0) + 2 * trigger


def impossible(key: str, sentence: str) -> PydanticCustomError:
    """A combination of parameters that cannot be; ``key`` is the one to point at."""
    return PydanticCustomError("combination", "{sentence}", {"sentence": sentence, "key": key})


class Windowed(Params):
    """Parameters of a workload with windows. ``slide`` None or equal to ``window`` is a tumbling window."""

    window: Duration = Field(default=60 * 10**9, gt=0, description="length of the event-time window")
    watermark: Duration = Field(default=0, ge=0, description="how long a window waits for late events")

    @model_validator(mode="after")
    def _windows_leave_no_gap(self) -> Self:
        slide = getattr(self, "slide", None)
        if slide is not None and slide > self.window:
            raise impossible(
                "slide",
                f"a slide of {format_duration(slide)} is longer than the window of {format_duration(self.window)}: "
                "events between two windows would be in no window",
            )
        return self


KEYS = Dimension("keys", "count", "higher", "number of sensors; load = keys × frequency")
FREQUENCY = Dimension("frequency", "rate", "higher", "messages per second of each sensor; load = keys × frequency")


class Sensors(Params):
    """Sensors that send one message per period each, evenly."""

    keys: Count = Field(default=1000, ge=1, le=10**9, description="number of sensors")
    frequency: Rate = Field(default=1.0, gt=0, le=10**6, description="messages per second of each sensor")
