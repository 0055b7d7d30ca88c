"""The producer that builds record batches with numpy and sends them over plaintext connections.

It needs a tenth of the CPU time of a producer that handles single records: on a small machine the load driver must
not take CPU time from the system under test. Requests are pipelined. While the allowed number of requests is
unanswered, events wait, and the next batch is larger. One request to a broker contains a batch of each partition that
has events, of all topics.
"""

import select
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from streamgauge.model.units import SECOND, duration_text
from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client import protocol
from streamgauge.transports.kafka.client.batches import BatchBuffer, encode, rows_within
from streamgauge.transports.kafka.client.connections import BrokerConnections, Connection
from streamgauge.transports.kafka.client.producer import (
    MILLI,
    DeliveryReport,
    Now,
    PartitionRecords,
    ProducerFull,
    ProducerSettings,
    RecordColumns,
    TopicPartition,
    no_such_partition,
    throttle_note,
)
from streamgauge.transports.kafka.client.protocol import Batch, BrokerUnreachable, Response
from streamgauge.transports.kafka.cluster import Cluster


@dataclass(slots=True)
class PendingRecords:
    """Events of one partition that were published and not sent."""

    parts: deque[RecordColumns] = field(default_factory=deque)
    rows: int = 0
    size: int = 0
    since_ns: int = 0
    """When the oldest of them was published."""

    def add(self, part: RecordColumns, now: int) -> None:
        """Append events that were published now."""
        if not self.rows:
            self.since_ns = now
        self.parts.append(part)
        self.rows += len(part.values)
        self.size += part.values.size

    def take(self, rows: int) -> RecordColumns:
        """Remove and return the oldest events, at most so many, all of the same widths."""
        taken, left = list[RecordColumns](), rows
        while left and self.parts and widths(self.parts[0]) == widths((taken or self.parts)[0]):
            part = self.parts.popleft()
            if len(part.values) > left:
                self.parts.appendleft(_slice(part, left, None))
                part = _slice(part, 0, left)
            taken.append(part)
            left -= len(part.values)
        joined = taken[0] if len(taken) == 1 else _concatenate(taken)
        self.rows -= len(joined.values)
        self.size -= joined.values.size
        return joined


def widths(part: RecordColumns) -> tuple[int | None, int]:
    """The widths of keys and values: one batch has one of each."""
    return (None if part.keys is None else part.keys.shape[1]), part.values.shape[1]


def _slice(part: RecordColumns, start: int, stop: int | None) -> RecordColumns:
    keys = None if part.keys is None else part.keys[start:stop]
    return RecordColumns(keys, part.values[start:stop], part.due_us[start:stop])


def _concatenate(parts: list[RecordColumns]) -> RecordColumns:
    keys = [part.keys for part in parts if part.keys is not None]
    values, due = np.concatenate([part.values for part in parts]), np.concatenate([part.due_us for part in parts])
    return RecordColumns(np.concatenate(keys) if keys else None, values, due)


_ACKS = {"0": 0, "1": 1, "all": -1}
_MAX_BUFFERS = 64  # buffers passed to the system in one call, which takes at most 1024
_CHUNK = 1 << 16
_MAX_REQUEST = 32 << 20
"""Maximum bytes of a request. Brokers accept 100 MB by default (socket.request.max.bytes)."""
_POLL_INTERVAL = 0.1
_NEVER = 3600 * SECOND


class _Request(NamedTuple):
    """An unanswered request: its contents, and the byte of the connection after which it is written completely."""

    number: int
    rows: dict[TopicPartition, int]
    buffers: list[BatchBuffer]
    end: int
    sent_ns: int


