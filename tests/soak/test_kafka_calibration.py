"""A whole calibration over Kafka: known capacities and delays come out as they are, in three minutes at most."""

import tempfile
from pathlib import Path

import pytest
from kafka_broker import needs_kafka

from streamgauge.cli.cache import cache_folder
from streamgauge.model.experiment import TransportChoice
from streamgauge.processes.placement import place
from streamgauge.run.calibrate.calibrate import KAFKA_CAPACITIES, calibrate, site
from streamgauge.run.calibrate.load_limit import transport_named
from streamgauge.run.limits import Limits
from streamgauge.transports.kafka.options import KafkaOptions

pytestmark = [pytest.mark.soak, needs_kafka]
CLOSE = 0.02
"""The most by which a measured capacity may be wrong."""
GRAIN = 1e6
"""Nanoseconds of the broker's clock."""


def test_three_capacities_are_recovered_within_two_per_cent_and_delays_within_milliseconds(tmp_path: Path) -> None:
    choice = TransportChoice("kafka", KafkaOptions().dumped())
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        limits = Limits(runtime=Path(short), cache=cache_folder())
        with site(tmp_path / "work", place({}), print, limits, choice) as at:
            found = calibrate(at, "this machine")
    assert found.transport == transport_named(choice) == "kafka, binary records"
    assert found.seconds <= 180
    assert 0 < found.ceilings.most < found.ceilings.queue
    valid = [row for row in found.capacities if row.verdict != "INVALID"]
    assert len(found.capacities) == len(KAFKA_CAPACITIES)
    assert len(valid) >= 2, found.problems()
    for row in valid:
        assert abs(row.error) <= CLOSE, row
    for delay in (row for row in found.latencies if row.verdict != "INVALID"):
        assert delay.true_p50 - GRAIN <= delay.measured_p50 <= delay.true_p50 + 5 * GRAIN, delay
