"""The two ways of a tick: into the driver's own queue, or through a producer into a topic. One interface."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from streamgauge.model.units import SECOND
from streamgauge.run.driver.send_schedule import Makes, Source
from streamgauge.transports.kafka.client.producer import Now, Part, Producer, Receipt, open_producer
from streamgauge.transports.kafka.clock_offset import MILLI, ClockOffset
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.kafka.formats.formats import Format, numbered, open_format, record_keys, with_sequence
from streamgauge.transports.kafka.ledger import Append, Ledger, Payload
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.ledger import Books, Lane
from streamgauge.transports.queue.buffer import DUE, Backlog
from streamgauge.transports.queue.server import Control, Door, QueueServer


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

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """When the load begins, on the generator's monotonic clock and on its wall clock."""

    def take_appends(self) -> tuple[list[Append], int]:
        """What a broker has confirmed since the last time, and how far partitions were apart at most, in nanoseconds.

        Called under the lock of its door."""

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

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """There is no other clock to compare with."""

    def take_appends(self) -> tuple[list[Append], int]:
        """No broker is there, and a tick goes to all partitions at once."""
        return [], 0

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
        self._start = self._wall = 0
        self._now, self._offset = now_ns, ClockOffset()
        self._sent: dict[Lane, deque[tuple[int, int]]] = {lane: deque() for lane in ledger.lanes}
        """Of each lane the ticks that are not confirmed whole: until when they are due, how many events are left."""
        self._counted: dict[Lane, int] = dict.fromkeys(ledger.lanes, 0)
        self.server = doorway.open(Door, ledger)

    def source(self, source: Source) -> Makes:
        """As bytes, made ahead of time."""
        return Encoded(source, self._formats[source.name])

    def publish(self, parts: Sequence[tuple[Lane, Any]], until_us: int) -> bool:
        """Hand a tick to the producers, and take in what the broker has acknowledged meanwhile."""
        with self._lock:
            if not self._ledger.enter(parts, until_us):
                return False
        for lane, payload in parts:
            if payload.num_rows:
                self._sent[lane].append((until_us, payload.num_rows))
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
        news = list[tuple[int, int, int]]()
        for stream, producer in self._producers.items():
            done = producer.acknowledged()
            counts |= {lane: done[lane.partition] for lane in self._lanes[stream]}
            for receipt in _receipts(producer):
                news += self._confirmed(Lane(stream, receipt.partition), receipt.rows, self._appended(receipt))
        for lane, count in counts.items():  # a producer without receipts
            news += self._confirmed(lane, count - self._counted[lane], self._now() - self._start)
        with self._lock:
            self._ledger.confirm(counts)
            now = self._now() - self._start  # under the lock: a second that is closed gets nothing any more
            self._ledger.appends += [Append(intended, at, now, rows) for intended, at, rows in news]

    def _appended(self, receipt: Receipt) -> int:
        """When the broker appended a batch, since the load began. Its stamp cannot be before the batch was sent or
        after it was acknowledged, whatever its clock says."""
        ahead = self._wall - self._start
        sent, acknowledged = receipt.sent_ns + ahead, receipt.acknowledged_ns + ahead
        self._offset.see(receipt.appended_ms, sent, acknowledged)
        stamp = receipt.appended_ms * MILLI if receipt.appended_ms >= 0 else acknowledged
        return min(max(stamp, sent), acknowledged) - self._wall

    def _confirmed(self, lane: Lane, rows: int, appended: int) -> Iterator[tuple[int, int, int]]:
        """The oldest events of a lane are in the log: for each of their ticks its moment, when, and how many."""
        waiting = self._sent[lane]
        self._counted[lane] += rows
        while rows > 0 and waiting:
            until, left = waiting.popleft()
            taken = min(rows, left)
            if left > taken:
                waiting.appendleft((until, left - taken))
            rows -= taken
            yield until * 1_000 - self._wall // 1_000 * 1_000, appended, taken

    def take_appends(self) -> tuple[list[Append], int]:
        """What the broker has confirmed."""
        skew, self._ledger.skew_us = self._ledger.skew_us, 0
        return self._ledger.take_appends(), skew * 1_000

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """The wall clock that due times are on."""
        self._start, self._wall = start_ns, wall_ns

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
