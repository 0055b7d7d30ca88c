"""The producer that builds record batches with numpy and sends them over plain connections.

It costs a tenth of the CPU time of a producer that handles single records: on a small machine the generator must not
take the time of the system under test. Requests are pipelined; while as many are on their way as may be, events
gather, and the next batch is larger.
"""

import select
import struct
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from streamgauge.model.units import SECOND, format_duration
from streamgauge.transports.kafka.client import protocol
from streamgauge.transports.kafka.client.batches import Room, encode, rows_within
from streamgauge.transports.kafka.client.connections import Connection, Wire
from streamgauge.transports.kafka.client.producer import MILLI, Now, Part, Receipt, Sending, Tick, TooFarBehind, slowed
from streamgauge.transports.kafka.client.protocol import Answer, Batch, KafkaFailure, Unreachable
from streamgauge.transports.kafka.cluster import Cluster


@dataclass(slots=True)
class Gathering:
    """Events of one partition that were published and not sent."""

    parts: deque[Part] = field(default_factory=deque)
    rows: int = 0
    size: int = 0
    since_ns: int = 0
    """When the oldest of them came."""

    def add(self, part: Part, now: int) -> None:
        """Some more, that came now."""
        if not self.rows:
            self.since_ns = now
        self.parts.append(part)
        self.rows += len(part.values)
        self.size += part.values.size

    def take(self, rows: int) -> Part:
        """The oldest events, as many as these at most, all of one width."""
        taken, left = list[Part](), rows
        while left and self.parts and shape(self.parts[0]) == shape((taken or self.parts)[0]):
            part = self.parts.popleft()
            if len(part.values) > left:
                self.parts.appendleft(_cut(part, left, None))
                part = _cut(part, 0, left)
            taken.append(part)
            left -= len(part.values)
        whole = taken[0] if len(taken) == 1 else _joined(taken)
        self.rows -= len(whole.values)
        self.size -= whole.values.size
        return whole


def shape(part: Part) -> tuple[int | None, int]:
    """The widths of keys and values: one batch has one of each."""
    return (None if part.keys is None else part.keys.shape[1]), part.values.shape[1]


def _cut(part: Part, start: int, stop: int | None) -> Part:
    keys = None if part.keys is None else part.keys[start:stop]
    return Part(keys, part.values[start:stop], part.due_us[start:stop])


def _joined(parts: list[Part]) -> Part:
    keys = [part.keys for part in parts if part.keys is not None]
    values, due = np.concatenate([part.values for part in parts]), np.concatenate([part.due_us for part in parts])
    return Part(np.concatenate(keys) if keys else None, values, due)


_ACKS = {"0": 0, "1": 1, "all": -1}
_PIECES = 64  # buffers handed to the system at once: it takes 1024 at most
_CHUNK = 1 << 16
_REQUEST = 32 << 20
"""Bytes of a request at most: brokers accept 100 MB unless they are configured otherwise (socket.request.max.bytes)."""
_LOOK_EVERY = 0.1
_NEVER = 3600 * SECOND


class _Sent(NamedTuple):
    """A request on its way: what it holds, and the byte of the connection after which it is out of our hands."""

    number: int
    rows: dict[int, int]
    rooms: list[Room]
    end: int
    sent_ns: int


