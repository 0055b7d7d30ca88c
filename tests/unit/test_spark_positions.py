"""Where a micro-batch ended, from what Spark reports, and as far as the counts of a load driver."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.engines.spark.connect.positions import PositionReporter, StartedOffsets, next_trigger, positions_of
from streamgauge.engines.toolkit import PositionLog
from streamgauge.model.streams import Position, StreamPartition
from streamgauge.model.units import SECOND
from streamgauge.processes.control import Json
from streamgauge.transports.kafka.cluster import Cluster, KafkaEndpoints
from streamgauge.transports.queue.buffer import QueueBuffer

TOPIC = "streamgauge.r1.001.purchases"
PARTITIONS = (StreamPartition("purchases", 0), StreamPartition("purchases", 1))
ENDPOINTS = KafkaEndpoints(Cluster("localhost:1"), {"purchases": TOPIC}, "streamgauge.r1.001.outputs", "binary")
DUE = pa.timestamp("us", "UTC")


def progress(*ends: int, began: str = "") -> str:
    """What Spark reports of a micro-batch that ended at these offsets."""
    source = {
        "description": f"KafkaV2[Subscribe[{TOPIC}]]",
        "endOffset": {TOPIC: {str(p): e for p, e in enumerate(ends)}},
    }
    return json.dumps({"batchId": 3, "timestamp": began, "sources": [source]})


def test_the_end_offsets_of_a_micro_batch_are_the_positions_of_its_partitions() -> None:
    reported = json.loads(progress(120, 119))
    assert positions_of(reported, {TOPIC: "purchases"}) == {PARTITIONS[0]: 120, PARTITIONS[1]: 119}


@pytest.mark.parametrize(
    ("began", "begins"),
    [("10:00:02.000Z", 4.0), ("10:00:02.007Z", 4.0), ("10:00:03.999Z", 4.0), ("10:00:04.000Z", 6.0)],
)
def test_micro_batches_begin_at_whole_multiples_of_their_length(began: str, begins: float) -> None:
    hour = datetime(2026, 11, 16, 10, tzinfo=UTC).timestamp()
    assert next_trigger({"timestamp": f"2026-11-16T{began}"}, 2 * SECOND) == hour + begins
    assert next_trigger({}, 0) == 0.0, "the next one begins immediately"


@pytest.mark.parametrize("source", [{}, {"endOffset": None}, {"endOffset": {"another": {"0": 5}}}])
def test_a_report_without_the_topic_of_the_trial_has_no_position(source: dict[str, object]) -> None:
    assert positions_of({"sources": [source]}, {TOPIC: "purchases"}) == {}
    assert positions_of({}, {TOPIC: "purchases"}) == {}


OFFSETS = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1763424000000,"conf":{"spark.sql.shuffle.partitions":"1"}}
{"in":{"1":40,"0":60}}
"""


def test_case_9_what_a_micro_batch_reads_is_reported_when_it_starts(tmp_path: Path) -> None:
    """Spark writes ``offsets/N`` before it runs micro-batch N, and acknowledges it one micro-batch later."""
    reported = list[Mapping[StreamPartition, int]]()
    started = StartedOffsets(tmp_path, {"in": "purchases"}, reported.append)
    started.poll()
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / ".0.tmp").write_text("half")
    started.poll()
    assert reported == []
    (tmp_path / "offsets" / "0").write_text(OFFSETS.replace("40", "0").replace("60", "0"))
    (tmp_path / "offsets" / "1").write_text(OFFSETS)
    started.poll()
    started.poll()
    assert reported == [{PARTITIONS[0]: 60, PARTITIONS[1]: 40}], "the newest, once"
    started.close()


