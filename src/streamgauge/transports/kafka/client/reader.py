"""A whole topic, read after the trial: offsets, timestamps, keys and values as columns; and where it ends now.

Over plain connections many records are read at a time; where TLS or SASL is on, librdkafka reads them one by one.
Both give the same.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from streamgauge.transports.kafka.client.connections import SECONDS, Wire
from streamgauge.transports.kafka.client.decode import LOG, decode
from streamgauge.transports.kafka.client.protocol import EARLIEST, KafkaFailure
from streamgauge.transports.kafka.cluster import Cluster

_RANGE_SIZE = 2 << 20
"""Bytes of one answer, if a single batch is not larger: so much is read ahead of what was asked for at most."""
_WAIT = 0.5
_EMPTY = int(SECONDS / _WAIT)
"""Answers without a record after which the broker is given up."""


class Ranges(Protocol):
    """Reads the records of one topic by their offsets."""

    def read(self, partition: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The records at the offsets ``start … stop − 1``, in columns of ``records.LOG``, as they come."""

    def close(self) -> None:
        """Hang up."""


class PlainRanges:
    """Reads whole batches. What comes beyond the range that was asked for is kept for the next one."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._wire, self._topic = Wire(cluster.bootstrap), topic
        self._leaders = self._wire.leaders(topic)
        self._ahead: dict[int, tuple[int, pa.RecordBatch]] = {}
        """Records of a partition that nobody has asked for yet, and the offset after them."""

    def read(self, partition: int, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        """The records at the offsets ``start … stop − 1``."""
        at, empty = start, 0
        while at < stop:
            after, rows = self._kept(partition, at) or self._fetch(partition, at)
            empty = 0 if after > at else empty + 1
            if empty == _EMPTY:
                where = f"{self._topic}, partition {partition}"
                raise KafkaFailure(f"{where}: nothing came from offset {at} on, though it was said to reach {stop}")
            wanted = int(np.searchsorted(rows.column("offset").to_numpy(), stop))
            if wanted < rows.num_rows:
                self._ahead[partition] = (after, rows.slice(wanted))
            at = min(after, stop)
            if wanted:
                yield rows.slice(0, wanted)

    def _kept(self, partition: int, at: int) -> tuple[int, pa.RecordBatch] | None:
        """What was read before, if it begins here; else it is of no use any more."""
        kept = self._ahead.pop(partition, None)
        return kept if kept and kept[1].column("offset")[0].as_py() == at else None

    def _fetch(self, partition: int, at: int) -> tuple[int, pa.RecordBatch]:
        """Records from here on, and the offset after them. None: the broker does not show them yet."""
        [fetched] = self._wire.fetch(self._leaders[partition], self._topic, {partition: at}, _RANGE_SIZE, _WAIT)
        read = decode(fetched.data, at)
        return read.next_offset, read.rows

    def close(self) -> None:
        """Hang up."""
        self._wire.close()


def open_ranges(cluster: Cluster, topic: str) -> Ranges:
    """A reader of this topic's ranges, kept open."""
    if cluster.plain:
        return PlainRanges(cluster, topic)
    from streamgauge.transports.kafka.client.confluent_reader import ConfluentRanges  # noqa: PLC0415 - librdkafka is large

    return ConfluentRanges(cluster, topic)


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
    from streamgauge.transports.kafka.client.confluent_reader import ConfluentEnds  # noqa: PLC0415 - librdkafka is large

    return ConfluentEnds(cluster, topic)


def read_topic(cluster: Cluster, topic: str) -> pa.Table:
    """All records of a topic that are there now, in the order of partitions and offsets."""
    return pa.Table.from_batches(read_parts(cluster, topic), schema=RECORDS)


def read_parts(cluster: Cluster, topic: str) -> Iterator[pa.RecordBatch]:
    """The same, some megabytes at a time, each of one partition and in the order of its offsets."""
    if cluster.plain:
        return _read_plainly(cluster, topic)
    from streamgauge.transports.kafka.client.confluent_reader import read_singly  # noqa: PLC0415

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