class _BrokerConnection:
    """The connection to one broker: bytes to write, unanswered requests, and bytes of responses."""

    def __init__(self, connection: Connection) -> None:
        self.address, self.socket = connection.address, connection.socket
        self.socket.setblocking(False)
        self.in_flight: deque[_Request] = deque()
        self._out: deque[memoryview | bytes] = deque()
        self._in = bytearray()
        self._requests = self._queued = self._written = 0

    @property
    def unsent(self) -> bool:
        """Whether bytes wait for the system to take them."""
        return bool(self._out)

    def request(
        self, body: list[protocol.Buffer], rows: dict[TopicPartition, int], buffers: list[BatchBuffer], now: int
    ) -> None:
        """Queue a Produce request."""
        self._requests += 1
        pieces = protocol.frame(protocol.PRODUCE, self._requests, body)
        self._out.extend(pieces)
        self._queued += sum(map(len, pieces))
        self.in_flight.append(_Request(self._requests, rows, buffers, self._queued, now))

    def write(self) -> None:
        """Write as much as the system takes."""
        try:
            while self._out:
                sent = self.socket.sendmsg([self._out[i] for i in range(min(len(self._out), _MAX_BUFFERS))])
                self._written += sent
                while sent and sent >= len(self._out[0]):
                    sent -= len(self._out.popleft())
                if sent:
                    self._out[0] = memoryview(self._out[0])[sent:]
        except BlockingIOError:
            return
        except OSError as error:
            raise self._lost(str(error)) from error

    def read(self) -> list[tuple[_Request, Response]]:
        """The responses that have arrived, with their requests."""
        try:
            while received := self.socket.recv(_CHUNK):
                self._in += received
                if len(received) < _CHUNK:
                    return self._responses()
        except BlockingIOError:
            return self._responses()
        except OSError as error:
            raise self._lost(str(error)) from error
        raise self._lost("the broker closed it")

    def _responses(self) -> list[tuple[_Request, Response]]:
        found = []
        while len(self._in) >= 4 and len(self._in) >= 4 + (size := struct.unpack_from(">i", self._in)[0]):
            response = Response(memoryview(bytes(self._in[4 : 4 + size])))
            del self._in[: 4 + size]
            number = response.take("i")
            if not self.in_flight or number != self.in_flight[0].number:
                raise TransportError(f"{self.address} answered request {number}, which is not the next one")
            found.append((self.in_flight.popleft(), response))
        return found

    def take_written(self) -> list[_Request]:
        """Requests without a response (acks 0) that the system has taken completely."""
        found = []
        while self.in_flight and self.in_flight[0].end <= self._written:
            found.append(self.in_flight.popleft())
        return found

    def _lost(self, why: str) -> BrokerUnreachable:
        left = sum(sum(sent.rows.values()) for sent in self.in_flight)
        return BrokerUnreachable(f"the connection to {self.address} broke: {why}; {left} records were not acknowledged")


