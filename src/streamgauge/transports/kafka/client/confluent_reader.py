"""Topics read with librdkafka, record by record: over TLS or SASL, and compressed or transactional records."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streamgauge.transports.kafka.client.decode import LOG
from streamgauge.transports.kafka.client.protocol import BrokerError, BrokerUnreachable
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.topics import PREFIX

_SECONDS = 20.0
_MAX_MESSAGES = 50_000
_WAIT = 0.1
"""Seconds that librdkafka waits for the rest of a batch of messages, even if the log ends before it is full."""
_MAX_WAITS = int(_SECONDS / _WAIT)
"""Waits without progress after which reading fails."""
_READ_AHEAD = 16 << 10
"""Kilobytes of a partition that librdkafka reads ahead at most."""
_GROUP = f"{PREFIX}.reader"
"""librdkafka requires the name of a group, and the cluster the right to read it. No group is joined and no offset is
committed."""


class TopicOffsets:
    """Where the partitions of a topic begin and end. The connections stay open.

    An AdminClient requests the offsets, on plaintext clusters too: a request takes 0.3 ms of CPU time, and at most 20
    of them are made in a second, after the load has ended. So the plaintext client needs no ListOffsets.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._topic = topic
        self._client = AdminClient({**cluster.client_settings(), "log_level": 0})
        self._partitions = self._find_partitions(cluster.bootstrap)

    def _find_partitions(self, bootstrap: str) -> list[int]:
        try:
            found = self._client.list_topics(self._topic, timeout=_SECONDS).topics[self._topic]
        except KafkaException as error:
            raise BrokerUnreachable(f"the cluster at {bootstrap} cannot be reached: {error.args[0].str()}") from error
        if found.error is not None:
            raise BrokerError("the cluster does not describe the topic", found.error.code(), self._topic)
        return sorted(found.partitions)

    def begin_offsets(self) -> dict[int, int]:
        """The first offset of each partition."""
        return self._list(OffsetSpec.earliest())

    def end_offsets(self) -> dict[int, int]:
        """The offset after the last record of each partition that ``read_committed`` consumers may read now.

        It is the number of records only if no producer uses transactions. Their markers and their aborted records have
        offsets too, so it is an upper bound then, and the records must be counted as they are read.
        """
        return self._list(OffsetSpec.latest())

    def _list(self, which: OffsetSpec) -> dict[int, int]:
        wanted = {TopicPartition(self._topic, number): which for number in self._partitions}
        answers = self._client.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_SECONDS
        )
        found = {}
        for place, answer in answers.items():
            try:
                found[place.partition] = int(answer.result(2 * _SECONDS).offset)
            except KafkaException as error:
                what = "the cluster did not return the first and last offsets"
                reason = error.args[0]
                raise BrokerError(what, reason.code(), self._topic, place.partition, reason.str()) from error
        return dict(sorted(found.items()))


def _consumer_settings(cluster: Cluster) -> dict[str, object]:
    """librdkafka's settings. Records of aborted transactions, and of those that are not complete, are not read."""
    return {
        **cluster.client_settings(),
        "log_level": 0,
        "group.id": _GROUP,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "queued.max.messages.kbytes": _READ_AHEAD,
    }


class ConfluentRangeReader:
    """Reads ranges of offsets through librdkafka, with one consumer per partition. Satisfies ``reader.RangeReader``."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._consumers: dict[int, Consumer] = {}
        self._positions: dict[int, int] = {}
        """The offset that a consumer would return next."""

    def read(self, partition: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The committed records at the offsets ``start … stop − 1``."""
        if start >= stop:
            return
        if partition not in self._consumers:
            self._consumers[partition] = Consumer(_consumer_settings(self._cluster))
        consumer, place = self._consumers[partition], TopicPartition(self._topic, partition, start)
        if self._positions.pop(partition, None) != start:
            consumer.assign([place])
        at, waits = start, 0
        while at < stop:
            messages = consumer.consume(min(_MAX_MESSAGES, stop - at), _WAIT)
            polled = _poll_result(messages, place)
            waits = 0 if polled.position > at else waits + 1
            if waits == _MAX_WAITS:
                where = f"{self._topic}, partition {partition}"
                raise BrokerUnreachable(
                    f"{where}: no records arrived from offset {at} on, though the log ends at {stop}"
                )
            at = max(at, polled.position)
            rows = polled.rows if at <= stop else _before(polled.rows, stop)
            if rows.num_rows:
                yield rows
        if at == stop:
            self._positions[partition] = stop  # else the consumer is beyond the range, and must be set back

    def close(self) -> None:
        """Close the connections."""
        for consumer in self._consumers.values():
            consumer.close()


class _Polled(NamedTuple):
    """Records, and the offset after them; −1: nothing was received."""

    rows: pa.RecordBatch
    position: int


def _poll_result(messages: list[Message], place: TopicPartition) -> _Polled:
    """The records among some messages. The others report that the log ends, and at which offset.

    That offset matters: what comes before it may be aborted records and markers of transactions, without a message.
    """
    records, position = list[Message](), -1
    for message in messages:
        error = message.error()
        if error is None:
            records.append(message)
        elif error.code() != KafkaError._PARTITION_EOF:
            raise BrokerError("records cannot be read", error.code(), place.topic, place.partition, error.str())
        position = max(position, (message.offset() or 0) + (error is None))
    return _Polled(_rows(records), position)


def _before(rows: pa.RecordBatch, stop: int) -> pa.RecordBatch:
    """The records at offsets below ``stop``."""
    return rows.slice(0, int(np.searchsorted(rows.column("offset").to_numpy(), stop)))


def _rows(messages: list[Message]) -> pa.RecordBatch:
    columns = [
        pa.array(np.array([message.offset() for message in messages], np.int64)),
        pa.array(np.array([message.timestamp()[1] for message in messages], np.int64)),
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LOG)
