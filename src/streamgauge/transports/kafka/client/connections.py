"""Plaintext connections to Kafka brokers: no TLS, no SASL, no retries, only what producer and plain reader need."""

import socket
import struct
from collections.abc import Mapping, Sequence

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client import protocol
from streamgauge.transports.kafka.client.protocol import (
    Api,
    BrokerError,
    BrokerUnreachable,
    Buffer,
    FetchResult,
    Response,
)

SECONDS = 20.0
"""Until the response of a broker must arrive."""
_MAX_RESPONSE = 1 << 30


class Connection:
    """The connection to one broker; each request waits for its response."""

    def __init__(self, host: str, port: int, seconds: float = SECONDS) -> None:
        self.address, self._seconds, self._requests = f"{host}:{port}", seconds, 0
        try:
            self.socket = socket.create_connection((host, port), seconds)
        except OSError as error:
            raise BrokerUnreachable(f"the broker at {self.address} cannot be reached: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._check_versions()

    def _check_versions(self) -> None:
        response = self.request(protocol.API_VERSIONS, [])
        if code := response.take("h"):
            raise BrokerError(f"{self.address} did not list the requests that it supports", code)
        versions = {
            key: (low, high) for key, low, high in response.many(lambda: tuple(response.take("h") for _ in "klh"))
        }
        for api in protocol.REQUIRED_APIS:
            low, high = versions.get(api.key, (0, -1))
            if not low <= api.version <= high:
                raise TransportError(
                    f"the broker at {self.address} supports versions {low} to {high} of {api.name}, but streamgauge "
                    f"needs version {api.version}: use the producer confluent"
                )

    def request(self, api: Api, body: Sequence[Buffer]) -> Response:
        """Send a request and wait for its response."""
        self._requests += 1
        try:
            self.socket.settimeout(self._seconds)
            self.socket.sendall(b"".join(protocol.frame(api, self._requests, body)))
            (size,) = struct.unpack(">i", self._receive(4))
            if not 4 <= size <= _MAX_RESPONSE:
                raise BrokerUnreachable(
                    f"the server at {self.address} is no Kafka broker: its response has {size} bytes"
                )
            response = Response(self._receive(size))
        except TimeoutError as error:
            raise BrokerUnreachable(
                f"{self.address} did not respond to {api.name} within {self._seconds:g} s"
            ) from error
        except OSError as error:
            raise BrokerUnreachable(f"the connection to {self.address} broke in {api.name}: {error}") from error
        if response.take("i") != self._requests:
            raise TransportError(f"{self.address} responded to another request than {api.name}")
        return response

    def _receive(self, size: int) -> memoryview:
        room, have = memoryview(bytearray(size)), 0
        while have < size:
            received = self.socket.recv_into(room[have:])
            if not received:
                raise BrokerUnreachable(f"{self.address} has closed the connection")
            have += received
        return room.toreadonly()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


class BrokerConnections:
    """Connections to the brokers of a cluster that lead the partitions in use."""

    def __init__(self, bootstrap: str, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._first = _connect(bootstrap, seconds)
        self._brokers: dict[int, tuple[str, int]] = {}
        self._open: dict[int, Connection] = {}

    def leaders(self, topic: str) -> dict[int, int]:
        """The broker that leads each partition."""
        response = self._first.request(protocol.METADATA, protocol.describe(topic))
        self._brokers, leaders = protocol.parse_metadata(response, self._first.address)
        return leaders

    def broker(self, node: int) -> Connection:
        """The connection to a broker that ``leaders`` has named."""
        if node not in self._open:
            self._open[node] = Connection(*self._brokers[node], self._seconds)
        return self._open[node]

    def fetch(
        self, node: int, topic: str, wanted: Mapping[int, int], size: int, seconds: float = 0.0
    ) -> list[FetchResult]:
        """The records of these partitions from these offsets on, at most so many bytes; the broker waits so long."""
        broker = self.broker(node)
        response = broker.request(protocol.FETCH, protocol.fetch(topic, wanted, size, seconds))
        return protocol.parse_fetch(response, broker.address)

    def close(self) -> None:
        """Close all connections."""
        for connection in (self._first, *self._open.values()):
            connection.close()


def _connect(bootstrap: str, seconds: float) -> Connection:
    """The connection to the first address that accepts one."""
    failures = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdigit():
            raise TransportError(f"{address.strip()!r} is not the address of a broker; write host:port")
        try:
            return Connection(host.strip("[]"), int(port), seconds)
        except BrokerUnreachable as error:
            failures.append(error)
    raise failures[-1]