class VectorisedProducer:
    """Sends whole batches. Satisfies ``producer.Producer``."""

    def __init__(self, cluster: Cluster, topics: Sequence[str], now_ns: Now, settings: ProducerSettings) -> None:
        self._topics, self._now, self._settings = ", ".join(topics), now_ns, settings
        self._brokers = BrokerConnections(cluster.bootstrap, settings.timeout / SECOND)
        leaders = {
            TopicPartition(topic, partition): node
            for topic in topics
            for partition, node in self._brokers.leaders(topic).items()
        }
        self._connections = {
            node: _BrokerConnection(self._brokers.broker(node)) for node in sorted({*leaders.values()})
        }
        self._by_file = {connection.socket.fileno(): connection for connection in self._connections.values()}
        self._connection_of = {place: self._connections[node] for place, node in leaders.items()}
        self._pending = {place: PendingRecords() for place in leaders}
        self._acknowledged = dict.fromkeys(leaders, 0)
        self._buffers = list[BatchBuffer]()
        self._reports = list[DeliveryReport]()
        self._throttled = 0
        """Milliseconds by which quotas of the cluster have delayed this client."""
        self.unacknowledged = 0

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """All partitions of the topics."""
        return tuple(self._pending)

    def publish(self, records: PartitionRecords) -> None:
        """Take the events of a send interval, and send those that can be sent without waiting."""
        now = self._now()
        for place, part in records.items():
            if place not in self._pending:
                raise no_such_partition(place, self._pending)
            if len(part.values):
                self._pending[place].add(part, now)
                self.unacknowledged += len(part.values)
        self.poll()
        waiting = sum(pending.size for pending in self._pending.values())
        if waiting > self._settings.backlog:
            raise ProducerFull(
                f"{waiting >> 20} MiB of events wait for the broker of {self._topics} (limit "
                f"{self._settings.backlog >> 20} MiB): it does not keep up with this load"
                f"{throttle_note(self._throttled)}"
            )

    def poll(self, seconds: float = 0.0) -> None:
        """Write and read what can be written and read; if there is nothing, wait for it, at most so long."""
        self._exchange(seconds, linger=True)

    def _exchange(self, seconds: float, linger: bool) -> None:
        """Read responses, make the requests that may be sent, and write. ``linger``: events may wait for more."""
        readable = self._wait(seconds, linger)
        now = self._now()
        for connection in readable:
            for sent, response in connection.read():
                for result in protocol.parse_produce(response, connection.address):
                    self._confirm(sent, result, now)
                self._throttled += protocol.throttled(response)
                self._buffers += sent.buffers
        for connection in self._connections.values():
            while len(connection.in_flight) < self._settings.in_flight and (
                ready := self._ready(connection, now, linger)
            ):
                self._send_batches(connection, self._fit_request(ready), now)
            connection.write()
            self._check_timeouts(connection, now)

    def _check_timeouts(self, connection: _BrokerConnection, now: int) -> None:
        """Confirm written requests that have no response (acks 0), and raise if a response is overdue."""
        if self._settings.acks == "0":
            for sent in connection.take_written():
                for place in sent.rows:
                    self._confirm(sent, protocol.ProduceResult(*place, -1, -1), now)
                self._buffers += sent.buffers
        if connection.in_flight and now - connection.in_flight[0].sent_ns > self._settings.timeout:
            waited = duration_text(self._settings.timeout)
            raise BrokerUnreachable(
                f"{connection.address} has not acknowledged {self._topics} for {waited}{throttle_note(self._throttled)}"
            )

    def _confirm(self, sent: _Request, result: protocol.ProduceResult, now: int) -> None:
        place = TopicPartition(result.topic, result.partition)
        rows = sent.rows[place]
        self._acknowledged[place] += rows
        self.unacknowledged -= rows
        self._reports.append(DeliveryReport(*place, result.offset, rows, result.appended_ms, sent.sent_ns, now))

    def _ready(self, connection: _BrokerConnection, now: int, linger: bool) -> list[TopicPartition]:
        """Partitions of a broker whose events may be sent."""
        return [
            place
            for place, pending in self._pending.items()
            if pending.rows
            and self._connection_of[place] is connection
            and self._remaining_linger(pending, now, linger) <= 0
        ]

    def _fit_request(self, ready: list[TopicPartition]) -> list[TopicPartition]:
        """As many of those partitions as fit into one request: the ones whose events have waited longest."""
        room = max(1, _MAX_REQUEST // self._settings.batch)
        return ready if len(ready) <= room else sorted(ready, key=lambda place: self._pending[place].since_ns)[:room]

    def _remaining_linger(self, pending: PendingRecords, now: int, linger: bool) -> int:
        """Nanoseconds that these events still wait for more events."""
        if not linger or pending.size >= self._settings.batch:
            return 0
        return pending.since_ns + self._settings.linger - now

    def _send_batches(self, connection: _BrokerConnection, ready: list[TopicPartition], now: int) -> None:
        """One request with one batch of each partition."""
        batches, rows, buffers = list[Batch](), dict[TopicPartition, int](), list[BatchBuffer]()
        for place in ready:
            pending = self._pending[place]
            key, value = widths(pending.parts[0])
            part = pending.take(rows_within(self._settings.batch, key, value))
            pending.since_ns = now
            buffer = self._buffers.pop() if self._buffers else BatchBuffer(self._settings.batch)
            batches.append(Batch(*place, encode(part.keys, part.values, part.due_us // MILLI, buffer)))
            rows[place] = len(part.values)
            buffers.append(buffer)
        body = protocol.produce(batches, _ACKS[self._settings.acks], self._settings.timeout / SECOND)
        connection.request(body, rows, buffers, now)

    def _wait(self, seconds: float, linger: bool) -> list[_BrokerConnection]:
        """Wait until a response arrives, the system takes more bytes, or events have lingered long enough.

        The connections with responses.
        """
        if seconds > 0:
            seconds = min(seconds, self._next_linger_end(linger))
        writing = [number for number, connection in self._by_file.items() if connection.unsent]
        readable, _, _ = select.select(self._by_file, writing, [], seconds)
        return [self._by_file[number] for number in readable]

    def _next_linger_end(self, linger: bool) -> float:
        """Seconds until events may be sent even if no response arrives.

        Events whose broker already has the allowed number of unanswered requests do not count, however long they have
        waited: polling the clock for them would only burn CPU time.
        """
        now, limit = self._now(), self._settings.in_flight
        free = (
            pending
            for place, pending in self._pending.items()
            if pending.rows and len(self._connection_of[place].in_flight) < limit
        )
        return max(0, min((self._remaining_linger(each, now, linger) for each in free), default=_NEVER)) / SECOND

    def acknowledged(self) -> dict[TopicPartition, int]:
        """Events of each partition that its broker has acknowledged."""
        return dict(self._acknowledged)

    def take_delivery_reports(self) -> list[DeliveryReport]:
        """The batches that were acknowledged since the last call."""
        taken, self._reports = self._reports, []
        return taken

    def flush(self, seconds: float) -> None:
        """Send all that waits, and return when it is acknowledged; raise if that takes longer."""
        ends = self._now() + int(seconds * SECOND)
        self._exchange(0.0, linger=False)
        while self.unacknowledged:
            left = (ends - self._now()) / SECOND
            if left <= 0:
                raise BrokerUnreachable(
                    f"{self.unacknowledged} records of {self._topics} were not acknowledged within {seconds:g} s"
                    f"{throttle_note(self._throttled)}"
                )
            self._exchange(min(left, _POLL_INTERVAL), linger=False)

    def close(self) -> None:
        """Close the connections. Events that were not flushed are lost."""
        self._brokers.close()
