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

from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.buffer import Backlog
from streamgauge.transports.queue.reader import QueueReader
from streamgauge.transports.queue.server import QueueServer

STREAM = "purchases"
SCHEMA = pa.schema([("due", pa.timestamp("us", "UTC")), ("n", pa.int64())])
TOKENS = {"sut": "for the system under test", "control": "for the controller"}


def batch(start: int, stop: int, step: int = 1) -> pa.RecordBatch:
    n = np.arange(start, stop, step)
    return pa.record_batch([pa.array(n).view(SCHEMA.field(0).type), pa.array(n)], schema=SCHEMA)


class Queue:
    """One driver's queue, on a clock that the test moves."""

    def __init__(self, folder: Path, partitions: list[int]) -> None:
        self.time = 0
        self.endpoint = f"grpc+unix://{folder}/queue-{partitions[0]}.sock"
        backlog = Backlog([Lane(STREAM, p) for p in partitions])
        self.server = QueueServer(
            self.endpoint,
            backlog,
            schemas={STREAM: SCHEMA},
            tokens=TOKENS,
            lock=threading.Lock(),
            now_ns=lambda: self.time,
            control=lambda action, body: {action: body},
        )

    def publish(self, start: int, stop: int) -> None:
        """All events of the tick, dealt out to two partitions in turn."""
        lanes = self.server.backlog.lanes
        self.server.publish([(lane, batch(start + lane.partition, stop, 2)) for lane in lanes], stop)


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


def test_an_engine_cuts_reads_and_acknowledges(queue: Queue) -> None:
    queue.publish(0, 100)
    queue.publish(100, 150)
    with QueueReader([queue.endpoint], TOKENS["sut"]) as reader:
        cut = reader.cut(51)
        assert (cut.due, cut.offsets) == (51, {Lane(STREAM, 0): 26, Lane(STREAM, 1): 25})
        rows = [n for lane, stop in cut.offsets.items() for n in reader.read(lane, 0, stop).read_all()["n"].to_pylist()]
        assert sorted(rows) == list(range(51))
        reader.acknowledge(cut.offsets)
        status = reader.status()[0]
        assert (status["published"], status["served"], status["acknowledged"], status["lag"]) == (150, 51, 51, 99)
        assert reader.latest().starts == cut.offsets
        assert reader.schema(STREAM) == SCHEMA


def test_several_drivers_are_cut_at_the_due_time_that_all_have_reached(folder: Path) -> None:
    first, second = Queue(folder, [0]), Queue(folder, [1])
    with QueueReader([first.endpoint, second.endpoint], TOKENS["sut"]) as reader:
        first.publish(0, 100)
        assert (reader.latest().due, set(reader.latest().offsets.values())) == (None, {0})
        second.publish(0, 50)
        cut = reader.latest()
        assert (cut.due, cut.offsets) == (50, {Lane(STREAM, 0): 25, Lane(STREAM, 1): 25})
        reader.acknowledge(cut.offsets)
        assert [s["acknowledged"] for s in reader.status()] == [25, 25]
    first.server.shutdown()
    second.server.shutdown()


def test_who_has_no_token_is_not_let_in_and_the_sut_may_not_give_orders(queue: Queue) -> None:
    with QueueReader([queue.endpoint], "a guess") as reader, pytest.raises(flight.FlightUnauthenticatedError):
        reader.status()
    with QueueReader([queue.endpoint], TOKENS["sut"]) as reader, pytest.raises(flight.FlightUnauthorizedError):
        reader._ask(reader._clients[0], "start")
    with QueueReader([queue.endpoint], TOKENS["control"]) as reader:
        assert reader._ask(reader._clients[0], "start", at=3) == {"start": {"at": 3}}


def test_a_range_that_is_not_there_is_refused_with_a_sentence(queue: Queue) -> None:
    with (
        QueueReader([queue.endpoint], TOKENS["sut"]) as reader,
        pytest.raises(flight.FlightServerError, match="0 to 0"),
    ):
        reader.read(Lane(STREAM, 0), 0, 5).read_all()


def test_a_stream_that_was_read_to_its_end_is_no_drop(queue: Queue) -> None:
    queue.publish(0, 2_000_000)
    with QueueReader([queue.endpoint], TOKENS["sut"]) as reader:
        assert reader.read(Lane(STREAM, 0), 0, 1_000_000).read_all().num_rows == 1_000_000
    queue.time = 60 * 10**9
    assert queue.server.status()["drops"] == 0


READ_AND_DIE = """
import os, sys
from streamgauge.transports.queue.reader import QueueReader
from streamgauge.transports.ledger import Lane
reader = QueueReader([sys.argv[1]], sys.argv[2]).read(Lane("purchases", 0), 0, 4_000_000)
reader.read_next_batch()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(("retried", "drops"), [(True, 0), (False, 1)])
def test_a_reader_killed_in_a_stream_is_a_drop_unless_its_retry_comes(queue: Queue, retried: bool, drops: int) -> None:
    for start in range(0, 8_000_000, 100_000):
        queue.publish(start, start + 100_000)
    subprocess.run((sys.executable, "-c", READ_AND_DIE, queue.endpoint, TOKENS["sut"]), check=False)
    assert within(5, lambda: len(queue.server.backlog._cancelled) == 1)
    if retried:
        with QueueReader([queue.endpoint], TOKENS["sut"]) as reader:
            assert reader.read(Lane(STREAM, 0), 0, 4_000_000).read_all().num_rows == 4_000_000
    queue.time += 11 * 10**9
    assert queue.server.status()["drops"] == drops
