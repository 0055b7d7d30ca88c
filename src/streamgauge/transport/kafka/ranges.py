"""Ranges of offsets of a topic, read while it grows: what a system under test of ours consumes.

Over plain connections many records are read at a time; where TLS or SASL is on, librdkafka reads them one by one.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from streamgauge.transport.kafka.cluster import Cluster
from streamgauge.transport.kafka.protocol import KafkaFailure
from streamgauge.transport.kafka.unpack import decode
from streamgauge.transport.kafka.wire import SECONDS, Wire

_SIZE = 2 << 20
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
        [fetched] = self._wire.fetch(self._leaders[partition], self._topic, {partition: at}, _SIZE, _WAIT)
        read = decode(fetched.data, at)
        return read.next_offset, read.rows

    def close(self) -> None:
        """Hang up."""
        self._wire.close()


def open_ranges(cluster: Cluster, topic: str) -> Ranges:
    """A reader of this topic's ranges, kept open."""
    if cluster.plain:
        return PlainRanges(cluster, topic)
    from streamgauge.transport.kafka.confluent_reader import ConfluentRanges  # noqa: PLC0415 - librdkafka is large

    return ConfluentRanges(cluster, topic)
