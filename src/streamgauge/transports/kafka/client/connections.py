"""Kafka over plain connections: no TLS, no SASL, no retries, and nothing that a generator or a reader does not need."""

import socket
import struct
from collections.abc import Mapping, Sequence

from streamgauge.transports.kafka.client import protocol
from streamgauge.transports.kafka.client.protocol import (
    Answer,
    Api,
    Buffer,
    Fetched,
    KafkaFailure,
    Refused,
    Unreachable,
)

SECONDS = 20.0
"""How long a broker may take for one answer."""
_LARGEST = 1 << 30


class Connection:
    """One broker, asked and answering in turn."""

    def __init__(self, host: str, port: int, seconds: float = SECONDS) -> None:
        self.address, self._seconds, self._asked = f"{host}:{port}", seconds, 0
        try:
            self.socket = socket.create_connection((host, port), seconds)
        except OSError as error:
            raise Unreachable(f"the broker at {self.address} cannot be reached: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._check_versions()

    def _check_versions(self) -> None:
        answer = self.ask(protocol.API_VERSIONS, [])
        if code := answer.take("h"):
            raise Refused(f"{self.address} does not say what it speaks", code)
        spoken = {key: (low, high) for key, low, high in answer.many(lambda: tuple(answer.take("h") for _ in "klh"))}
        for api in protocol.SPOKEN:
            low, high = spoken.get(api.key, (0, -1))
            if not low <= api.version <= high:
                raise KafkaFailure(
                    f"the broker at {self.address} speaks {api.name} {low} to {high}, and we speak {api.version}: "
                    "use the producer confluent"
                )

    def ask(self, api: Api, body: Sequence[Buffer]) -> Answer:
        """Send a request and wait for its answer."""
        self._asked += 1
        try:
            self.socket.settimeout(self._seconds)
            self.socket.sendall(b"".join(protocol.framed(api, self._asked, body)))
            (size,) = struct.unpack(">i", self._receive(4))
            if not 4 <= size <= _LARGEST:
                raise Unreachable(f"what is at {self.address} is no Kafka broker: its answer has {size} bytes")
            answer = Answer(self._receive(size))
        except TimeoutError as error:
            raise Unreachable(f"{self.address} did not answer {api.name} within {self._seconds:g} s") from error
        except OSError as error:
            raise Unreachable(f"the connection to {self.address} broke in {api.name}: {error}") from error
        if answer.take("i") != self._asked:
            raise KafkaFailure(f"{self.address} answered another request than {api.name}")
        return answer

    def _receive(self, size: int) -> memoryview:
        room, have = memoryview(bytearray(size)), 0
        while have < size:
            got = self.socket.recv_into(room[have:])
            if not got:
                raise Unreachable(f"{self.address} has closed the connection")
            have += got
        return room.toreadonly()

    def close(self) -> None:
        """Hang up."""
        self.socket.close()


class Wire:
    """A cluster over plain connections: one to each broker that leads something we ask for."""

    def __init__(self, bootstrap: str, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._first = _connect(bootstrap, seconds)
        self._brokers: dict[int, tuple[str, int]] = {}
        self._open: dict[int, Connection] = {}

    def leaders(self, topic: str) -> dict[int, int]:
        """The broker that leads each partition."""
        answer = self._first.ask(protocol.METADATA, protocol.describe(topic))
        self._brokers, leaders = protocol.described(answer, self._first.address)
        return leaders

    def broker(self, node: int) -> Connection:
        """The connection to a broker that ``leaders`` has named."""
        if node not in self._open:
            self._open[node] = Connection(*self._brokers[node], self._seconds)
        return self._open[node]

    def offsets(self, topic: str, leaders: Mapping[int, int], which: int = protocol.LATEST) -> dict[int, int]:
        """The end of each partition (or its beginning: EARLIEST), one question to each broker."""
        found = {}
        for node in sorted({*leaders.values()}):
            mine = [number for number, leader in leaders.items() if leader == node]
            broker = self.broker(node)
            answer = broker.ask(protocol.LIST_OFFSETS, protocol.list_offsets(topic, mine, which))
            found.update(protocol.offsets(answer, broker.address))
        return dict(sorted(found.items()))

    def fetch(self, node: int, topic: str, wanted: Mapping[int, int], size: int, seconds: float = 0.0) -> list[Fetched]:
        """What a broker has of these partitions from these offsets on, at most so many bytes; it waits so long."""
        broker = self.broker(node)
        answer = broker.ask(protocol.FETCH, protocol.fetch(topic, wanted, size, seconds))
        return protocol.fetched(answer, broker.address)

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in (self._first, *self._open.values()):
            connection.close()


def _connect(bootstrap: str, seconds: float) -> Connection:
    """The first of the addresses that answers."""
    failures = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            raise KafkaFailure(f"{address.strip()!r} is no address of a broker: it is written host:port")
        try:
            return Connection(host.strip("[]"), int(port), seconds)
        except Unreachable as error:
            failures.append(error)
    raise failures[-1]
