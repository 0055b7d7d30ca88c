"""The producer over librdkafka: for TLS, SASL and compression, which plaintext connections cannot do."""

import select
from collections.abc import Callable, Sequence

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, ThrottleEvent
from confluent_kafka import Producer as Client

from streamgauge.model.units import SECOND
from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.producer import (
    MILLI,
    DeliveryReport,
    PartitionRecords,
    ProducerFull,
    ProducerSettings,
    TopicPartition,
    no_such_partition,
    throttle_note,
)
from streamgauge.transports.kafka.client.protocol import BrokerError, BrokerUnreachable
from streamgauge.transports.kafka.client.varints import Matrix
from streamgauge.transports.kafka.cluster import Cluster

_MILLI = SECOND // 1_000
_MAX_MESSAGES = 10_000_000
_MIN_LINGER = _MILLI
"""Nanoseconds. librdkafka gets the events of a send interval one by one, and would make many requests of them."""
_SHOWN = 2
_SHORTEST_WAIT = 0.001
"""Seconds. librdkafka waits for whole milliseconds: a shorter wait would be no wait at all."""
_UNKNOWN = -1
"""The lowest error code of a broker; librdkafka's own error codes are lower."""


def _client_settings(cluster: Cluster, settings: ProducerSettings) -> dict[str, object]:
    """librdkafka's settings. Nothing is sent again: a failure makes the trial INVALID."""
    return {
        **cluster.client_settings(),
        "log_level": 0,
        "acks": settings.acks,
        "linger.ms": max(settings.linger, _MIN_LINGER) / _MILLI,
        "batch.size": settings.batch,
        "batch.num.messages": 1_000_000,
        "message.max.bytes": settings.batch + 10_000,
        "max.in.flight.requests.per.connection": settings.in_flight,
        "compression.type": settings.compression,
        "message.send.max.retries": 0,
        "message.timeout.ms": settings.timeout // _MILLI,
        "queue.buffering.max.messages": _MAX_MESSAGES,
        "queue.buffering.max.kbytes": max(1, settings.backlog >> 10),
    }


