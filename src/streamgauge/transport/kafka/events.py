"""The client's side of a trial on Kafka, for engines of ours: the queue's interface, with events from the topics.

Where a trial stands is asked at the drivers' doors, as on the queue: an offset of Kafka is a lane's offset, since a
partition of a trial's topic has one producer. Only the events themselves come from the broker.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamgauge.transport.books import Lane
from streamgauge.transport.kafka.ends import KafkaEnds
from streamgauge.transport.kafka.formats import Format, open_format, with_sequence
from streamgauge.transport.kafka.producer import MILLI
from streamgauge.transport.kafka.ranges import Ranges, open_ranges
from streamgauge.transport.kafka.records import encode
from streamgauge.transport.kafka.unpack import decode
from streamgauge.transport.queue_reader import QueueReader

if TYPE_CHECKING:
    from streamgauge.transport.kafka.group import Group


class EventReader(QueueReader):
    """Cuts and acknowledges at the drivers' doors, reads from the topics."""

    def __init__(self, endpoints: Sequence[str], token: str, ends: KafkaEnds, timeout: float = 60.0) -> None:
        """``endpoints`` are the drivers' doors."""
        super().__init__(endpoints, token, timeout)
        self._group = _open_group(ends) if ends.group else None
        self._topics: dict[str, tuple[Ranges, Format, pa.Schema]] = {}
        for stream, topic in ends.inputs.items():
            schema = self.schema(stream)
            form = open_format(ends.format, with_sequence(schema))
            _practise(form)
            self._topics[stream] = (open_ranges(ends.cluster, topic), form, schema)

    def read(self, lane: Lane, start: int, stop: int) -> pa.RecordBatchReader:
        """The events ``start … stop − 1`` of a lane, as they come, in the columns that the queue has."""
        return pa.RecordBatchReader.from_batches(
            self._topics[lane.stream][2], (rows for rows, _ in self.stamped(lane, start, stop))
        )

    def stamped(self, lane: Lane, start: int, stop: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The same, with the moment at which the broker appended them: LogAppendTime, as µs since 1970."""
        ranges, form, schema = self._topics[lane.stream]
        for records in ranges.read(lane.partition, start, stop):
            events = form.decode(records.column("value")).select(schema.names)
            stamps = records.column("timestamp").to_numpy()
            edges = [0, *(np.flatnonzero(np.diff(stamps)) + 1).tolist(), len(stamps)]
            for first, end in pairwise(edges):
                yield events.slice(first, end - first), int(stamps[first]) * MILLI

    def acknowledge(self, offsets: Mapping[Lane, int]) -> None:
        """Done with everything below these offsets; the group of the trial is told too, where there is one."""
        super().acknowledge(offsets)
        if self._group is not None:
            self._group.commit(offsets)

    def close(self) -> None:
        """Hang up everywhere."""
        if self._group is not None:
            self._group.close()
        for ranges, _, _ in self._topics.values():
            ranges.close()
        super().close()


def _open_group(ends: KafkaEnds) -> "Group":
    from streamgauge.transport.kafka.group import Group  # noqa: PLC0415 - librdkafka is large

    return Group(ends)


def _practise(form: Format) -> None:
    """Write and read one row that nobody sent: what is loaded at its first use is not loaded under load."""
    one = np.ones(1, np.int64)
    numbers = [pa.array(one).cast(pa.int64()).cast(field.type) for field in form.schema]
    values = form.encode(pa.RecordBatch.from_arrays(numbers, schema=form.schema))
    form.decode(decode(encode(None, values, one).data).rows.column("value"))
