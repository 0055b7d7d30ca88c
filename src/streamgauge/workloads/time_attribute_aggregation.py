"""Theodolite's UC3: statistics per sensor and time attribute over a sliding window."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from streamgauge.model import papers
from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration
from streamgauge.model.streams import Column
from streamgauge.workloads.contract import Columns, Inputs, OutputContract, ReferenceResult
from streamgauge.workloads.data.sensors import READING_STREAM, Readings, ReadingsWorkload, readings_of
from streamgauge.workloads.parameters import FREQUENCY, KEYS, SLIDE, WINDOW, Sensors, Sliding, invalid_combination
from streamgauge.workloads.references.statistics import EventWindows, WindowStatistics, statistics_output

Ints = npt.NDArray[np.int64]
_DAY = 86_400 * 10**9
_MICRO, _SECOND = 1_000, 1_000_000

Attribute = Literal["hour-of-day", "day-of-week", "day-of-year", "hour-of-week", "second-mod-7"]
VALUES: dict[Attribute, int] = {
    "hour-of-day": 24,
    "day-of-week": 7,
    "day-of-year": 366,
    "hour-of-week": 168,
    "second-mod-7": 7,
}
"""How many values each time attribute has: whole numbers from 0 on."""
FIRST_WEEKDAY = 3
"""1970-01-01 was a Thursday; weeks begin with Monday, which is 0."""

OUTPUT = statistics_output(Column("sensor_id", "int32"), Column("attribute", "int32"))
"""The statistics of a sensor and a value of the attribute in a window, and the moments of the newest reading in it."""


class TimeAttributeParams(Sliding, Sensors):
    """The key becomes (sensor, time attribute); same statistics as downsampling."""

    window: Duration = Field(default=3 * _DAY, gt=0, description="length of the event-time window")
    slide: Duration = Field(default=_DAY, gt=0, description="time from one window to the next")
    attribute: Attribute = Field(default="hour-of-day", description="the time attribute that is part of the key")
    attribute_values: Count | None = Field(
        default=None, ge=1, description="the attribute is taken modulo this number; omitted = all its values"
    )

    @property
    def values(self) -> int:
        """How many values the attribute has in the key."""
        return self.attribute_values or VALUES[self.attribute]

    @model_validator(mode="after")
    def _attribute_has_that_many_values(self) -> Self:
        most = VALUES[self.attribute]
        if self.attribute_values is not None and self.attribute_values > most:
            raise invalid_combination(
                "attribute_values", f"{self.attribute} has only {most} values, fewer than {self.attribute_values}"
            )
        return self


def attribute_of(attribute: Attribute, seconds: Ints) -> Ints:
    """The value of a time attribute at moments in whole seconds since 1970, in UTC."""
    days, hours = seconds // 86_400, seconds // 3_600
    if attribute == "hour-of-day":
        return hours % 24
    if attribute == "day-of-week":
        return (days + FIRST_WEEKDAY) % 7
    if attribute == "hour-of-week":
        return (hours + 24 * FIRST_WEEKDAY) % 168
    if attribute == "second-mod-7":
        return seconds % 7
    dates = days.astype("datetime64[D]")
    of_year: Ints = (dates - dates.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64)
    return of_year


@dataclass(frozen=True)
class AttributeReadings:
    """Readings whose key is their sensor and the value of the attribute at their due time."""

    readings: Readings
    params: TimeAttributeParams
    events: int
    """How many of them there are."""

    @cached_property
    def _by_second(self) -> tuple[int, Ints]:
        """The first second of these readings, and the value of the attribute in each second from there on."""
        begin, end = (int(self._due(n, n + 1)[0]) // _SECOND for n in (0, self.events - 1))
        return begin, attribute_of(self.params.attribute, np.arange(begin, end + 1)) % self.params.values

    @cached_property
    def values(self) -> Ints:
        """The values that the attribute has while these readings come: of a year they may be one."""
        return np.unique(self._by_second[1]) if self.events else np.zeros(0, np.int64)

    @cached_property
    def _places(self) -> Ints:
        """The place of the value of each second among these values."""
        return np.searchsorted(self.values, self._by_second[1])

    @property
    def codes(self) -> int:
        """How many keys there are."""
        return self.readings.sensors * len(self.values)

    def keyed_values(self, start: int, stop: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Numbers, keys and values of these readings: the place of the attribute's value times the sensors."""
        for numbers, sensors, values in self.readings.keyed_values(start, stop):
            seconds = self._due(int(numbers[0]), int(numbers[-1]) + 1) // _SECOND - self._by_second[0]
            yield numbers, self._places[seconds] * self.readings.sensors + sensors, values

    def _due(self, start: int, stop: int) -> Ints:
        return self.readings.plan.due_range(start, stop, origin=self.readings.origin, unit=_MICRO)


@dataclass(frozen=True)
class AttributeStatistics:
    """The statistics of each sensor and value of the attribute in each window."""

    readings: Readings
    params: TimeAttributeParams

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if the stream ended after so many events."""
        count, made = events[READING_STREAM.name], self.readings
        keyed = AttributeReadings(made, self.params, count)
        windows = EventWindows(made.plan, made.origin, self.params.window, self.params.period)
        rows = {**WindowStatistics(keyed, windows).until(count)}
        key = rows.pop("key")
        attributes = keyed.values[key // made.sensors]
        return {
            "window_start": rows.pop("window_start"),
            "sensor_id": key % made.sensors,
            "attribute": attributes,
            **rows,
        }


class TimeAttributeAggregation(ReadingsWorkload[TimeAttributeParams]):
    """One stream of readings, and one output per sensor, time attribute and window."""

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

    def output(self, params: TimeAttributeParams) -> OutputContract:
        """Six statistics per window, sensor and value of the attribute."""
        return OUTPUT

    def reference(self, params: TimeAttributeParams, inputs: Inputs) -> ReferenceResult:
        """The statistics of these readings."""
        return AttributeStatistics(readings_of(params.keys, inputs), params)


time_attribute_aggregation = TimeAttributeAggregation()
