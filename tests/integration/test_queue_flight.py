"""The queue over Arrow Flight: what engines see, who is let in, and what a dropped connection leaves."""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from streamgauge.model.streams import StreamPartition
from streamgauge.transports.queue.buffer import QueueBuffer
from streamgauge.transports.queue.reader import QueueReader
from streamgauge.transports.queue.server import QueueServer

STREAM = "purchases"
SCHEMA = pa.schema([("due", pa.timestamp("us", "UTC")), ("n", pa.int64())])
TOKEN = "for the system under test"  # noqa: S105 - of a server in this test


def batch(start: int, stop: int, step: int = 1) -> pa.RecordBatch:
    n = np.arange(start, stop, step)
    return pa.record_batch([pa.array(n).view(SCHEMA.field(0).type), pa.array(n)], schema=SCHEMA)


class Queue:
    """One driver's queue, on a clock that the test moves."""

    def __init__(self, folder: Path, partitions: list[int]) -> None:
        self.time = 0
        self.endpoint = f"grpc+unix://{folder}/queue-{partitions[0]}.sock"
        buffer = QueueBuffer([StreamPartition(STREAM, p) for p in partitions])
        self.server = QueueServer(
            self.endpoint,
            buffer,
            schemas={STREAM: SCHEMA},
            token=TOKEN,
            lock=threading.Lock(),
            now_ns=lambda: self.time,
        )

    def publish(self, start: int, stop: int) -> None:
        """All events of a send interval, dealt out to two partitions in turn."""
        partitions = self.server.buffer.partitions
        self.server.publish([(each, batch(start + each.partition, stop, 2)) for each in partitions], stop)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sg") as made:
        yield Path(made)


@pytest.fixture
def queue(folder: Path) -> Iterator[Queue]:
    made = Queue(folder, [0, 1])
    yield made
    made.server.shutdown()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.005)
    return True


def test_an_engine_finds_reads_and_acknowledges_events(queue: Queue) -> None:
    queue.publish(0, 100)
    queue.publish(100, 150)
    with QueueReader([queue.endpoint], TOKEN) as reader:
        found = reader.up_to(51)
        assert (found.due_us, found.offsets) == (51, {StreamPartition(STREAM, 0): 26, StreamPartition(STREAM, 1): 25})
        tables = [reader.stream(partition, 0, stop).read_all() for partition, stop in found.offsets.items()]
        assert sorted(n for table in tables for n in table["n"].to_pylist()) == list(range(51))
        reader.acknowledge(found.offsets)
        status = reader.status()[0]
        assert (status["published"], status["served"], status["acknowledged"], status["lag"]) == (150, 51, 51, 99)
        assert reader.available().starts == found.offsets
        assert reader.schema(STREAM) == SCHEMA


def test_several_drivers_are_read_up_to_the_due_time_that_all_have_reached(folder: Path) -> None:
    first, second = Queue(folder, [0]), Queue(folder, [1])
    with QueueReader([first.endpoint, second.endpoint], TOKEN) as reader:
        first.publish(0, 100)
        assert (reader.available().due_us, set(reader.available().offsets.values())) == (None, {0})
        second.publish(0, 50)
        found = reader.available()
        assert (found.due_us, found.offsets) == (50, {StreamPartition(STREAM, 0): 25, StreamPartition(STREAM, 1): 25})
        reader.acknowledge(found.offsets)
        assert [s["acknowledged"] for s in reader.status()] == [25, 25]
    first.server.shutdown()
    second.server.shutdown()


def test_a_call_without_the_token_is_refused_and_the_queue_has_no_action_of_the_controller(queue: Queue) -> None:
    with QueueReader([queue.endpoint], "a guess") as reader, pytest.raises(flight.FlightUnauthenticatedError):
        reader.status()
    for action in ("start", "end", "stop", "quit", "position"):
        with (
            QueueReader([queue.endpoint], TOKEN) as reader,
            pytest.raises(flight.FlightServerError, match=f"unknown action {action}"),
        ):
            reader._request(reader._clients[0], action, at_ns=3)


def test_a_range_that_is_not_there_is_refused_with_a_sentence(queue: Queue) -> None:
    with (
        QueueReader([queue.endpoint], TOKEN) as reader,
        pytest.raises(flight.FlightServerError, match="0 to 0"),
    ):
        reader.stream(StreamPartition(STREAM, 0), 0, 5).read_all()


def test_a_stream_that_was_read_to_its_end_is_no_disconnect(queue: Queue) -> None:
    queue.publish(0, 2_000_000)
    with QueueReader([queue.endpoint], TOKEN) as reader:
        assert reader.stream(StreamPartition(STREAM, 0), 0, 1_000_000).read_all().num_rows == 1_000_000
    queue.time = 60 * 10**9
    assert queue.server.status()["disconnects"] == 0


READ_AND_DIE = """
import os, sys
from streamgauge.transports.queue.reader import QueueReader
from streamgauge.model.streams import StreamPartition
reader = QueueReader([sys.argv[1]], sys.argv[2]).stream(StreamPartition("purchases", 0), 0, 4_000_000)
reader.read_next_batch()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("retried", "disconnects"), [(True, 0), (False, 1)])
def test_a_reader_killed_in_a_stream_is_a_disconnect_unless_its_retry_comes(
    queue: Queue, retried: bool, disconnects: int
) -> None:
    for start in range(0, 8_000_000, 100_000):
        queue.publish(start, start + 100_000)
    subprocess.run((sys.executable, "-c", READ_AND_DIE, queue.endpoint, TOKEN), check=False)
    assert within(5, lambda: len(queue.server.buffer._cancelled) == 1)
    if retried:
        with QueueReader([queue.endpoint], TOKEN) as reader:
            assert reader.stream(StreamPartition(STREAM, 0), 0, 4_000_000).read_all().num_rows == 4_000_000
    queue.time += 11 * 10**9
    assert queue.server.status()["disconnects"] == disconnects
