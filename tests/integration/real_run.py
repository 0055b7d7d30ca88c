"""Whole runs of the reference engine on real processes, through the command line."""

from pathlib import Path

from real_trial import PLACEMENT

from streamgauge.model.calibration import Calibration, Ceilings
from streamgauge.model.experiment import QUEUE
from streamgauge.run.environment import machine_name
from streamgauge.store.calibrations import save

EXPERIMENT = """\
name: real
workload: {name: windowed-aggregation, window: 200ms, slide: 200ms}
engine: {name: reference, capacity: 300k/s}
find: nothing
load: {rate: 100k/s}
objective: [lag-trend <= 1%, lost == 0]
trial: {duration: 3s, limit: 3s, warmup: 1s, invalid_retries: 0}
"""


def calibrated(runs: Path, transport: str = QUEUE) -> Path:
    """A results folder with a calibration of this machine, so that a run needs no check of the maximum rate first."""
    ceilings = Ceilings(queue=10e6, collector=1e6, rate=1e6, lag_p50=1e6, lag_p99=2e6, lag_max=5e6)
    save(
        runs,
        Calibration(machine_name(), PLACEMENT.sentence, "2026-01-01T00:00:00+00:00", ceilings, transport=transport),
    )
    return runs