class _Line:
    """The connection to one broker: bytes that go out, answers that come in, requests between them."""

    def __init__(self, connection: Connection) -> None:
        self.address, self.socket = connection.address, connection.socket
        self.socket.setblocking(False)
        self.flying: deque[_Sent] = deque()
        self._out: deque[memoryview | bytes] = deque()
        self._in = bytearray()
        self._asked = self._promised = self._written = 0

    @property
    def unsent(self) -> bool:
        """Whether bytes wait for the system to take them."""
        return bool(self._out)

    def request(self, body: list[protocol.Buffer], rows: dict[int, int], rooms: list[Room], now: int) -> None:
        """Queue a Produce request."""
        self._asked += 1
        pieces = protocol.framed(protocol.PRODUCE, self._asked, body)
        self._out.extend(pieces)
        self._promised += sum(map(len, pieces))
        self.flying.append(_Sent(self._asked, rows, rooms, self._promised, now))

    def write(self) -> None:
        """Hand over what the system takes."""
        try:
            while self._out:
                sent = self.socket.sendmsg([self._out[i] for i in range(min(len(self._out), _PIECES))])
                self._written += sent
                while sent and sent >= len(self._out[0]):
                    sent -= len(self._out.popleft())
                if sent:
                    self._out[0] = memoryview(self._out[0])[sent:]
        except BlockingIOError:
            return
        except OSError as error:
            raise self._broken(str(error)) from error

    def read(self) -> list[tuple[_Sent, Answer]]:
        """The answers that have come, with their requests."""
        try:
            while got := self.socket.recv(_CHUNK):
                self._in += got
                if len(got) < _CHUNK:
                    return self._answers()
        except BlockingIOError:
            return self._answers()
        except OSError as error:
            raise self._broken(str(error)) from error
        raise self._broken("it was closed at the other end")

    def _answers(self) -> list[tuple[_Sent, Answer]]:
        found = []
        while len(self._in) >= 4 and len(self._in) >= 4 + (size := struct.unpack_from(">i", self._in)[0]):
            answer = Answer(memoryview(bytes(self._in[4 : 4 + size])))
            del self._in[: 4 + size]
            number = answer.take("i")
            if not self.flying or number != self.flying[0].number:
                raise KafkaFailure(f"{self.address} answered request {number}, which is not the next one")
            found.append((self.flying.popleft(), answer))
        return found

    def handed_over(self) -> list[_Sent]:
        """Requests that nobody answers and that the system has taken whole."""
        found = []
        while self.flying and self.flying[0].end <= self._written:
            found.append(self.flying.popleft())
        return found

    def _broken(self, why: str) -> Unreachable:
        left = sum(sum(sent.rows.values()) for sent in self.flying)
        return Unreachable(f"the connection to {self.address} broke: {why}; {left} records were not acknowledged")