class Controller:
    """What receives the notifications of a session and forwards them to the counts of a load driver."""

    def __init__(self) -> None:
        self.buffer, self.log = QueueBuffer(PARTITIONS), PositionLog()
        self.positions = list[Position]()
        self._lock = threading.Lock()

    def notify(self, notification: Json) -> None:
        """As the control channel sends it: as JSON."""
        with self._lock:
            self.log.take([json.loads(json.dumps(notification))])
            position = self.log.newest()
            assert position is not None
            self.positions.append(position)
            self.buffer.start_processing(position.started or {})
            self.buffer.acknowledge(position.offsets, position.at_ns)

    def publish(self, rows: int) -> None:
        """So many events of each partition."""
        batch = pa.record_batch([pa.array([0] * rows, pa.int64()).view(DUE)], names=["due"])
        self.buffer.publish([(partition, batch) for partition in PARTITIONS], 1)


@pytest.fixture
def controller() -> Controller:
    made = Controller()
    made.publish(100)
    return made


@pytest.fixture
def reporter(controller: Controller) -> Iterator[PositionReporter]:
    """Reports positions as soon as a micro-batch has ended."""
    made = PositionReporter(ENDPOINTS, controller.notify)
    yield made
    made.close()


def until(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < ends, "it did not happen within 10 s"
        time.sleep(0.005)


def test_case_9_the_queue_is_what_waits_to_be_read(controller: Controller, tmp_path: Path) -> None:
    assert (controller.buffer.waiting, controller.buffer.lag) == (200, 200)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_text(OFFSETS.replace('"in"', f'"{TOPIC}"'))
    reporter = PositionReporter(ENDPOINTS, controller.notify, checkpoint=tmp_path)
    until(lambda: controller.buffer.waiting == 100)
    assert controller.buffer.lag == 200, "nothing of it is acknowledged"
    assert controller.buffer.served == 100
    reporter.close()


def test_a_position_that_spark_reports_is_acknowledged(controller: Controller, reporter: PositionReporter) -> None:
    reporter.progressed(progress(60, 40))
    until(lambda: controller.buffer.acknowledged == 100)


def test_a_position_has_the_moment_at_which_it_became_true(controller: Controller, reporter: PositionReporter) -> None:
    before = time.monotonic_ns()
    reporter.progressed(progress(60, 40))
    until(lambda: len(controller.positions) > 0)
    assert before <= controller.positions[-1].at_ns <= time.monotonic_ns()


def test_case_9_in_real_time_mode_the_queue_is_what_follows_the_position_last_reported(
    controller: Controller, reporter: PositionReporter
) -> None:
    """Real-time mode writes its offsets when a batch ends, so no checkpoint is read."""
    assert controller.buffer.waiting == 200
    reporter.progressed(progress(60, 40))
    until(lambda: controller.buffer.waiting == 100)
    assert controller.buffer.served == 100


def test_the_last_position_is_sent_before_the_reporter_ends(controller: Controller, reporter: PositionReporter) -> None:
    reporter.progressed(progress(100, 100))
    reporter.close()
    assert controller.buffer.acknowledged == 200


def test_a_position_that_waits_for_the_next_micro_batch_is_sent_at_the_end(controller: Controller) -> None:
    reporter = PositionReporter(ENDPOINTS, controller.notify, 3_600 * SECOND)
    reporter.progressed(progress(100, 100, began=datetime.now(UTC).isoformat()))
    reporter.close()
    assert controller.buffer.acknowledged == 200


def test_the_reporter_is_still_there_after_a_long_time_without_a_micro_batch(
    controller: Controller, reporter: PositionReporter
) -> None:
    """Its thread waits for the next micro-batch without a limit."""
    reporter.progressed(progress(10, 10))
    until(lambda: controller.buffer.acknowledged == 20)
    reporter.progressed(json.dumps({"sources": []}))  # a moment without a micro-batch
    assert reporter._thread.is_alive()
    reporter.progressed(progress(30, 30))
    until(lambda: controller.buffer.acknowledged == 60)


def test_a_micro_batch_that_ended_early_is_acknowledged_when_the_next_one_begins(controller: Controller) -> None:
    reporter = PositionReporter(ENDPOINTS, controller.notify, SECOND)
    began = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    reporter.progressed(progress(100, 100, began=began.isoformat()))
    until(lambda: controller.buffer.acknowledged == 200)
    assert datetime.now(UTC) >= began + timedelta(seconds=1)
    reporter.close()
