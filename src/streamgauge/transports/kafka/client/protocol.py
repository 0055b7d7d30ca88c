"""Kafka's protocol: the requests of the vectorised producer and of the plain reader, and their responses. Pure.

An error code in a response is raised immediately, with its meaning: it makes the trial INVALID, and a retry would only
hide it.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.varints import Bytes

_Item = TypeVar("_Item")
Buffer = bytes | memoryview


class Api(NamedTuple):
    """A kind of request, and the version of it that is used here."""

    key: int
    version: int
    name: str


PRODUCE, FETCH, METADATA = Api(0, 8, "Produce"), Api(1, 4, "Fetch"), Api(3, 4, "Metadata")
API_VERSIONS = Api(18, 0, "ApiVersions")
REQUIRED_APIS = (PRODUCE, FETCH, METADATA)

_CLIENT = b"streamgauge"
_HEAD = struct.Struct(">ihhih")
_NUMBERS = {form: struct.Struct(f">{form}") for form in "bhiq"}
_RESULT = struct.Struct(">ihqqq")

ERROR_MEANINGS = {
    -1: "the broker reported an unknown error; see its log",
    1: "there is no such offset",
    2: "the checksum of the records is wrong",
    3: "there is no such topic or partition",
    5: "the partition has no leader at the moment",
    6: "this broker does not lead the partition",
    7: "the other brokers did not confirm in time",
    8: "the broker is not available",
    10: "the batch is larger than the topic allows (max.message.bytes)",
    17: "the topic's name is not allowed",
    18: "the batch is larger than a segment of the log",
    19: "too few copies of the partition are in step (min.insync.replicas)",
    20: "the records were written, but too few copies of the partition are in step",
    21: "acks can be 0, 1 or all",
    29: "the user may not use this topic",
    30: "the user may not use this consumer group",
    31: "the user may not use this cluster",
    32: "the timestamps are too far from the broker's clock",
    35: "the broker does not support this version of the request",
    42: "the request is invalid for the broker",
    44: "a policy of the cluster forbids it",
    56: "the broker cannot write to its disk",
    74: "the partition has another leader by now",
    75: "the broker has no information on the leader yet",
    76: "the topic does not allow this compression",
    78: "the broker cannot return the offset yet",
    87: "the broker rejects the records: their number or format is wrong",
    89: "a quota of the cluster delays this client",
}
"""The meanings of a broker's error codes."""


class BrokerUnreachable(TransportError):
    """A broker cannot be reached, has closed the connection or does not respond."""


class BrokerError(TransportError):
    """A broker rejected a request. ``code`` is its number for the reason."""

    def __init__(self, what: str, code: int, topic: str = "", partition: int | None = None, detail: str = "") -> None:
        where = f" for {topic}" + (f", partition {partition}" if partition is not None else "") if topic else ""
        meaning = ERROR_MEANINGS.get(code, "see Kafka's list of error codes")
        super().__init__(f"{what}{where}: error {code}, {meaning}" + (f" ({detail})" if detail else ""))
        self.code, self.topic, self.partition = code, topic, partition


class Response:
    """The bytes of a response, read from the front."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> int:
        """A number: ``h``, ``i``, ``q`` or ``b``, as in struct."""
        found: int = self.fields(_NUMBERS[form])[0]
        return found

    def fields(self, form: struct.Struct) -> tuple[Any, ...]:
        """Several numbers."""
        try:
            found = form.unpack_from(self._data, self._at)
        except struct.error as error:
            raise TransportError(f"a response of the broker is too short: {error}") from error
        self._at += form.size
        return found

    def raw(self, length: int) -> memoryview:
        """So many bytes; none if the length is −1."""
        begin, self._at = self._at, self._at + max(length, 0)
        if self._at > len(self._data):
            raise TransportError(f"a response of the broker is too short by {self._at - len(self._data)} bytes")
        return self._data[begin : self._at]

    def text(self) -> str:
        """A string; empty if it is null."""
        return str(self.raw(self.take("h")), "utf-8")

    def many(self, item: Callable[[], _Item]) -> list[_Item]:
        """An array; empty if it is null."""
        return [item() for _ in range(self.take("i"))]


def text(value: str) -> bytes:
    """A string, as requests contain it."""
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def array(items: Iterable[bytes]) -> bytes:
    """An array, as requests contain it."""
    listed = list(items)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def frame(api: Api, correlation: int, body: Sequence[Buffer]) -> list[Buffer]:
    """A request as it is sent over the connection: its length, its header and its body, without copying."""
    size = _HEAD.size - 4 + len(_CLIENT) + sum(map(len, body))
    head = _HEAD.pack(size, api.key, api.version, correlation, len(_CLIENT)) + _CLIENT
    return [head, *body]


class Batch(NamedTuple):
    """A record batch for one partition."""

    topic: str
    partition: int
    data: Bytes


def produce(batches: Sequence[Batch], acks: int, seconds: float) -> list[Buffer]:
    """The body of a Produce request with one batch for each of some partitions. ``acks`` −1 is all."""
    topics: dict[str, list[Batch]] = {}
    for batch in batches:
        topics.setdefault(batch.topic, []).append(batch)
    head = struct.pack(">hhii", -1, acks, int(seconds * 1000), len(topics))
    body: list[Buffer] = []
    for topic, parts in topics.items():
        body.append(head + text(topic) + struct.pack(">i", len(parts)))
        head = b""
        for batch in parts:
            body += [struct.pack(">ii", batch.partition, len(batch.data)), batch.data.data]
    return body


class ProduceResult(NamedTuple):
    """The response of a broker to one batch that it has appended."""

    topic: str
    partition: int
    offset: int
    """Of its first record."""
    appended_ms: int
    """When it was appended, by the broker's clock; −1 if the broker does not stamp records."""