class VectorisedProducer:
    """Sends whole batches. Satisfies ``producer.Producer``."""

    def __init__(self, cluster: Cluster, topic: str, now_ns: Now, sending: Sending) -> None:
        self._topic, self._now, self._how = topic, now_ns, sending
        self._wire = Wire(cluster.bootstrap, sending.patience / SECOND)
        leaders = self._wire.leaders(topic)
        self._lines = {node: _Line(self._wire.broker(node)) for node in sorted({*leaders.values()})}
        self._by_file = {line.socket.fileno(): line for line in self._lines.values()}
        self._line_of = {partition: self._lines[node] for partition, node in leaders.items()}
        self._shelves = {partition: Gathering() for partition in leaders}
        self._done = dict.fromkeys(leaders, 0)
        self._rooms = list[Room]()
        self._receipts = list[Receipt]()
        self._throttled = 0
        """Milliseconds by which quotas of the cluster have delayed this client."""
        self.waiting = 0

    @property
    def partitions(self) -> tuple[int, ...]:
        """Those that the topic has."""
        return tuple(self._shelves)

    def publish(self, tick: Tick) -> None:
        """Take a tick, and send of it what can be sent without waiting."""
        now = self._now()
        for partition, part in tick.items():
            if partition not in self._shelves:
                raise KafkaFailure(f"{self._topic} has no partition {partition}: it has {len(self._shelves)}")
            if len(part.values):
                self._shelves[partition].add(part, now)
                self.waiting += len(part.values)
        self.attend()
        held = sum(shelf.size for shelf in self._shelves.values())
        if held > self._how.backlog:
            raise TooFarBehind(
                f"{held >> 20} MiB of events wait for the broker of {self._topic}, and {self._how.backlog >> 20} may: "
                f"it does not keep up with this load{slowed(self._throttled)}"
            )

    def attend(self, seconds: float = 0.0) -> None:
        """Move what can be moved; if there is nothing, wait for it, at most so long."""
        self._move(seconds, gather=True)

    def _move(self, seconds: float, gather: bool) -> None:
        """Take in answers, make requests of what may go, and write. ``gather``: events may wait for more of them."""
        answering = self._await(seconds, gather)
        now = self._now()
        for line in answering:
            for sent, answer in line.read():
                for partition, offset, appended in protocol.stored(answer, line.address):
                    self._confirm(sent, partition, offset, appended, now)
                self._throttled += protocol.throttled(answer)
                self._rooms += sent.rooms
        for line in self._lines.values():
            while len(line.flying) < self._how.in_flight and (ready := self._ready(line, now, gather)):
                self._request(line, self._within(ready), now)
            line.write()
            self._look_after(line, now)

    def _look_after(self, line: _Line, now: int) -> None:
        """Confirm what nobody answers, and miss what should have been answered long ago."""
        if self._how.acks == "0":
            for sent in line.handed_over():
                for partition in sent.rows:
                    self._confirm(sent, partition, -1, -1, now)
                self._rooms += sent.rooms
        if line.flying and now - line.flying[0].sent_ns > self._how.patience:
            waited = format_duration(self._how.patience)
            raise Unreachable(
                f"{line.address} has not acknowledged {self._topic} for {waited}{slowed(self._throttled)}"
            )

    def _confirm(self, sent: _Sent, partition: int, offset: int, appended: int, now: int) -> None:
        rows = sent.rows[partition]
        self._done[partition] += rows
        self.waiting -= rows
        self._receipts.append(Receipt(partition, offset, rows, appended, sent.sent_ns, now))

    def _ready(self, line: _Line, now: int, gather: bool) -> list[int]:
        """Partitions of a broker whose events may go."""
        return [
            partition
            for partition, shelf in self._shelves.items()
            if shelf.rows and self._line_of[partition] is line and self._left(shelf, now, gather) <= 0
        ]

    def _within(self, ready: list[int]) -> list[int]:
        """Those partitions that one request has room for: the ones that wait longest."""
        most = max(1, _REQUEST // self._how.batch)
        return ready if len(ready) <= most else sorted(ready, key=lambda n: self._shelves[n].since_ns)[:most]

    def _left(self, shelf: Gathering, now: int, gather: bool) -> int:
        """Nanoseconds that the events of a shelf still wait for more of them."""
        if not gather or shelf.size >= self._how.batch:
            return 0
        return shelf.since_ns + self._how.linger - now

    def _request(self, line: _Line, ready: list[int], now: int) -> None:
        """One batch of each partition."""
        batches, rows, rooms = list[Batch](), dict[int, int](), list[Room]()
        for partition in ready:
            shelf = self._shelves[partition]
            key, value = shape(shelf.parts[0])
            part = shelf.take(rows_within(self._how.batch, key, value))
            shelf.since_ns = now
            room = self._rooms.pop() if self._rooms else Room(self._how.batch)
            batches.append(Batch(partition, encode(part.keys, part.values, part.due_us // MILLI, room)))
            rows[partition] = len(part.values)
            rooms.append(room)
        seconds = self._how.patience / SECOND
        line.request(protocol.produce(self._topic, batches, _ACKS[self._how.acks], seconds), rows, rooms, now)

    def _await(self, seconds: float, gather: bool) -> list[_Line]:
        """Until an answer comes, the system takes more bytes, or events have waited long enough for more of them.

        The connections with answers.
        """
        if seconds > 0:
            seconds = min(seconds, self._soonest(gather))
        writing = [number for number, line in self._by_file.items() if line.unsent]
        answering, _, _ = select.select(self._by_file, writing, [], seconds)
        return [self._by_file[number] for number in answering]

    def _soonest(self, gather: bool) -> float:
        """Seconds until events may go without an answer having come.

        Those whose broker has as many requests as it may have wait for an answer, however long they have been there:
        looking at the clock again and again for their sake would only burn time.
        """
        now, most = self._now(), self._how.in_flight
        free = (shelf for n, shelf in self._shelves.items() if shelf.rows and len(self._line_of[n].flying) < most)
        return max(0, min((self._left(shelf, now, gather) for shelf in free), default=_NEVER)) / SECOND

    def acknowledged(self) -> dict[int, int]:
        """Events of each partition that the broker has confirmed."""
        return dict(self._done)

    def take_receipts(self) -> list[Receipt]:
        """What was confirmed since the last time, batch by batch."""
        taken, self._receipts = self._receipts, []
        return taken

    def flush(self, seconds: float) -> None:
        """Send all that waits, and return when it is acknowledged; raise if that takes longer."""
        ends = self._now() + int(seconds * SECOND)
        self._move(0.0, gather=False)
        while self.waiting:
            left = (ends - self._now()) / SECOND
            if left <= 0:
                raise Unreachable(
                    f"{self.waiting} records of {self._topic} were not acknowledged within {seconds:g} s"
                    f"{slowed(self._throttled)}"
                )
            self._move(min(left, _LOOK_EVERY), gather=False)

    def close(self) -> None:
        """Hang up. What was not flushed is lost."""
        self._wire.close()
