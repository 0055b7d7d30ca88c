"""The two ways of a tick: into the driver's own queue, or through a producer into a topic. One interface."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from streamgauge.model.units import SECOND
from streamgauge.run.offset import ClockOffset
from streamgauge.run.prepare import Makes
from streamgauge.run.sources import Source
from streamgauge.transport.backlog import DUE, Backlog
from streamgauge.transport.books import Books, Lane
from streamgauge.transport.kafka.ends import KafkaEnds
from streamgauge.transport.kafka.formats import Format, numbered, open_format, record_keys, with_sequence
from streamgauge.transport.kafka.ledger import Ledger, Payload
from streamgauge.transport.kafka.options import KafkaOptions
from streamgauge.transport.kafka.producer import Now, Part, Producer, Receipt, open_producer
from streamgauge.transport.queue_server import Control, Door, QueueServer


@dataclass(frozen=True, slots=True)
class Doorway:
    """What the door of a driver needs: its address, who may come in, and whom it asks."""

    endpoint: str
    schemas: Mapping[str, pa.Schema]
    tokens: Mapping[str, str]
    lock: AbstractContextManager[Any]
    now_ns: Callable[[], int]
    control: Control

    def open(self, kind: type[Door], books: Books[Any]) -> Door:
        """The door, with these books behind it."""
        return kind(
            self.endpoint,
            books,
            schemas=self.schemas,
            tokens=self.tokens,
            lock=self.lock,
            now_ns=self.now_ns,
            control=self.control,
        )


class Way(Protocol):
    """How ticks go out. It belongs to the thread that ticks; its books are shared, under the lock of its door."""

    @property
    def books(self) -> Books[Any]: ...

    @property
    def server(self) -> Door: ...

    def source(self, source: Source) -> Makes:
        """Makes events in the form in which they go out."""

    def publish(self, parts: Sequence[tuple[Lane, Any]], until_us: int) -> bool:
        """Hand a tick over. False: a bound is reached, and nothing went."""

    def rest(self, seconds: float) -> None:
        """Wait, at most so long, and move meanwhile what is on its way."""

    def finish(self) -> None:
        """Return when all that was handed over is published."""

    def set_clock(self, ahead_ns: int) -> None:
        """What the generator adds to its monotonic clock to get its wall clock."""

    def said(self) -> dict[str, Any]:
        """What else the controller is told."""

    def close(self) -> None:
        """Hang up."""


class QueueWay:
    """Into the queue in this process."""

    def __init__(self, doorway: Doorway, backlog: Backlog) -> None:
        self.books: Books[Any] = backlog
        self._queue = backlog
        self.server = doorway.open(QueueServer, backlog)
        self._lock = doorway.lock

    def source(self, source: Source) -> Makes:
        """As they are made: Arrow batches."""
        return source

    def publish(self, parts: Sequence[tuple[Lane, Any]], until_us: int) -> bool:
        """Put a tick into the queue."""
        with self._lock:
            return self._queue.publish(parts, until_us)

    def rest(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def finish(self) -> None:
        """What is in the queue is published."""

    def set_clock(self, ahead_ns: int) -> None:
        """There is no other clock to compare with."""

    def said(self) -> dict[str, Any]:
        """Nothing more than the counts."""
        return {}

    def close(self) -> None:
        """There is no line to hang up."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """Makes events as the bytes of records, numbered as in their stream."""

    source: Source
    format: Format

    def batch(self, partition: int, start: int, stop: int) -> Payload:
        """The events at the offsets ``start … stop − 1`` of a partition."""
        source = self.source
        rows = source.batch(partition, start, stop)
        values = self.format.encode(numbered(rows, start * source.partitions + partition, source.partitions))
        return Payload(Part(record_keys(rows), values, rows.column(DUE).view(pa.int64()).to_numpy()))


class KafkaWay:
    """Through producers into the topics of the trial. Whatever goes wrong there is raised, and ends the driver."""

    def __init__(self, doorway: Doorway, ledger: Ledger, ends: KafkaEnds, options: KafkaOptions, now_ns: Now) -> None:
        self.books: Books[Any] = ledger
        self._ledger, self._lock, self._patience = ledger, doorway.lock, options.sending.patience
        mine: dict[str, list[int]] = {}
        for lane in ledger.lanes:
            mine.setdefault(lane.stream, []).append(lane.partition)
        self._lanes = {stream: [Lane(stream, p) for p in numbers] for stream, numbers in mine.items()}
        self._formats = {s: open_format(ends.format, with_sequence(doorway.schemas[s])) for s in mine}
        sending = options.sending.within(ends.largest)
        self._producers: dict[str, Producer] = {
            stream: open_producer(ends.cluster, ends.inputs[stream], now_ns, sending, options.kind) for stream in mine
        }
        self._ahead, self._offset = 0, ClockOffset()
        self.server = doorway.open(Door, ledger)

    def source(self, source: Source) -> Makes:
        """As bytes, made ahead of time."""
        return Encoded(source, self._formats[source.name])

    def publish(self, parts: Sequence[tuple[Lane, Any]], until_us: int) -> bool:
        """Hand a tick to the producers, and take in what the broker has acknowledged meanwhile."""
        with self._lock:
            if not self._ledger.enter(parts, until_us):
                return False
        ticks: dict[str, dict[int, Part]] = {}
        for lane, payload in parts:
            tick = ticks.setdefault(lane.stream, {})
            if lane.partition in tick:  # events of one tick that were made in two pieces
                self._producers[lane.stream].publish(ticks.pop(lane.stream))
                tick = ticks.setdefault(lane.stream, {})
            tick[lane.partition] = payload.part
        for stream, tick in ticks.items():
            self._producers[stream].publish(tick)
        self._take_in()
        return True

    def rest(self, seconds: float) -> None:
        """Send and listen, until something is acknowledged or the time is over."""
        share = seconds / len(self._producers)
        for producer in self._producers.values():
            producer.attend(share)
        self._take_in()

    def finish(self) -> None:
        """Return when the broker has acknowledged everything."""
        for producer in self._producers.values():
            producer.flush(self._patience / SECOND)
        self._take_in()

    def _take_in(self) -> None:
        counts: dict[Lane, int] = {}
        for stream, producer in self._producers.items():
            done = producer.acknowledged()
            counts |= {lane: done[lane.partition] for lane in self._lanes[stream]}
            for receipt in _receipts(producer):
                sent, acknowledged = receipt.sent_ns + self._ahead, receipt.acknowledged_ns + self._ahead
                self._offset.see(receipt.appended_ms, sent, acknowledged)
        with self._lock:
            self._ledger.confirm(counts)

    def set_clock(self, ahead_ns: int) -> None:
        """The wall clock that due times are on."""
        self._ahead = ahead_ns

    def said(self) -> dict[str, Any]:
        """What was sent, and how far the broker's clock is."""
        return {"sent": self._ledger.handed, "clock": self._offset.said()}

    def close(self) -> None:
        """Hang up."""
        for producer in self._producers.values():
            producer.close()


def _receipts(producer: Producer) -> list[Receipt]:
    """What the broker said of the batches that it took, where the producer is told."""
    take: Callable[[], list[Receipt]] | None = getattr(producer, "take_receipts", None)
    return take() if take else []
