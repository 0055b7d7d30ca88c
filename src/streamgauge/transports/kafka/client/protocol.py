"""Kafka's protocol: the requests that a generator and a reader need, and what their answers say. Pure.

An error code in an answer is raised at once, with what it means: it makes the trial INVALID, and a retry would only
hide that.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from streamgauge.transports.kafka.client.varints import Bytes

_Item = TypeVar("_Item")
Buffer = bytes | memoryview


class Api(NamedTuple):
    """A request, and the version of it that is spoken here."""

    key: int
    version: int
    name: str


PRODUCE, FETCH = Api(0, 8, "Produce"), Api(1, 4, "Fetch")
LIST_OFFSETS, METADATA = Api(2, 1, "ListOffsets"), Api(3, 4, "Metadata")
API_VERSIONS = Api(18, 0, "ApiVersions")
SPOKEN = (PRODUCE, FETCH, LIST_OFFSETS, METADATA)

LATEST, EARLIEST = -1, -2
_CLIENT = b"streamgauge"
_HEAD = struct.Struct(">ihhih")
_NUMBERS = {form: struct.Struct(f">{form}") for form in "bhiq"}
_STORED = struct.Struct(">ihqqq")

MEANINGS = {
    -1: "the broker does not know what went wrong; its log does",
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
    29: "we may not use this topic",
    30: "the user may not use this consumer group",
    31: "we may not use this cluster",
    32: "the timestamps lie too far from the broker's clock",
    35: "the broker does not speak this version",
    42: "the request makes no sense to the broker",
    44: "a policy of the cluster forbids it",
    56: "the broker cannot write to its disk",
    74: "the partition has another leader by now",
    75: "the broker has not heard of the partition's leader yet",
    76: "the topic does not allow this compression",
    78: "the broker does not know the offset yet",
    87: "the broker refuses the records: their number or form is wrong",
    89: "the cluster slows us down (quota)",
}
"""What a broker's error codes mean."""


class KafkaFailure(RuntimeError):
    """Something went wrong between us and Kafka; the sentence says what."""


class Unreachable(KafkaFailure):
    """A broker cannot be reached, has closed the connection or does not answer."""


class Refused(KafkaFailure):
    """A broker said no. ``code`` is its number for why."""

    def __init__(self, what: str, code: int, topic: str = "", partition: int | None = None, detail: str = "") -> None:
        where = f" for {topic}" + (f", partition {partition}" if partition is not None else "") if topic else ""
        said = MEANINGS.get(code, "see Kafka's list of error codes")
        super().__init__(f"{what}{where}: error {code}, {said}" + (f" ({detail})" if detail else ""))
        self.code, self.topic, self.partition = code, topic, partition


class Answer:
    """The bytes of an answer, read from the front."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> int:
        """A number: ``h``, ``i``, ``q`` or ``b`` as struct has them."""
        found: int = self.fields(_NUMBERS[form])[0]
        return found

    def fields(self, form: struct.Struct) -> tuple[Any, ...]:
        """Several numbers at once."""
        try:
            found = form.unpack_from(self._data, self._at)
        except struct.error as error:
            raise KafkaFailure(f"an answer of the broker is too short: {error}") from error
        self._at += form.size
        return found

    def raw(self, length: int) -> memoryview:
        """So many bytes; none where the length is −1."""
        begin, self._at = self._at, self._at + max(length, 0)
        if self._at > len(self._data):
            raise KafkaFailure(f"an answer of the broker is too short by {self._at - len(self._data)} bytes")
        return self._data[begin : self._at]

    def text(self) -> str:
        """A string; empty where there is none."""
        return str(self.raw(self.take("h")), "utf-8")

    def many(self, item: Callable[[], _Item]) -> list[_Item]:
        """An array; empty where there is none."""
        return [item() for _ in range(self.take("i"))]


def text(value: str) -> bytes:
    """A string as requests have it."""
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded


def array(items: Iterable[bytes]) -> bytes:
    """An array as requests have it."""
    listed = list(items)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def framed(api: Api, correlation: int, body: Sequence[Buffer]) -> list[Buffer]:
    """A request as it goes over the connection: its length, its header and its body, nothing copied."""
    size = _HEAD.size - 4 + len(_CLIENT) + sum(map(len, body))
    head = _HEAD.pack(size, api.key, api.version, correlation, len(_CLIENT)) + _CLIENT
    return [head, *body]


class Batch(NamedTuple):
    """A record batch for one partition."""

    partition: int
    data: Bytes


def produce(topic: str, batches: Sequence[Batch], acks: int, seconds: float) -> list[Buffer]:
    """The body of a Produce request with one batch for each of some partitions. ``acks`` −1 is all."""
    head = struct.pack(">hhi", -1, acks, int(seconds * 1000)) + struct.pack(">i", 1) + text(topic)
    body: list[Buffer] = [head + struct.pack(">i", len(batches))]
    for batch in batches:
        body += [struct.pack(">ii", batch.partition, len(batch.data)), batch.data.data]
    return body


class Stored(NamedTuple):
    """What a broker says of a batch that it has taken."""

    partition: int
    offset: int
    """Of its first record."""
    appended_ms: int
    """When it was appended, on the broker's clock; −1 where the broker does not stamp."""


