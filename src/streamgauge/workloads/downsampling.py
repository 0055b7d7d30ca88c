"""Theodolite's UC2: statistics per sensor over a tumbling window."""

from collections.abc import Mapping
from dataclasses import dataclass

from streamgauge.model import papers
from streamgauge.model.streams import Column
from streamgauge.workloads.contract import Columns, Inputs, OutputContract, ReferenceResult
from streamgauge.workloads.data.sensors import READING_STREAM, ReadingsWorkload, readings_of
from streamgauge.workloads.parameters import FREQUENCY, KEYS, WINDOW, Sensors, Windowed
from streamgauge.workloads.references.statistics import EventWindows, WindowStatistics, statistics_output

OUTPUT = statistics_output(Column("sensor_id", "int32"))
"""The statistics of a sensor in a window, and the moments of the newest reading in it."""


class DownsamplingParams(Windowed, Sensors):
    """Count, sum, min, max, mean and population variance per sensor and tumbling window."""


@dataclass(frozen=True)
class SensorStatistics:
    """The statistics of each sensor in each window."""

    statistics: WindowStatistics

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if the stream ended after so many events."""
        rows = {**self.statistics.until(events[READING_STREAM.name])}
        return {"window_start": rows.pop("window_start"), "sensor_id": rows.pop("key"), **rows}


class Downsampling(ReadingsWorkload[DownsamplingParams]):
    """One stream of readings, and one output per sensor and tumbling window."""

    name = "downsampling"
    summary = "statistics per sensor over a tumbling window"
    paper = f"{papers.THEODOLITE} UC2"
    params = DownsamplingParams
    dimensions = (KEYS, FREQUENCY, WINDOW)

    def output(self, params: DownsamplingParams) -> OutputContract:
        """Six statistics per window and sensor."""
        return OUTPUT

    def reference(self, params: DownsamplingParams, inputs: Inputs) -> ReferenceResult:
        """The statistics of these readings."""
        made = readings_of(params.keys, inputs)
        windows = EventWindows(made.plan, made.origin, params.window, params.window)
        return SensorStatistics(WindowStatistics(made, windows))


downsampling = Downsampling()
