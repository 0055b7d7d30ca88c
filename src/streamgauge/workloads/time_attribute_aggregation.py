"""Theodolite's UC3: statistics per sensor and time attribute over a sliding window."""

from typing import Literal, Self

from pydantic import Field, model_validator

from streamgauge.model import papers
from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration
from streamgauge.workloads.contract import WithoutEvents
from streamgauge.workloads.parameters import FREQUENCY, KEYS, SLIDE, WINDOW, Sensors, Sliding, invalid_combination

_DAY = 86_400 * 10**9

Attribute = Literal["hour-of-day", "day-of-week", "day-of-year", "hour-of-week", "second-mod-7"]
VALUES: dict[Attribute, int] = {
    "hour-of-day": 24,
    "day-of-week": 7,
    "day-of-year": 366,
    "hour-of-week": 168,
    "second-mod-7": 7,
}
"""How many values each time attribute has."""


class TimeAttributeParams(Sliding, Sensors):
    """The key becomes (sensor, time attribute); same statistics as downsampling."""

    window: Duration = Field(default=3 * _DAY, gt=0, description="length of the event-time window")
    slide: Duration = Field(default=_DAY, gt=0, description="time from one window to the next")
    attribute: Attribute = Field(default="hour-of-day", description="the time attribute that is part of the key")
    attribute_values: Count | None = Field(
        default=None, ge=1, description="the attribute is taken modulo this number; omitted = all its values"
    )

    @model_validator(mode="after")
    def _attribute_has_that_many_values(self) -> Self:
        most = VALUES[self.attribute]
        if self.attribute_values is not None and self.attribute_values > most:
            raise invalid_combination(
                "attribute_values", f"{self.attribute} has only {most} values, fewer than {self.attribute_values}"
            )
        return self


class TimeAttributeAggregation(WithoutEvents[TimeAttributeParams]):
    """One output per sensor, time attribute and window."""

    name = "time-attribute-aggregation"
    summary = "statistics per sensor and time attribute over a sliding window"
    paper = f"{papers.THEODOLITE} UC3"
    params = TimeAttributeParams
    dimensions = (
        KEYS,
        FREQUENCY,
        WINDOW,
        SLIDE,
        Dimension("attribute_values", "count", "higher", "number of values of the time attribute"),
    )


time_attribute_aggregation = TimeAttributeAggregation()
