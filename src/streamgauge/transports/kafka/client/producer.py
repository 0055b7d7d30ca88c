"""From the generator into a topic: what a producer is, whichever of the two it is.

A tick is put into the producer's hands and goes to the broker as soon as it can; ``attend`` moves bytes and takes in
answers, and is where the generator waits between two ticks. Nothing is ever sent twice: whatever goes wrong is raised
by the next call, with what the broker said, and makes the trial INVALID.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Protocol

from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.client.varints import Ints, Matrix
from streamgauge.transports.kafka.cluster import Cluster

Acks = Literal["0", "1", "all"]
Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Kind = Literal["vectorised", "confluent"]
Now = Callable[[], int]
"""Nanoseconds of a clock that only goes forward."""

MILLI = 1_000
"""Microseconds of the due times in a millisecond of Kafka's timestamps."""


class Part(NamedTuple):
    """Events of one partition, in the order of their due times (µs since 1970), a row of bytes each."""

    keys: Matrix | None
    values: Matrix
    due_us: Ints


Tick = Mapping[int, Part]
"""What becomes due together, by partition."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How events are sent."""

    acks: Acks = "all"
    linger: int = 0
    """Nanoseconds that events may wait for more of them, where a batch is not full. librdkafka waits 1 ms at least."""
    batch: int = 1_000_000
    """Bytes of a batch at most; brokers take a little more than this unless they are told otherwise."""
    in_flight: int = 5
    """Requests that wait for their answers, for each broker."""
    compression: Compression = "none"
    backlog: int = 256 << 20
    """Bytes that may wait to be sent; more of them mean that the broker does not keep up."""
    patience: int = 20 * SECOND
    """Nanoseconds that a broker may take for an answer."""

    def within(self, largest: int) -> "Sending":
        """The same with batches that a topic accepts: of at most ``largest`` bytes; 0: the limit is not known."""
        return replace(self, batch=min(self.batch, largest)) if largest else self


class Receipt(NamedTuple):
    """A batch that the broker has taken: it was sent and acknowledged at these moments of the producer's clock."""

    partition: int
    offset: int
    """Of its first record; −1 where the broker was not asked (acks 0)."""
    rows: int
    appended_ms: int
    """The moment on the broker's clock, in milliseconds since 1970; −1 where it does not stamp."""
    sent_ns: int
    acknowledged_ns: int


class TooFarBehind(KafkaFailure):
    """More events wait to be sent than there is room for: the broker does not keep up."""


def slowed(milliseconds: int) -> str:
    """The end of a sentence on a broker that does not keep up: whether a quota is the reason."""
    return f"; a quota of the cluster delayed this client by {milliseconds} ms" if milliseconds else ""


class Producer(Protocol):
    """Sends the events of one topic. Not safe for threads: it belongs to the one that ticks."""

    @property
    def waiting(self) -> int:
        """Events that were published and are not acknowledged yet."""

    def publish(self, tick: Tick) -> None:
        """Take a tick, and send of it what can be sent without waiting."""

    def attend(self, seconds: float = 0.0) -> None:
        """Move what can be moved; if there is nothing, wait for it, at most so long."""

    def acknowledged(self) -> dict[int, int]:
        """Events of each partition that the broker has confirmed."""

    def flush(self, seconds: float) -> None:
        """Send all that waits, and return when it is acknowledged; raise if that takes longer."""

    def close(self) -> None:
        """Hang up. What was not flushed is lost."""


def open_producer(
    cluster: Cluster, topic: str, now_ns: Now, sending: Sending | None = None, kind: Kind | None = None
) -> Producer:
    """The producer that suits the cluster: vectorised where a plain connection will do, else confluent-kafka."""
    how = sending or Sending()
    fits = cluster.plain and how.compression == "none"
    if kind == "vectorised" and not fits:
        raise KafkaFailure(
            "the producer vectorised supports neither TLS nor SASL nor compression; use confluent or auto"
        )
    if kind == "confluent" or not fits:
        from streamgauge.transports.kafka.client.confluent import ConfluentProducer  # noqa: PLC0415 - librdkafka is large

        return ConfluentProducer(cluster, topic, how)
    from streamgauge.transports.kafka.client.vectorised import VectorisedProducer  # noqa: PLC0415

    return VectorisedProducer(cluster, topic, now_ns, how)