def stored(answer: Answer, address: str) -> list[Stored]:
    """The answer to a Produce request; raises if any batch was not taken."""

    def partition_of(topic: str) -> Stored:
        partition, code, offset, appended, _ = answer.fields(_STORED)
        found = Stored(partition, offset, appended)
        errors = answer.many(lambda: (answer.take("i"), answer.text()))
        said = "; ".join(filter(None, [answer.text(), *(f"record {n}: {why}" for n, why in errors[:3])]))
        if code:
            raise Refused(f"{address} did not take records", code, topic, partition, said)
        return found

    def topic_of() -> list[Stored]:
        topic = answer.text()
        return answer.many(lambda: partition_of(topic))

    return [one for topic in answer.many(topic_of) for one in topic]


def throttled(answer: Answer) -> int:
    """The end of the answer to a Produce request: for how many milliseconds a quota delays this client."""
    return answer.take("i")


class Described(NamedTuple):
    """A topic: the brokers of the cluster by their numbers, and which one leads each partition."""

    brokers: dict[int, tuple[str, int]]
    leaders: dict[int, int]


def describe(topic: str) -> list[Buffer]:
    """The body of a Metadata request. It never makes a topic, whatever the cluster allows."""
    return [array([text(topic)]), b"\0"]


def described(answer: Answer, address: str) -> Described:
    """The answer to it."""

    def broker() -> tuple[int, tuple[str, int]]:
        number, host, port, _ = answer.take("i"), answer.text(), answer.take("i"), answer.text()
        return number, (host, port)

    def partition(topic: str) -> tuple[int, int]:
        code, number, leader = answer.take("h"), answer.take("i"), answer.take("i")
        for _ in ("copies", "copies in step"):
            answer.many(lambda: answer.take("i"))
        if code:
            raise Refused(f"{address} does not know who leads", code, topic, number)
        return number, leader

    def topic() -> list[tuple[int, int]]:
        code, name = answer.take("h"), answer.text()
        answer.take("b")
        if code:
            raise Refused(f"{address} does not describe the topic", code, name)
        return answer.many(lambda: partition(name))

    answer.take("i")
    brokers = dict(answer.many(broker))
    answer.text()
    answer.take("i")
    return Described(brokers, dict(sorted(one for topic_ in answer.many(topic) for one in topic_)))


def list_offsets(topic: str, partitions: Iterable[int], which: int) -> list[Buffer]:
    """The body of a ListOffsets request: LATEST or EARLIEST of each partition."""
    asked = [struct.pack(">iq", number, which) for number in partitions]
    return [struct.pack(">i", -1) + array([text(topic) + array(asked)])]


def offsets(answer: Answer, address: str) -> dict[int, int]:
    """The answer to it, by partition."""

    def partition(topic: str) -> tuple[int, int]:
        number, code, _, offset = answer.take("i"), answer.take("h"), answer.take("q"), answer.take("q")
        if code:
            raise Refused(f"{address} does not say where the log ends", code, topic, number)
        return number, offset

    def topic() -> list[tuple[int, int]]:
        name = answer.text()
        return answer.many(lambda: partition(name))

    return dict(one for topic_ in answer.many(topic) for one in topic_)


class Fetched(NamedTuple):
    """What a broker sends of a partition: whole batches, the last one perhaps cut off, and where the log ends."""

    partition: int
    end: int
    data: memoryview


def fetch(topic: str, wanted: Mapping[int, int], size: int, seconds: float = 0.0) -> list[Buffer]:
    """The body of a Fetch request: what is there from these offsets on, at most so many bytes.

    The broker waits so long if there is nothing. One batch it sends whole, however large.
    """
    asked = [struct.pack(">iqi", number, offset, size) for number, offset in wanted.items()]
    wait = int(seconds * 1000)
    return [struct.pack(">iiiib", -1, wait, min(wait, 1), size, 0) + array([text(topic) + array(asked)])]


def fetched(answer: Answer, address: str) -> list[Fetched]:
    """The answer to it."""

    def partition(topic: str) -> Fetched:
        number, code, end, _ = answer.take("i"), answer.take("h"), answer.take("q"), answer.take("q")
        answer.many(lambda: (answer.take("q"), answer.take("q")))
        data = answer.raw(answer.take("i"))
        if code:
            raise Refused(f"{address} does not hand out records", code, topic, number)
        return Fetched(number, end, data)

    def topic() -> list[Fetched]:
        name = answer.text()
        return answer.many(lambda: partition(name))

    answer.take("i")
    return [one for topic_ in answer.many(topic) for one in topic_]
