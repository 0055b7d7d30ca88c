"""A whole calibration over Kafka: known capacities and delays are measured as they are, in three minutes at most."""

import tempfile
from pathlib import Path

import pytest
from kafka_broker import needs_kafka

from streamgauge.cli.environment import cache_folder
from streamgauge.processes.placement import assign_cores
from streamgauge.run.calibrate.calibrate import CAPACITIES, calibrate, known_capacities, open_setup
from streamgauge.run.trial.setup import RunLimits
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.kafka.transport import KafkaTransport
from streamgauge.transports.registry import choice_of, identity_of

pytestmark = [pytest.mark.soak, needs_kafka]
CLOSE = 0.02
"""The most by which a measured capacity may be wrong."""
GRAIN = 1e6
"""Nanoseconds of the broker's clock."""


def test_capacities_are_recovered_within_two_per_cent_and_delays_within_milliseconds(tmp_path: Path) -> None:
    choice = choice_of(KafkaTransport(), KafkaOptions())
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        limits = RunLimits(runtime=Path(short), cache=cache_folder())
        with open_setup(tmp_path / "work", assign_cores(1), print, limits, choice) as setup:
            found = calibrate(setup, "this machine")
    assert found.transport == identity_of(choice) == "kafka, binary records"
    assert found.seconds <= 180
    assert 0 < found.ceilings.max_load < found.ceilings.queue
    valid = [row for row in found.capacities if row.verdict != "INVALID"]
    assert len(found.capacities) == len(known_capacities(CAPACITIES, found.ceilings.max_load)) >= 3
    assert len(valid) >= 2, found.problems()
    for row in valid:
        assert abs(row.error) <= CLOSE, row
    for delay in (row for row in found.latencies if row.verdict != "INVALID"):
        assert delay.true_p50 - GRAIN <= delay.measured_p50 <= delay.true_p50 + 5 * GRAIN, delay