class ConfluentProducer:
    """Sends single records through librdkafka. Satisfies ``producer.Producer``."""

    def __init__(self, cluster: Cluster, topics: Sequence[str], settings: ProducerSettings) -> None:
        self._topics, self._settings = ", ".join(topics), settings
        self._bootstrap = cluster.bootstrap
        self._errors = dict[str, None]()
        """Errors of connections, each once, the newest last."""
        self._failure: TransportError | None = None
        self._leaders: frozenset[str] = frozenset()
        self._published = self._throttled = 0
        self._acknowledged = dict[TopicPartition, int]()
        try:
            callbacks = {"error_cb": self._on_error, "throttle_cb": self._on_throttle}
            self._client = Client({**_client_settings(cluster, settings), **callbacks})
        except KafkaException as error:
            raise TransportError(f"the cluster at {cluster.bootstrap} cannot be used: {error.args[0].str()}") from error
        for topic in topics:
            self._acknowledged |= dict.fromkeys(self._partitions(topic), 0)
        self._on_delivery = {place: self._delivery_callback(place) for place in self._acknowledged}

    def _partitions(self, topic: str) -> list[TopicPartition]:
        try:
            metadata = self._client.list_topics(topic, timeout=self._settings.timeout / SECOND)
        except KafkaException as error:
            raise BrokerUnreachable(
                f"the cluster at {self._bootstrap}: {error.args[0].str()}{self._in_brackets()}"
            ) from error
        found = metadata.topics[topic]
        if found.error is not None:
            raise BrokerError("the cluster does not describe the topic", found.error.code(), topic)
        leading = {metadata.brokers[p.leader] for p in found.partitions.values() if p.leader in metadata.brokers}
        self._leaders |= {f"{broker.host}:{broker.port}/{broker.id}:" for broker in leading}
        return [TopicPartition(topic, number) for number in sorted(found.partitions)]

    def _on_error(self, error: KafkaError) -> None:
        """Remember errors of connections. librdkafka would retry for long, but records, or time, are lost by then.

        Only connections to leaders count: those that librdkafka found the cluster by come and go.
        """
        self._errors[error.str()] = None
        lost = error.code() == KafkaError._ALL_BROKERS_DOWN or any(name in error.str() for name in self._leaders)
        if lost and self._leaders and self._failure is None:
            self._failure = BrokerUnreachable(
                f"the connection to {self._bootstrap} broke: {self._last_errors}; {self._left()}"
            )

    def _on_throttle(self, event: ThrottleEvent) -> None:
        self._throttled += int(event.throttle_time * 1_000)

    @property
    def _last_errors(self) -> str:
        """The newest errors of connections."""
        return "; ".join([*self._errors][-_SHOWN:])

    def _in_brackets(self) -> str:
        return f" ({self._last_errors})" if self._last_errors else ""

    def _left(self) -> str:
        return f"{self.unacknowledged} records of {self._topics} were not acknowledged"

    def _delivery_callback(self, place: TopicPartition) -> Callable[[KafkaError | None, Message], None]:
        """Counts the acknowledged records of a partition, and keeps the first error."""

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._acknowledged[place] += 1
            elif self._failure is None:
                self._failure = self._lost(error, place)

        return on_delivery

    def _lost(self, error: KafkaError, place: TopicPartition) -> TransportError:
        """The error of a record that a broker rejected, or that reached no broker, as librdkafka reports."""
        detail = "; ".join(filter(None, [error.str(), self._last_errors]))
        if error.code() < _UNKNOWN:
            return BrokerUnreachable(
                f"no broker took records for {place.topic}, partition {place.partition}: {detail}; {self._left()}"
            )
        return BrokerError("the cluster did not take records", error.code(), *place, detail)

    @property
    def unacknowledged(self) -> int:
        """Events of all topics that were published and are not acknowledged yet."""
        return self._published - sum(self._acknowledged.values())

    def publish(self, records: PartitionRecords) -> None:
        """Take the events of a send interval; librdkafka sends them."""
        produce = self._client.produce
        for place, part in records.items():
            if place not in self._on_delivery:
                raise no_such_partition(place, self._on_delivery)
            (topic, partition), on_delivery = place, self._on_delivery[place]
            keys = [None] * len(part.values) if part.keys is None else _rows(part.keys)
            times = (part.due_us // MILLI).tolist()
            try:
                for value, key, time in zip(_rows(part.values), keys, times, strict=True):
                    produce(topic, value, key, partition, on_delivery, timestamp=time)
                    self._published += 1
            except BufferError as error:
                raise ProducerFull(
                    f"more events wait for {topic} than the limit of {self._settings.backlog >> 20} MiB: "
                    f"the cluster does not keep up with this load{throttle_note(self._throttled)}"
                ) from error
            except KafkaException as error:
                raise BrokerError("records cannot be sent", error.args[0].code(), topic, partition) from error
        self.poll()

    def poll(self, seconds: float = 0.0) -> None:
        """Run librdkafka's callbacks; if there are none, wait for one, at most so long."""
        self._client.poll(seconds)
        if 0 < seconds < _SHORTEST_WAIT:
            select.select([], [], [], seconds)
        if self._failure is not None:
            raise self._failure

    def acknowledged(self) -> dict[TopicPartition, int]:
        """Events of each partition that its broker has acknowledged."""
        return dict(self._acknowledged)

    def take_delivery_reports(self) -> list[DeliveryReport]:
        """Nothing: librdkafka acknowledges single records, which only ``acknowledged`` counts."""
        return []

    def flush(self, seconds: float) -> None:
        """Send all that waits, and return when it is acknowledged; raise if that takes longer."""
        self._client.flush(seconds)
        self.poll()
        if self.unacknowledged:
            raise BrokerUnreachable(
                f"{self._left()} within {seconds:g} s{self._in_brackets()}{throttle_note(self._throttled)}"
            )

    def close(self) -> None:
        """Close the connections. Events that were not flushed are lost."""
        self._client.purge()
        self._client.flush(1.0)


def _rows(matrix: Matrix) -> list[bytes]:
    """Rows as single strings of bytes."""
    if not matrix.shape[1]:
        return [b""] * len(matrix)
    rows: list[bytes] = np.ascontiguousarray(matrix).view(np.dtype((np.void, matrix.shape[1])))[:, 0].tolist()
    return rows
