"""Spark over Kafka: its outputs are the reference's. `make soak` has every format, update and real-time mode."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka_broker import needs_kafka
from real_trial import PLACEMENT
from spark_kafka_trial import on_kafka, play_on_kafka

from streamgauge.run.monitor import available
from streamgauge.store.journal import read_parts

pytestmark = [
    needs_kafka,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="a trial needs /proc and two cores"),
]


def test_outputs_over_kafka_are_exactly_the_reference_answer(tmp_path: Path) -> None:
    # a cold session is seconds behind at first, and what is far behind in the end is not drained
    played = play_on_kafka(on_kafka(10_000.0, 10), tmp_path)
    account = played.measured.account
    assert account.checked, played
    assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), played
    assert account.observed >= 100 * 3, played
    facts = played.recording.facts
    assert (facts["mode"], facts["output_mode"]) == ("micro-batch", "append")
    rows = read_parts(tmp_path / "outputs" / "outputs")
    assert rows is not None
    ingested = pc.cast(rows["max_ingested"], pa.int64())
    assert pc.all(pc.less_equal(pc.cast(rows["max_due"], pa.int64()), ingested)).as_py(), "appended before it was due"
    assert pc.all(pc.less_equal(ingested, rows["emitted_us"])).as_py(), "an output before its events, on one clock"
