"""A whole topic, read after the trial: offsets, timestamps, keys and values as columns; and where it ends now.

Over plain connections many records are read at a time; where TLS or SASL is on, librdkafka reads them one by one.
Both give the same.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from streamgauge.transport.kafka.cluster import Cluster
from streamgauge.transport.kafka.protocol import EARLIEST, KafkaFailure
from streamgauge.transport.kafka.unpack import LOG, decode
from streamgauge.transport.kafka.wire import Wire

RECORDS = pa.schema([("partition", pa.int32()), *LOG])
"""Columns of what is read. Timestamps are milliseconds since 1970: the broker's own where the topic is so set."""
_SIZE = 8 << 20


class Ends(Protocol):
    """Where a topic ends: how many records were ever appended to each partition."""

    def ask(self) -> dict[int, int]:
        """The end offsets at this moment. One small question to each broker, cheap enough for ten times a second."""

    def close(self) -> None:
        """Hang up."""


class PlainEnds:
    """Asks over plain connections that stay open."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._wire, self._topic = Wire(cluster.bootstrap), topic
        self._leaders = self._wire.leaders(topic)

    def ask(self) -> dict[int, int]:
        """The end offsets at this moment."""
        return self._wire.offsets(self._topic, self._leaders)

    def close(self) -> None:
        """Hang up."""
        self._wire.close()


def open_ends(cluster: Cluster, topic: str) -> Ends:
    """A line to ask where a topic ends, kept open."""
    if cluster.plain:
        return PlainEnds(cluster, topic)
    from streamgauge.transport.kafka.confluent_reader import ConfluentEnds  # noqa: PLC0415 - librdkafka is large

    return ConfluentEnds(cluster, topic)


def read_topic(cluster: Cluster, topic: str) -> pa.Table:
    """All records of a topic that are there now, in the order of partitions and offsets."""
    return pa.Table.from_batches(read_parts(cluster, topic), schema=RECORDS)


def read_parts(cluster: Cluster, topic: str) -> Iterator[pa.RecordBatch]:
    """The same, some megabytes at a time, each of one partition and in the order of its offsets."""
    if cluster.plain:
        return _read_plainly(cluster, topic)
    from streamgauge.transport.kafka.confluent_reader import read_singly  # noqa: PLC0415

    return read_singly(cluster, topic)


def _read_plainly(cluster: Cluster, topic: str) -> Iterator[pa.RecordBatch]:
    wire = Wire(cluster.bootstrap)
    try:
        leaders = wire.leaders(topic)
        places, ends = wire.offsets(topic, leaders, EARLIEST), wire.offsets(topic, leaders)
        for partition, node in leaders.items():
            while places[partition] < ends[partition]:
                [fetched] = wire.fetch(node, topic, {partition: places[partition]}, _SIZE)
                read = decode(fetched.data, places[partition])
                if read.next_offset <= places[partition]:
                    raise KafkaFailure(
                        f"{topic}, partition {partition}: nothing was to be had from offset {places[partition]} on, "
                        f"though the log ends at {ends[partition]}"
                    )
                places[partition] = read.next_offset
                yield of_partition(partition, read.rows)
    finally:
        wire.close()


def of_partition(partition: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Records with the number of their partition before them."""
    number = pa.array(np.full(rows.num_rows, partition, np.int32))
    return pa.RecordBatch.from_arrays([number, *rows.columns], schema=RECORDS)
