"""The seconds that `plan` estimates, against the clock of a real run.

The figures are those of `streamgauge run quickstart` on two virtual cores. They are from `run.json`, from the `phases`
in the manifests of its trials, and from `findings.json`.
"""

from dataclasses import dataclass, replace

import pytest

from streamgauge.cli.commands.plan import overhead_of, start_up_seconds
from streamgauge.engines.registry import engines
from streamgauge.parse import read

EXPERIMENT = """\
name: quickstart
workload: {name: windowed-aggregation, window: 8s, slide: 4s}
engine: {name: spark, trigger: 2s}
find: sustainable-throughput
load: {between: [50k/s, 20M/s]}
trial: {duration: 30s, warmup: 5s, limit: 60s}
"""


@dataclass(frozen=True)
class Recorded:
    """The seconds of one trial by its phases."""

    starting: float
    load: float
    tail: float
    checking: float


FIRST_LOAD, CONCLUDED = 70.3, 458.9
"""Seconds from the creation of the run: until the load of its first trial began, and until its result was written."""
TRIALS = (
    Recorded(2.66, 29.07, 6.45, 0.05),
    Recorded(2.01, 41.08, 5.18, 0.05),
    Recorded(2.21, 36.11, 4.84, 0.05),
    Recorded(2.05, 66.10, 1.94, 0.04),
    Recorded(3.37, 62.05, 1.92, 0.05),
    Recorded(2.98, 47.04, 5.14, 0.05),
    Recorded(2.00, 21.09, 1.05, 0.05),
    Recorded(2.70, 36.05, 4.78, 0.05),
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
