"""Theodolite's UC2: statistics per sensor over a tumbling window."""

from streamgauge.model import papers
from streamgauge.workloads.contract import WithoutEvents
from streamgauge.workloads.parameters import FREQUENCY, KEYS, WINDOW, Sensors, Windowed


class DownsamplingParams(Windowed, Sensors):
    """Count, sum, min, max, mean and population variance per sensor and tumbling window."""


class Downsampling(WithoutEvents[DownsamplingParams]):
    """One output per sensor and tumbling window."""

    name = "downsampling"
    summary = "statistics per sensor over a tumbling window"
    paper = f"{papers.THEODOLITE} UC2"
    params = DownsamplingParams
    dimensions = (KEYS, FREQUENCY, WINDOW)


downsampling = Downsampling()
