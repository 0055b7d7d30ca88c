"""The other side for calibration: a system under test that does nothing but read, or nothing but send.

Started by the launcher on the SUT's cores as ``python -m streamgauge.run.calibrate.null_consumer``. It runs until it
is ended.
"""

import itertools
import signal
import threading
import time

import numpy as np
import pyarrow as pa

from streamgauge.processes.child import quicken, without_pandas
from streamgauge.run.driver.generator import read_errand, say
from streamgauge.run.driver.specs import OppositeOrder
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.outputs import OutputWriter
from streamgauge.transports.queue.reader import QueueReader

_NAP = 0.001
_STAMP = pa.timestamp("us", "UTC")
OUTPUT = pa.schema([("key", pa.int64()), ("window_end", _STAMP), ("sum", pa.int64()), ("max_due", _STAMP)])


def open_reader(endpoints: tuple[str, ...], token: str, ends: KafkaEnds | None) -> QueueReader:
    """What reads the events of these drivers: from their queues, or from the topics."""
    if ends is None:
        return QueueReader(endpoints, token)
    from streamgauge.transports.kafka.topics_io import EventReader  # noqa: PLC0415 - what Kafka needs is an extra

    return EventReader(endpoints, token, ends)


def consume(queue: QueueReader, over: threading.Event) -> None:
    """Read everything as soon as it is there, look at nothing, acknowledge."""
    position: dict[Lane, int] = {}
    with queue as reader:
        while not over.is_set():
            cut = reader.latest()
            news = {lane: stop for lane, stop in cut.offsets.items() if stop > position.get(lane, 0)}
            for lane, stop in news.items():
                for _ in reader.read(lane, position.get(lane, 0), stop):
                    pass
            position |= news
            if news:
                reader.acknowledge(news)
            else:
                time.sleep(_NAP)


def send(endpoint: str, token: str, rows: int, over: threading.Event) -> None:
    """Send outputs as fast as they are taken, a million or so to a commit."""
    stamps = pa.array(np.full(rows, time.time_ns() // 1000)).view(_STAMP)
    keys = pa.array(np.arange(rows))
    batch = pa.record_batch([keys, stamps, keys, stamps], schema=OUTPUT)
    with OutputWriter(endpoint, token) as writer:
        for number in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
            writer.put("ceiling", number, OUTPUT, [batch] * max(1, (1 << 20) // rows), commit=True)


def main() -> None:
    """The process's table of contents."""
    without_pandas()
    errand = read_errand()
    order = OppositeOrder.model_validate_json(errand.order.read_bytes())
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    reader = None if order.rows else open_reader(order.endpoints, errand.tokens.sut, errand.ends)
    quicken()
    say("ready")
    if reader is None:
        send(order.endpoints[0], errand.tokens.sut, order.rows, over)
    else:
        consume(reader, over)


if __name__ == "__main__":
    main()
