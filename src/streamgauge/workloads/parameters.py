"""Parameters that several workloads have: windows, sensors and purchases."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration, Params, Rate, Share
from streamgauge.model.units import format_duration
from streamgauge.workloads.data.keys import Distribution, distribution_problem

WINDOW = Dimension("window", "duration", "higher", "length of the event-time window")
SLIDE = Dimension("slide", "duration", "lower", "time from one window to the next: the shorter, the more overlap")
KEYS = Dimension("keys", "count", "higher", "number of sensors; load = keys × frequency")
FREQUENCY = Dimension("frequency", "rate", "higher", "messages per second of each sensor; load = keys × frequency")
GEM_PACKS = Dimension("gem_packs", "count", "higher", "number of keys that purchases have")
USERS = Dimension("users", "count", "higher", "number of users in the purchases")


def invalid_combination(key: str, sentence: str) -> PydanticCustomError:
    """The error of parameters that exclude each other; ``key`` is the one that it is reported for."""
    return PydanticCustomError("combination", "{sentence}", {"sentence": sentence, "key": key})


class Windowed(Params):
    """Tumbling windows."""

    window: Duration = Field(default=60 * 10**9, gt=0, description="length of the event-time window")
    watermark: Duration = Field(default=0, ge=0, description="how long a window waits for late events")

    @property
    def period(self) -> int:
        """Nanoseconds from the beginning of one window to that of the next."""
        return self.window


class Sliding(Windowed):
    """Sliding windows. ``slide`` None or equal to ``window`` is a tumbling window."""

    slide: Duration | None = Field(
        default=None, gt=0, description="time from one window to the next; omitted = tumbling windows"
    )

    @property
    def period(self) -> int:
        """Nanoseconds from the beginning of one window to that of the next."""
        return self.slide or self.window

    @model_validator(mode="after")
    def _windows_leave_no_gap(self) -> Self:
        if self.period > self.window:
            raise invalid_combination(
                "slide",
                f"a slide of {format_duration(self.period)} is longer than the window of "
                f"{format_duration(self.window)}: events between two windows would be in no window",
            )
        return self


def watermark_of(params: Params) -> int:
    """Nanoseconds that windows wait for late events; 0 if the workload has no windows."""
    return params.watermark if isinstance(params, Windowed) else 0


def shortest_checked(params: Windowed, trigger: int) -> int:
    """Nanoseconds that a trial must last so that whole windows have outputs that can be checked."""
    return 2 * params.window + params.watermark + 2 * trigger


class Sensors(Params):
    """Sensors that send one message per period each, evenly."""

    keys: Count = Field(default=1000, ge=1, le=10**9, description="number of sensors")
    frequency: Rate = Field(default=1.0, gt=0, le=10**6, description="messages per second of each sensor")

    @property
    def key_count(self) -> int:
        """The number of sensors."""
        return self.keys


class PurchaseParams(Params):
    """PURCHASES(userID, gemPackID, price, time) of Karimov's workloads."""

    gem_packs: Count = Field(default=100, ge=1, le=10**9, description="number of gem packs: the keys of the purchases")
    users: Count = Field(default=100_000, ge=1, le=10**9, description="number of users who make purchases")
    distribution: Distribution = Field(
        default="normal",
        description="how purchases are distributed over gem packs: normal, uniform, zipf, or single = all on one "
        "(Karimov's experiment 4)",
    )
    hot: Share = Field(
        default=0.0, ge=0, le=1, description="share of the events that go to hot gem packs; 0 = no gem pack is hot"
    )
    hot_packs: Count = Field(default=1, ge=1, le=10**9, description="number of gem packs that are hot together")
    hot_period: Duration = Field(
        default=10 * 10**9, gt=0, description="time after which other gem packs become hot, each in turn"
    )

    @property
    def key_count(self) -> int:
        """How many gem packs are bought."""
        return 1 if self.distribution == "single" else self.gem_packs

    @model_validator(mode="after")
    def _events_can_be_made(self) -> Self:
        problem = distribution_problem(self.distribution, self.gem_packs)
        if problem:
            raise invalid_combination("gem_packs", problem)
        if self.hot and 2 * self.hot_packs > self.key_count:
            raise invalid_combination(
                "hot_packs",
                f"{self.hot_packs:,} of {self.key_count:,} gem packs are hot together, so that no others could become "
                "hot: use at most half of them, or hot: 0%",
            )
        return self
