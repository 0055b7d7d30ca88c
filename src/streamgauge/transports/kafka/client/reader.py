"""Records of a topic, by their offsets or all of them: offsets, timestamps, keys and values as columns.

Over plaintext connections many records are read at a time. librdkafka reads single records; it reads everything else:
over TLS and SASL, and each partition from its first batch on that is compressed or part of a transaction. Of
transactions it returns only committed records (``read_committed``). Both return the same.
"""

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.connections import SECONDS, BrokerConnections
from streamgauge.transports.kafka.client.decode import LOG, decode
from streamgauge.transports.kafka.cluster import Cluster

_RANGE_SIZE, _TOPIC_SIZE = 2 << 20, 8 << 20
"""Bytes of a response if no single batch is larger. For ranges it is also what is read ahead at most."""
_WAIT = 0.5
_MAX_EMPTY = int(SECONDS / _WAIT)
"""Responses without a record after which reading fails."""


class RangeReader(Protocol):
    """Reads the records of one topic by their offsets."""

    def read(self, partition: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The committed records at the offsets ``start … stop − 1``, in columns of ``LOG``, as they arrive.

        They may be fewer than the offsets: aborted records and the markers of transactions have offsets too.
        """

    def close(self) -> None:
        """Close the connections."""


class PlainRangeReader:
    """Reads whole batches, and keeps those beyond the range for the next one."""

    def __init__(self, cluster: Cluster, topic: str, size: int = _RANGE_SIZE) -> None:
        """``size`` is the size of a response in bytes."""
        self._cluster, self._topic, self._size = cluster, topic, size
        self._brokers = BrokerConnections(cluster.bootstrap)
        self._leaders = self._brokers.leaders(topic)
        self._buffered: dict[int, tuple[int, pa.RecordBatch]] = {}
        """Records of a partition beyond the last range, and the offset after them."""
        self._librdkafka: RangeReader | None = None
        self._switched: set[int] = set()
        """Partitions with compressed or transactional batches."""

    def read(self, partition: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The committed records at the offsets ``start … stop − 1``."""
        at, empty = start, 0
        while at < stop:
            found = self._take_buffered(partition, at) or self._fetch(partition, at)
            if found is None:
                yield from self._with_librdkafka().read(partition, at, stop)
                return
            after, rows = found
            empty = 0 if after > at else empty + 1
            if empty == _MAX_EMPTY:
                where = f"{self._topic}, partition {partition}"
                raise TransportError(f"{where}: no records arrived from offset {at} on, though the log reaches {stop}")
            wanted = int(np.searchsorted(rows.column("offset").to_numpy(), stop))
            if wanted < rows.num_rows:
                self._buffered[partition] = (after, rows.slice(wanted))
            at = min(after, stop)
            if wanted:
                yield rows.slice(0, wanted)

    def _take_buffered(self, partition: int, at: int) -> tuple[int, pa.RecordBatch] | None:
        """Records that were read before, if they begin here; otherwise they are dropped."""
        buffered = self._buffered.pop(partition, None)
        return buffered if buffered and buffered[1].column("offset")[0].as_py() == at else None

    def _fetch(self, partition: int, at: int) -> tuple[int, pa.RecordBatch] | None:
        """Records from here on, and the offset after them; none if the broker has none yet.

        None: only librdkafka can read the next batch of the partition.
        """
        if partition in self._switched:
            return None
        node = self._leaders[partition]
        [fetched] = self._brokers.fetch(node, self._topic, {partition: at}, self._size, _WAIT)
        decoded = decode(fetched.data, at)
        if decoded.needs_librdkafka:
            self._switched.add(partition)
            if decoded.next_offset == at:
                return None
        return decoded.next_offset, decoded.rows

    def _with_librdkafka(self) -> RangeReader:
        if self._librdkafka is None:
            self._librdkafka = _open_confluent(self._cluster, self._topic)
        return self._librdkafka

    def close(self) -> None:
        """Close the connections."""
        self._brokers.close()
        if self._librdkafka is not None:
            self._librdkafka.close()


def _open_confluent(cluster: Cluster, topic: str) -> RangeReader:
    from streamgauge.transports.kafka.client.confluent_reader import ConfluentRangeReader  # noqa: PLC0415 - librdkafka is large

    return ConfluentRangeReader(cluster, topic)


def open_range_reader(cluster: Cluster, topic: str) -> RangeReader:
    """A reader of ranges of this topic. Its connections stay open."""
    return PlainRangeReader(cluster, topic) if cluster.plaintext else _open_confluent(cluster, topic)


def _open_topic_reader(cluster: Cluster, topic: str) -> RangeReader:
    return PlainRangeReader(cluster, topic, _TOPIC_SIZE) if cluster.plaintext else _open_confluent(cluster, topic)


RECORDS = pa.schema([("partition", pa.int32()), *LOG])
"""Columns of whole topics. Timestamps are milliseconds since 1970: the broker's if the topic is so configured."""


def read_topic(cluster: Cluster, topic: str) -> pa.Table:
    """All committed records that a topic has now, in the order of partitions and offsets."""
    return pa.Table.from_batches(read_batches(cluster, topic), schema=RECORDS)


def read_batches(
    cluster: Cluster, topic: str, open_reader: Callable[[Cluster, str], RangeReader] = _open_topic_reader
) -> Iterator[pa.RecordBatch]:
    """The same, some megabytes at a time, each of one partition and in the order of its offsets."""
    from streamgauge.transports.kafka.client.confluent_reader import TopicOffsets  # noqa: PLC0415 - librdkafka is large

    offsets = TopicOffsets(cluster, topic)
    ends = offsets.end_offsets()
    for partition, begin in offsets.begin_offsets().items():
        if begin >= ends[partition]:
            continue
        reader = open_reader(cluster, topic)  # one for each partition, so that none keeps the records of another
        try:
            for rows in reader.read(partition, begin, ends[partition]):
                yield with_partition(partition, rows)
        finally:
            reader.close()


def with_partition(partition: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Records with the number of their partition as the first column."""
    number = pa.array(np.full(rows.num_rows, partition, np.int32))
    return pa.RecordBatch.from_arrays([number, *rows.columns], schema=RECORDS)
