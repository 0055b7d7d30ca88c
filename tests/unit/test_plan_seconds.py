"""The seconds that `plan` estimates, against the clock of a real run.

The figures are those of the guide "Your own function": `streamgauge calibrate`, then `streamgauge run my.yaml` on two
virtual cores. They are from `run.json`, from the `phases` in the manifests of its trials, and from `findings.json`.
"""

from dataclasses import dataclass, replace

import pytest

from streamgauge.cli.commands.plan import overhead_of, start_up_seconds
from streamgauge.engines.registry import engines
from streamgauge.parse import read

EXPERIMENT = """\
name: my-first
workload: {name: windowed-aggregation, window: 8s, slide: 4s}
engine: {name: spark}
find: sustainable-throughput
load: {between: [10k/s, 50M/s]}
trial: {duration: 30s, warmup: auto, limit: 90s}
"""


@dataclass(frozen=True)
class Recorded:
    """The seconds of one trial by its phases."""

    starting: float
    load: float
    tail: float
    checking: float


FIRST_LOAD, CONCLUDED = 105.5, 480.5
"""Seconds from the creation of the run: until the load of its first trial began, and until its result was written."""
TRIALS = (
    Recorded(2.97, 43.02, 27.72, 0.14),
    Recorded(2.71, 76.06, 47.63, 0.10),
    Recorded(2.74, 47.09, 31.87, 0.10),
    Recorded(3.01, 24.04, 20.24, 0.07),
    Recorded(2.26, 24.04, 20.92, 0.07),
)
FACTOR = 1.5


def test_the_phases_of_the_recorded_trials_and_the_start_are_the_whole_run() -> None:
    """Nothing else takes time, so an estimate of these parts is an estimate of the run."""
    parts = sum(t.starting + t.load + t.tail + t.checking for t in TRIALS)
    assert FIRST_LOAD - TRIALS[0].starting + parts == pytest.approx(CONCLUDED, rel=0.02)


def test_the_estimate_of_a_run_is_right_within_a_factor_of_one_and_a_half() -> None:
    experiment = read(EXPERIMENT)
    (choice,) = experiment.engines
    overhead = overhead_of(experiment, choice, engines()[choice.name], len(TRIALS))
    planned = overhead.once + len(TRIALS) * overhead.each + sum(t.load for t in TRIALS)
    assert CONCLUDED / FACTOR <= planned <= CONCLUDED * FACTOR
    start = FIRST_LOAD - TRIALS[0].starting
    assert start / FACTOR <= overhead.once <= start * FACTOR


def test_a_run_that_is_not_calibrated_and_one_over_kafka_begin_later() -> None:
    experiment = read(EXPERIMENT)
    over_kafka = replace(experiment, transport=read(EXPERIMENT + "transport: {name: kafka}\n").transport)
    assert 0 < start_up_seconds(experiment, True) < start_up_seconds(over_kafka, True)
    assert start_up_seconds(experiment, False) == 0
