"""Reading a topic with librdkafka, record by record: where TLS or SASL keeps plain connections out."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streamgauge.transports.kafka.client.decode import LOG
from streamgauge.transports.kafka.client.protocol import Refused, Unreachable
from streamgauge.transports.kafka.client.reader import of_partition
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.topics import PREFIX

_SECONDS = 20.0
_AT_ONCE = 50_000
_WAIT = 1.0
_EMPTY = int(_SECONDS / _WAIT)
"""Waits without a record after which the cluster is given up."""
_AHEAD = 16 << 10
"""Kilobytes that librdkafka reads ahead of a range at most."""
_GROUP = f"{PREFIX}.reader"
"""librdkafka demands a name, and the cluster the right to read it; no group is joined and no offset is committed."""


def _partitions(client: AdminClient | Consumer, topic: str, bootstrap: str) -> list[int]:
    try:
        found = client.list_topics(topic, timeout=_SECONDS).topics[topic]
    except KafkaException as error:
        raise Unreachable(f"the cluster at {bootstrap} cannot be reached: {error.args[0].str()}") from error
    if found.error is not None:
        raise Refused("the cluster does not describe the topic", found.error.code(), topic)
    return sorted(found.partitions)


class ConfluentEnds:
    """Asks through librdkafka. Satisfies ``reader.Ends``."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._topic = topic
        self._client = AdminClient({**cluster.client_settings(), "log_level": 0})
        self._partitions = _partitions(self._client, topic, cluster.bootstrap)

    def ask(self) -> dict[int, int]:
        """The end offsets at this moment."""
        asked = {TopicPartition(self._topic, number): OffsetSpec.latest() for number in self._partitions}
        found = {}
        for partition, promise in self._client.list_offsets(asked, request_timeout=_SECONDS).items():
            try:
                found[partition.partition] = int(promise.result(2 * _SECONDS).offset)
            except KafkaException as error:
                what = "the cluster does not say where the log ends"
                raise Refused(what, error.args[0].code(), self._topic, partition.partition) from error
        return dict(sorted(found.items()))

    def close(self) -> None:
        """Nothing to do: librdkafka hangs up when nobody holds it."""


def _settings(cluster: Cluster) -> dict[str, object]:
    return {
        **cluster.client_settings(),
        "log_level": 0,
        "group.id": _GROUP,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_uncommitted",
    }


class ConfluentRanges:
    """Reads ranges of offsets through librdkafka, a consumer for each partition. Satisfies ``ranges.Ranges``."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._consumers: dict[int, Consumer] = {}
        self._places: dict[int, int] = {}
        """The offset that a consumer would give next."""

    def read(self, partition: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The records at the offsets ``start … stop − 1``."""
        if start >= stop:
            return
        if partition not in self._consumers:
            self._consumers[partition] = Consumer({**_settings(self._cluster), "queued.max.messages.kbytes": _AHEAD})
        consumer = self._consumers[partition]
        if self._places.pop(partition, None) != start:
            consumer.assign([TopicPartition(self._topic, partition, start)])
        yield from _read_on(consumer, TopicPartition(self._topic, partition, start), stop)
        self._places[partition] = stop  # whoever breaks off begins anew

    def close(self) -> None:
        """Hang up."""
        for consumer in self._consumers.values():
            consumer.close()


def read_singly(cluster: Cluster, topic: str) -> Iterator[pa.RecordBatch]:
    """All records that are there now, some thousands at a time, each of one partition."""
    consumer = Consumer(_settings(cluster))
    try:
        for number in _partitions(consumer, topic, cluster.bootstrap):
            begin, end = _watermarks(consumer, TopicPartition(topic, number))
            if begin < end:
                yield from _read(consumer, TopicPartition(topic, number, begin), end)
    finally:
        consumer.close()


def _watermarks(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """The first offset of a partition that is there, and the one after the last."""
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(place, _SECONDS, cached=False)
    except KafkaException as error:
        what = "the cluster does not say where the log begins and ends"
        raise Refused(what, error.args[0].code(), place.topic, place.partition, error.args[0].str()) from error
    return found


def _read(consumer: Consumer, place: TopicPartition, end: int) -> Iterator[pa.RecordBatch]:
    consumer.assign([place])
    for rows in _read_on(consumer, place, end):
        yield of_partition(place.partition, rows)
    consumer.unassign()


def _read_on(consumer: Consumer, place: TopicPartition, end: int) -> Iterator[pa.RecordBatch]:
    """What comes from a partition that is assigned already."""
    offset, empty = place.offset, 0
    while offset < end:
        messages = consumer.consume(min(_AT_ONCE, end - offset), _WAIT)
        empty = 0 if messages else empty + 1
        if empty == _EMPTY:
            where = f"{place.topic}, partition {place.partition}"
            raise Unreachable(f"{where}: nothing came from offset {offset} on, though the log ends at {end}")
        if not messages:
            continue
        for message in messages:
            if (error := message.error()) is not None:
                raise Refused("records cannot be read", error.code(), place.topic, place.partition, error.str())
        rows = _rows(messages)
        offset = int(rows.column("offset")[-1].as_py()) + 1
        yield rows


def _rows(messages: list[Message]) -> pa.RecordBatch:
    columns = [
        pa.array(np.array([message.offset() for message in messages], np.int64)),
        pa.array(np.array([message.timestamp()[1] for message in messages], np.int64)),
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LOG)
