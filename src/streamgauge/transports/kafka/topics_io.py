"""The client's side of a trial on Kafka, for engines of ours: the queue's interface, with events from the topics.

Where a trial stands is asked at the drivers' doors, as on the queue: an offset of Kafka is a lane's offset, since a
partition of a trial's topic has one producer. Only the events themselves come from the broker.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamgauge.transports.kafka.client.batches import encode
from streamgauge.transports.kafka.client.decode import decode
from streamgauge.transports.kafka.client.producer import MILLI, Now, Part, Sending, open_producer
from streamgauge.transports.kafka.client.reader import Ranges, open_ranges
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.kafka.formats.formats import Format, open_format, output_format, record_keys, with_sequence
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.reader import QueueReader

if TYPE_CHECKING:
    from streamgauge.transports.kafka.client.positions import Group


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
    from streamgauge.transports.kafka.client.positions import Group  # noqa: PLC0415 - librdkafka is large

    return Group(ends)


def _practise(form: Format) -> None:
    """Write and read one row that nobody sent: what is loaded at its first use is not loaded under load."""
    one = np.ones(1, np.int64)
    numbers = [pa.array(one).cast(pa.int64()).cast(field.type) for field in form.schema]
    values = form.encode(pa.RecordBatch.from_arrays(numbers, schema=form.schema))
    form.decode(decode(encode(None, values, one).data).rows.column("value"))


class TopicWriter:
    """Writes outputs into the topic. There is nothing to commit: what is in the log counts."""

    def __init__(self, ends: KafkaEnds, schema: pa.Schema, now_ns: Now, timeout: float = 60.0) -> None:
        """``schema`` has the columns of every output; ``now_ns`` is a clock that only goes forward."""
        self._format, self._timeout = output_format(ends.format, schema), timeout
        self._producer = open_producer(ends.cluster, ends.output, now_ns, Sending().within(ends.largest))
        nothing = [pa.array(np.zeros(1, np.int64)).cast(pa.int64()).cast(field.type) for field in schema]
        part = self._part(pa.RecordBatch.from_arrays(nothing, schema=schema))
        encode(part.keys, part.values, part.due_us)  # what is loaded at its first use is loaded now

    def put(
        self,
        query: str,
        batch: int,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        partition: int = 0,
        attempt: int = 0,
        commit: bool = False,
    ) -> int:
        """Write outputs into a partition, as they are made; returns when the broker has them all. Their number.

        The rest is for the collector of a queue: an output in a topic does not say which attempt it came from.
        """
        rows = 0
        for one in batches:
            if one.num_rows:
                self._producer.publish({partition: self._part(one)})
            rows += one.num_rows
        self._producer.flush(self._timeout)
        return rows

    def _part(self, rows: pa.RecordBatch) -> Part:
        keys = record_keys(rows)
        # the broker stamps: what stands here is overwritten
        return Part(keys, self._format.encode(rows), np.zeros(rows.num_rows, np.int64))

    def status(self) -> dict[str, Any]:
        """How many outputs the broker has taken, and how many it has not confirmed yet."""
        return {"committed": sum(self._producer.acknowledged().values()), "waiting": self._producer.waiting}

    def close(self) -> None:
        """Hang up."""
        self._producer.close()

    def __enter__(self) -> "TopicWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
