"""Where a micro-batch ended, out of what Spark tells, and as far as the drivers' doors."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.engines.spark.connect.positions import Positions, Taken, next_begins, positions_of
from streamgauge.engines.spark.options import Ends
from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.cluster import Cluster, KafkaEnds
from streamgauge.transports.ledger import Ack, BacklogError, Lane
from streamgauge.transports.queue.buffer import Backlog
from streamgauge.transports.queue.reader import QueueReader
from streamgauge.transports.queue.server import QueueServer

TOPIC = "streamgauge.r1.001.purchases"
LANES = (Lane("purchases", 0), Lane("purchases", 1))
TOKEN = "for the test alone"  # noqa: S105
ENDS = KafkaEnds(Cluster("localhost:1"), {"purchases": TOPIC}, "streamgauge.r1.001.outputs", "binary")
DUE = pa.timestamp("us", "UTC")


def progress(*ends: int, began: str = "") -> str:
    """What Spark tells of a micro-batch that ended at these offsets."""
    source = {
        "description": f"KafkaV2[Subscribe[{TOPIC}]]",
        "endOffset": {TOPIC: {str(p): e for p, e in enumerate(ends)}},
    }
    return json.dumps({"batchId": 3, "timestamp": began, "sources": [source]})


def test_the_end_offsets_of_a_micro_batch_are_the_positions_of_its_lanes() -> None:
    told = json.loads(progress(120, 119))
    assert positions_of(told, {TOPIC: "purchases"}) == {LANES[0]: 120, LANES[1]: 119}


@pytest.mark.parametrize(
    ("began", "begins"),
    [("10:00:02.000Z", 4.0), ("10:00:02.007Z", 4.0), ("10:00:03.999Z", 4.0), ("10:00:04.000Z", 6.0)],
)
def test_micro_batches_begin_at_whole_multiples_of_their_length(began: str, begins: float) -> None:
    hour = datetime(2026, 11, 16, 10, tzinfo=UTC).timestamp()
    assert next_begins({"timestamp": f"2026-11-16T{began}"}, 2 * SECOND) == hour + begins
    assert next_begins({}, 0) == 0.0, "the next one begins at once"


@pytest.mark.parametrize("source", [{}, {"endOffset": None}, {"endOffset": {"another": {"0": 5}}}])
def test_what_says_nothing_of_our_topic_says_nothing(source: dict[str, object]) -> None:
    assert positions_of({"sources": [source]}, {TOPIC: "purchases"}) == {}
    assert positions_of({}, {TOPIC: "purchases"}) == {}


class Telling(Backlog):
    """A backlog that counts what it was told too early."""

    refused = 0

    def acknowledge(self, offsets: Mapping[Lane, int], now_ns: int) -> Ack:
        """As a backlog does."""
        try:
            return super().acknowledge(offsets, now_ns)
        except BacklogError:
            self.refused += 1
            raise


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    """Where a driver's door is."""
    queues = (f"grpc+unix://{tmp_path}/q.sock",)
    return Ends(queues=queues, outputs="", token=TOKEN, stream="purchases", columns=(), query="q")


OFFSETS = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1763424000000,"conf":{"spark.sql.shuffle.partitions":"1"}}
{"in":{"1":40,"0":60}}
"""


def test_case_9_what_a_micro_batch_takes_is_told_when_it_starts(tmp_path: Path) -> None:
    """Spark writes ``offsets/N`` before it runs micro-batch N, and acknowledges it one micro-batch later."""
    told = list[Mapping[Lane, int]]()
    taken = Taken(tmp_path, {"in": "purchases"}, told.append)
    taken.look()
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / ".0.tmp").write_text("half")
    taken.look()
    assert told == []
    (tmp_path / "offsets" / "0").write_text(OFFSETS.replace("40", "0").replace("60", "0"))
    (tmp_path / "offsets" / "1").write_text(OFFSETS)
    taken.look()
    taken.look()
    assert told == [{Lane("purchases", 0): 60, Lane("purchases", 1): 40}], "the newest, once"
    taken.close()


def test_case_9_the_queue_is_what_waits_to_be_taken(door: "tuple[QueueServer, Positions]", ends: Ends) -> None:
    server, _ = door
    publish(server, 100)
    assert (server.books.waiting, server.books.lag) == (200, 200)
    with QueueReader(ends.queues, ends.token) as reader:
        reader.taken({LANES[0]: 60, LANES[1]: 40})
    assert (server.books.waiting, server.books.lag) == (100, 200), "nothing of it is acknowledged"
    assert server.status()["served"] == 100


@pytest.fixture
def door(ends: Ends) -> Iterator[tuple[QueueServer, Positions]]:
    """A driver's door with two lanes, and somebody who tells it positions."""
    schema = pa.schema([("due", DUE)])
    server = QueueServer(
        ends.queues[0],
        Telling(LANES),
        schemas={"purchases": schema},
        tokens={"sut": TOKEN},
        lock=threading.Lock(),
        now_ns=time.monotonic_ns,
    )
    positions = Positions(ends, ENDS)
    yield server, positions
    positions.close()
    server.shutdown()


def publish(server: QueueServer, rows: int) -> None:
    batch = pa.record_batch([pa.array([0] * rows, pa.int64()).view(DUE)], names=["due"])
    server.publish([(lane, batch) for lane in LANES], 1)


def until(happened: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not happened():
        assert time.monotonic() < ends, "it did not happen within 10 s"
        time.sleep(0.005)


def test_a_position_is_acknowledged_at_the_door(door: tuple[QueueServer, Positions]) -> None:
    server, positions = door
    publish(server, 100)
    positions.progressed(progress(60, 40))
    until(lambda: server.status()["acknowledged"] == 100)


def test_a_position_that_the_driver_does_not_know_of_yet_is_told_again_until_it_does(
    door: tuple[QueueServer, Positions],
) -> None:
    server, positions = door
    publish(server, 10)
    positions.progressed(progress(15, 15))
    backlog = server.backlog
    assert isinstance(backlog, Telling)
    until(lambda: backlog.refused > 1)
    assert server.status()["acknowledged"] == 0
    publish(server, 10)
    until(lambda: server.status()["acknowledged"] == 30)


def test_case_9_in_real_time_mode_the_queue_is_what_follows_the_position_last_reported(
    door: tuple[QueueServer, Positions],
) -> None:
    """Real-time mode writes its offsets when a batch ends, so no checkpoint is looked at."""
    server, positions = door
    publish(server, 100)
    assert server.books.waiting == 200
    positions.progressed(progress(60, 40))
    until(lambda: server.books.waiting == 100)
    assert server.status()["served"] == 100


def test_what_was_told_last_is_sent_before_it_hangs_up(door: tuple[QueueServer, Positions]) -> None:
    server, positions = door
    publish(server, 100)
    positions.progressed(progress(100, 100))
    positions.close()
    assert server.status()["acknowledged"] == 200


def test_a_micro_batch_that_was_done_early_is_acknowledged_when_the_next_one_begins(
    door: tuple[QueueServer, Positions], ends: Ends
) -> None:
    server, _ = door
    publish(server, 100)
    positions = Positions(ends, ENDS, SECOND)
    began = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    positions.progressed(progress(100, 100, began=began.isoformat()))
    until(lambda: server.status()["acknowledged"] == 200)
    assert datetime.now(UTC) >= began + timedelta(seconds=1)
    positions.close()
