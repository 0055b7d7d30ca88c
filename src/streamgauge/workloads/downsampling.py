"""Theodolite's UC2: statistics per sensor over a tumbling window."""

from streamgauge.workloads.contract import Workload
from streamgauge.workloads.parameters import FREQUENCY, KEYS, WINDOW, Sensors, Windowed


class DownsamplingParams(Windowed, Sensors):
    """Count, sum, min, max, mean and population variance per sensor and tumbling window."""


downsampling = Workload(
    name="downsampling",
    summary="statistics per sensor over a tumbling window",
    paper="Theodolite 2021 UC2",
    params=DownsamplingParams,
    dimensions=(KEYS, FREQUENCY, WINDOW),
)