def parse_produce(response: Response, address: str) -> list[ProduceResult]:
    """The response to a Produce request; raises if the broker rejected any batch."""

    def partition_of(topic: str) -> ProduceResult:
        partition, code, offset, appended, _ = response.fields(_RESULT)
        found = ProduceResult(topic, partition, offset, appended)
        errors = response.many(lambda: (response.take("i"), response.text()))
        detail = "; ".join(filter(None, [response.text(), *(f"record {n}: {why}" for n, why in errors[:3])]))
        if code:
            raise BrokerError(f"{address} did not take records", code, topic, partition, detail)
        return found

    def topic_of() -> list[ProduceResult]:
        topic = response.text()
        return response.many(lambda: partition_of(topic))

    return [one for topic in response.many(topic_of) for one in topic]


def throttled(response: Response) -> int:
    """The end of the response to a Produce request: for how many milliseconds a quota delays this client."""
    return response.take("i")


class TopicMetadata(NamedTuple):
    """A topic: the brokers of the cluster by their numbers, and which one leads each partition."""

    brokers: dict[int, tuple[str, int]]
    leaders: dict[int, int]


def describe(topic: str) -> list[Buffer]:
    """The body of a Metadata request. It never creates a topic, whatever the cluster allows."""
    return [array([text(topic)]), b"\0"]


def parse_metadata(response: Response, address: str) -> TopicMetadata:
    """The response to a Metadata request."""

    def broker() -> tuple[int, tuple[str, int]]:
        number, host, port, _ = response.take("i"), response.text(), response.take("i"), response.text()
        return number, (host, port)

    def partition(topic: str) -> tuple[int, int]:
        code, number, leader = response.take("h"), response.take("i"), response.take("i")
        for _ in ("copies", "copies in step"):
            response.many(lambda: response.take("i"))
        if code:
            raise BrokerError(f"{address} did not return the leader", code, topic, number)
        return number, leader

    def topic() -> list[tuple[int, int]]:
        code, name = response.take("h"), response.text()
        response.take("b")
        if code:
            raise BrokerError(f"{address} does not describe the topic", code, name)
        return response.many(lambda: partition(name))

    response.take("i")
    brokers = dict(response.many(broker))
    response.text()
    response.take("i")
    return TopicMetadata(brokers, dict(sorted(one for topic_ in response.many(topic) for one in topic_)))


class FetchResult(NamedTuple):
    """The response of a broker for one partition: whole batches, of which the last one may be cut off."""

    partition: int
    data: memoryview


def fetch(topic: str, wanted: Mapping[int, int], size: int, seconds: float = 0.0) -> list[Buffer]:
    """The body of a Fetch request: the records from these offsets on, at most so many bytes.

    The broker waits so long if there are none. It sends a single batch completely, however large it is. It also sends
    batches of transactions that were not committed (isolation level 0): ``decode`` stops before them.
    """
    parts = [struct.pack(">iqi", number, offset, size) for number, offset in wanted.items()]
    wait = int(seconds * 1000)
    return [struct.pack(">iiiib", -1, wait, min(wait, 1), size, 0) + array([text(topic) + array(parts)])]


def parse_fetch(response: Response, address: str) -> list[FetchResult]:
    """The response to a Fetch request."""

    def partition(topic: str) -> FetchResult:
        number, code, _, _ = response.take("i"), response.take("h"), response.take("q"), response.take("q")
        response.many(lambda: (response.take("q"), response.take("q")))
        data = response.raw(response.take("i"))
        if code:
            raise BrokerError(f"{address} does not send records", code, topic, number)
        return FetchResult(number, data)

    def topic() -> list[FetchResult]:
        name = response.text()
        return response.many(lambda: partition(name))

    response.take("i")
    return [one for topic_ in response.many(topic) for one in topic_]
