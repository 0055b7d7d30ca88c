"""The producer that is librdkafka: for TLS, SASL and compression, and for whatever a plain connection cannot do."""

import select
from collections.abc import Callable

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, ThrottleEvent
from confluent_kafka import Producer as Client

from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.client.producer import MILLI, Sending, Tick, TooFarBehind, slowed
from streamgauge.transports.kafka.client.protocol import KafkaFailure, Refused, Unreachable
from streamgauge.transports.kafka.client.varints import Matrix
from streamgauge.transports.kafka.cluster import Cluster

_MILLI = SECOND // 1_000
_MOST_MESSAGES = 10_000_000
_GATHER = _MILLI
"""Nanoseconds that events wait at least: librdkafka is handed a tick one by one, and would send many requests of it."""
_SHOWN = 2
_SHORTEST = 0.001
"""Seconds. librdkafka waits for whole milliseconds, so what is less would be no wait at all, again and again."""
_UNKNOWN = -1
"""The lowest number that a broker has for an error; librdkafka's own are below it."""


def _settings(cluster: Cluster, sending: Sending) -> dict[str, object]:
    """Nothing is tried again: what fails makes the trial INVALID."""
    return {
        **cluster.client_settings(),
        "log_level": 0,
        "acks": sending.acks,
        "linger.ms": max(sending.linger, _GATHER) / _MILLI,
        "batch.size": sending.batch,
        "batch.num.messages": 1_000_000,
        "message.max.bytes": sending.batch + 10_000,
        "max.in.flight.requests.per.connection": sending.in_flight,
        "compression.type": sending.compression,
        "message.send.max.retries": 0,
        "message.timeout.ms": sending.patience // _MILLI,
        "queue.buffering.max.messages": _MOST_MESSAGES,
        "queue.buffering.max.kbytes": max(1, sending.backlog >> 10),
    }


class ConfluentProducer:
    """Sends single records through librdkafka. Satisfies ``producer.Producer``."""

    def __init__(self, cluster: Cluster, topic: str, sending: Sending) -> None:
        self._topic, self._how = topic, sending
        self._where = cluster.bootstrap
        self._said = dict[str, None]()
        self._failed: KafkaFailure | None = None
        self._leaders: frozenset[str] = frozenset()
        self._published = self._throttled = 0
        self._done = dict[int, int]()
        try:
            told = {"error_cb": self._hear, "throttle_cb": self._delayed}
            self._client = Client({**_settings(cluster, sending), **told})
        except KafkaException as error:
            raise KafkaFailure(f"the cluster at {cluster.bootstrap} cannot be used: {error.args[0].str()}") from error
        self._done |= dict.fromkeys(self._partitions(cluster), 0)
        self._told = {partition: self._teller(partition) for partition in self._done}

    def _partitions(self, cluster: Cluster) -> list[int]:
        try:
            told = self._client.list_topics(self._topic, timeout=self._how.patience / SECOND)
        except KafkaException as error:
            heard = f" ({self._heard})" if self._heard else ""
            raise Unreachable(f"the cluster at {cluster.bootstrap}: {error.args[0].str()}{heard}") from error
        found = told.topics[self._topic]
        if found.error is not None:
            raise Refused("the cluster does not describe the topic", found.error.code(), self._topic)
        leading = {told.brokers[held.leader] for held in found.partitions.values() if held.leader in told.brokers}
        self._leaders = frozenset(f"{broker.host}:{broker.port}/{broker.id}:" for broker in leading)
        return sorted(found.partitions)

    def _hear(self, error: KafkaError) -> None:
        """What goes wrong with connections. librdkafka would try again, and for long; we have lost records, or time.

        A connection that matters is one to a broker that leads: those that it found the cluster by come and go.
        """
        self._said[error.str()] = None
        gone = error.code() == KafkaError._ALL_BROKERS_DOWN or any(name in error.str() for name in self._leaders)
        if gone and self._leaders and self._failed is None:
            self._failed = Unreachable(f"the connection to {self._where} broke: {self._heard}; {self._left()}")

    def _delayed(self, event: ThrottleEvent) -> None:
        self._throttled += int(event.throttle_time * 1_000)

    @property
    def _heard(self) -> str:
        """What was said of connections last."""
        return "; ".join([*self._said][-_SHOWN:])

    def _left(self) -> str:
        return f"{self.waiting} records of {self._topic} were not acknowledged"

    def _teller(self, partition: int) -> Callable[[KafkaError | None, Message], None]:
        """Counts what is delivered to a partition, and keeps what goes wrong first."""

        def told(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._done[partition] += 1
            elif self._failed is None:
                self._failed = self._lost(error, partition)

        return told

    def _lost(self, error: KafkaError, partition: int) -> KafkaFailure:
        """A record that was not taken: by a broker, which says why, or by none, which librdkafka alone tells."""
        detail = "; ".join(filter(None, [error.str(), self._heard]))
        if error.code() < _UNKNOWN:
            return Unreachable(
                f"no broker took records for {self._topic}, partition {partition}: {detail}; {self._left()}"
            )
        return Refused("the cluster did not take records", error.code(), self._topic, partition, detail)

    @property
    def waiting(self) -> int:
        """Events that were published and are not acknowledged yet."""
        return self._published - sum(self._done.values())

    def publish(self, tick: Tick) -> None:
        """Take a tick; librdkafka sends it."""
        for partition, part in tick.items():
            if partition not in self._told:
                raise KafkaFailure(f"{self._topic} has no partition {partition}: it has {len(self._told)}")
            told, produce, topic = self._told[partition], self._client.produce, self._topic
            keys = [None] * len(part.values) if part.keys is None else _rows(part.keys)
            times = (part.due_us // MILLI).tolist()
            try:
                for value, key, time in zip(_rows(part.values), keys, times, strict=True):
                    produce(topic, value, key, partition, told, timestamp=time)
                    self._published += 1
            except BufferError as error:
                raise TooFarBehind(
                    f"more events wait for {self._topic} than the {self._how.backlog >> 20} MiB that may: "
                    f"the cluster does not keep up with this load{slowed(self._throttled)}"
                ) from error
            except KafkaException as error:
                raise Refused("records cannot be sent", error.args[0].code(), self._topic, partition) from error
        self.attend()

    def attend(self, seconds: float = 0.0) -> None:
        """Take in what librdkafka tells; if there is nothing, wait for it, at most so long."""
        self._client.poll(seconds)
        if 0 < seconds < _SHORTEST:
            select.select([], [], [], seconds)
        if self._failed is not None:
            raise self._failed

    def acknowledged(self) -> dict[int, int]:
        """Events of each partition that the broker has confirmed."""
        return dict(self._done)

    def flush(self, seconds: float) -> None:
        """Send all that waits, and return when it is acknowledged; raise if that takes longer."""
        self._client.flush(seconds)
        self.attend()
        if self.waiting:
            heard = f" ({self._heard})" if self._heard else ""
            raise Unreachable(f"{self._left()} within {seconds:g} s{heard}{slowed(self._throttled)}")

    def close(self) -> None:
        """Hang up. What was not flushed is lost."""
        self._client.purge()
        self._client.flush(1.0)


def _rows(matrix: Matrix) -> list[bytes]:
    """Rows as single strings of bytes."""
    if not matrix.shape[1]:
        return [b""] * len(matrix)
    rows: list[bytes] = np.ascontiguousarray(matrix).view(np.dtype((np.void, matrix.shape[1])))[:, 0].tolist()
    return rows
