"""The interface of both producers: they send the events of one load driver, of all its streams, to Kafka.

The load driver publishes the events of one send interval, and the producer sends them as soon as it can. ``poll``
writes bytes and reads responses; the load driver waits in it between two send intervals. A producer sends nothing
twice: its next call raises whatever went wrong, with the error of the broker, and the trial is INVALID.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from streamgauge.model.units import SECOND
from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.varints import Ints, Matrix
from streamgauge.transports.kafka.cluster import Cluster

Acks = Literal["0", "1", "all"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
ProducerKind = Literal["vectorised", "confluent"]
Now = Callable[[], int]
"""Nanoseconds of a monotonic clock."""

MILLI = 1_000
"""Microseconds of the due times in a millisecond of Kafka's timestamps."""


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int


class RecordColumns(NamedTuple):
    """Events of one partition, in the order of their due times (µs since 1970), with one row of bytes for each."""

    keys: Matrix | None
    values: Matrix
    due_us: Ints


PartitionRecords = Mapping[TopicPartition, RecordColumns]
"""The events of one send interval, by topic and partition."""


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How events are sent."""

    acks: Acks = "all"
    linger: int = 0
    """Nanoseconds that events may wait for more events if a batch is not full. librdkafka waits at least 1 ms."""
    batch: int = 1_000_000
    """Maximum bytes of a batch. The default limit of brokers is slightly higher."""
    in_flight: int = 5
    """Maximum unanswered requests to each broker."""
    compression: Compression = "none"
    backlog: int = 256 << 20
    """Maximum bytes that wait to be sent; more of them mean that the brokers do not keep up."""
    timeout: int = 20 * SECOND
    """Nanoseconds until the response of a broker must arrive."""

    def within(self, largest: int) -> "ProducerSettings":
        """The same settings with batches of at most ``largest`` bytes, which the topics accept; 0 = limit unknown."""
        return replace(self, batch=min(self.batch, largest)) if largest else self


class DeliveryReport(NamedTuple):
    """A batch that a broker acknowledged. It was sent and acknowledged at these times of the producer's clock."""

    topic: str
    partition: int
    offset: int
    """Of its first record; −1 if no response was requested (acks 0)."""
    rows: int
    appended_ms: int
    """When the broker appended it, by the broker's clock, in milliseconds since 1970; −1 if it is unknown."""
    sent_ns: int
    acknowledged_ns: int


class ProducerFull(TransportError):
    """More bytes wait to be sent than the backlog allows: the brokers do not keep up."""


def throttle_note(milliseconds: int) -> str:
    """The end of a message about brokers that do not keep up: whether a quota is the reason."""
    return f"; a quota of the cluster delayed this client by {milliseconds} ms" if milliseconds else ""


def no_such_partition(wanted: TopicPartition, partitions: Iterable[TopicPartition]) -> TransportError:
    """The error about a partition that a producer was not opened for."""
    count = sum(1 for known in partitions if known.topic == wanted.topic)
    return TransportError(f"{wanted.topic} has no partition {wanted.partition}: it has {count}")


class Producer(Protocol):
    """Sends the events of several topics. Not thread-safe: it belongs to the thread that sends."""

    @property
    def unacknowledged(self) -> int:
        """Events of all topics that were published and are not acknowledged yet."""

    def publish(self, records: PartitionRecords) -> None:
        """Take the events of a send interval, and send those that can be sent without waiting."""

    def poll(self, seconds: float = 0.0) -> None:
        """Write and read what can be written and read; if there is nothing, wait for it, at most so long."""

    def acknowledged(self) -> dict[TopicPartition, int]:
        """Events of each partition that its broker has acknowledged."""

    def take_delivery_reports(self) -> list[DeliveryReport]:
        """The batches that were acknowledged since the last call. Empty if the producer has no such reports."""

    def flush(self, seconds: float) -> None:
        """Send all that waits, and return when it is acknowledged; raise if that takes longer."""

    def close(self) -> None:
        """Close the connections. Events that were not flushed are lost."""


def open_producer(
    cluster: Cluster,
    topics: Sequence[str],
    now_ns: Now,
    settings: ProducerSettings | None = None,
    kind: ProducerKind | None = None,
) -> Producer:
    """A producer for these topics: vectorised if a plaintext connection is enough, else confluent-kafka."""
    chosen = settings or ProducerSettings()
    plain = cluster.plaintext and chosen.compression == "none"
    if kind == "vectorised" and not plain:
        raise TransportError(
            "the producer vectorised supports neither TLS nor SASL nor compression; use confluent or auto"
        )
    if kind == "confluent" or not plain:
        from streamgauge.transports.kafka.client.confluent import ConfluentProducer  # noqa: PLC0415 - librdkafka is large

        return ConfluentProducer(cluster, topics, chosen)
    from streamgauge.transports.kafka.client.vectorised import VectorisedProducer  # noqa: PLC0415

    return VectorisedProducer(cluster, topics, now_ns, chosen)
