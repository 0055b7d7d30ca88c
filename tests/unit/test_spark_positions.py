"""Where a micro-batch ended, out of what Spark tells, and as far as the drivers' doors."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.engines.spark.options import Ends
from streamgauge.engines.spark.positions import Positions, positions_of
from streamgauge.transport.backlog import Ack, Backlog, BacklogError, Lane
from streamgauge.transport.kafka.cluster import Cluster
from streamgauge.transport.kafka.ends import KafkaEnds
from streamgauge.transport.queue_server import QueueServer

TOPIC = "streamgauge.r1.001.purchases"
LANES = (Lane("purchases", 0), Lane("purchases", 1))
TOKEN = "for the test alone"  # noqa: S105
ENDS = KafkaEnds(Cluster("localhost:1"), {"purchases": TOPIC}, "streamgauge.r1.001.outputs", "binary")
DUE = pa.timestamp("us", "UTC")


def progress(*ends: int) -> str:
    """What Spark tells of a micro-batch that ended at these offsets."""
    source = {
        "description": f"KafkaV2[Subscribe[{TOPIC}]]",
        "endOffset": {TOPIC: {str(p): e for p, e in enumerate(ends)}},
    }
    return json.dumps({"batchId": 3, "sources": [source]})


def test_the_end_offsets_of_a_micro_batch_are_the_positions_of_its_lanes() -> None:
    told = json.loads(progress(120, 119))
    assert positions_of(told, {TOPIC: "purchases"}) == {LANES[0]: 120, LANES[1]: 119}


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
def door(tmp_path: Path) -> Iterator[tuple[QueueServer, Positions]]:
    """A driver's door with two lanes, and somebody who tells it positions."""
    endpoint = f"grpc+unix://{tmp_path}/q.sock"
    schema = pa.schema([("due", DUE)])
    server = QueueServer(
        endpoint,
        Telling(LANES),
        schemas={"purchases": schema},
        tokens={"sut": TOKEN},
        lock=threading.Lock(),
        now_ns=time.monotonic_ns,
    )
    ends = Ends(queues=(endpoint,), outputs="", token=TOKEN, stream="purchases", columns=(), query="q")
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


def test_what_was_told_last_is_sent_before_it_hangs_up(door: tuple[QueueServer, Positions]) -> None:
    server, positions = door
    publish(server, 100)
    positions.progressed(progress(100, 100))
    positions.close()
    assert server.status()["acknowledged"] == 200
