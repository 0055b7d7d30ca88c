"""The topics of a trial: an engine reads events and writes outputs, the collector reads outputs."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamgauge.model.streams import StreamPartition, schema_of
from streamgauge.processes.clock import sleep
from streamgauge.transports.contract import Available, Json, OutputRows, OutputsUnreadable
from streamgauge.transports.kafka.client.batches import encode
from streamgauge.transports.kafka.client.confluent_reader import TopicOffsets
from streamgauge.transports.kafka.client.decode import decode
from streamgauge.transports.kafka.client.producer import (
    MILLI,
    ProducerSettings,
    RecordColumns,
    TopicPartition,
    open_producer,
)
from streamgauge.transports.kafka.client.reader import RangeReader, open_range_reader, read_batches
from streamgauge.transports.kafka.cluster import KafkaEndpoints
from streamgauge.transports.kafka.formats.columns import FormatError
from streamgauge.transports.kafka.formats.formats import (
    Format,
    open_format,
    output_format,
    record_keys,
    with_sequence,
)

if TYPE_CHECKING:
    from streamgauge.transports.kafka.client.positions import PositionCommitter

OUTPUTS = "outputs"
_SAMPLE = 5_000
"""Outputs that are read in a second at most while the load lasts."""
_SAMPLE_INTERVAL = 1.0
_AVAILABLE_INTERVAL = 0.01
"""Seconds between two requests for the ends of topics: an engine without micro-batches requests them all the time."""


class KafkaEventReader:
    """Reads the events of the topics. What is available is what the topics have."""

    acknowledges = False

    def __init__(self, endpoints: KafkaEndpoints) -> None:
        self._committer = _open_committer(endpoints) if endpoints.group else None
        self._topics: dict[str, tuple[RangeReader, TopicOffsets, Format, pa.Schema]] = {}
        for stream, topic in endpoints.inputs.items():
            schema = schema_of(endpoints.schemas[stream])
            form = open_format(endpoints.format, with_sequence(schema))
            _warm_up(form)
            offsets = TopicOffsets(endpoints.cluster, topic)
            self._topics[stream] = (open_range_reader(endpoints.cluster, topic), offsets, form, schema)
        self._done: dict[StreamPartition, int] = {}
        self._last_due: dict[StreamPartition, int] = {}
        self._ends: dict[StreamPartition, int] = {}
        self._asked = 0.0

    def available(self, most: int | None = None) -> Available:
        """What the topics have now; with ``most`` about so many events that are not acknowledged, evenly."""
        now = time.monotonic()
        if now - self._asked >= _AVAILABLE_INTERVAL:
            self._asked = now
            for stream, (_, offsets, _, _) in self._topics.items():
                self._ends |= {StreamPartition(stream, p): end for p, end in offsets.end_offsets().items()}
        starts = {each: self._done.get(each, 0) for each in self._ends}
        if most is None:
            return Available(dict(self._ends), starts)
        each_most = max(1, most // max(1, len(self._ends)))
        return Available({each: min(end, starts[each] + each_most) for each, end in self._ends.items()}, starts)

    def read(self, partition: StreamPartition, start: int, stop: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The events of a range with the moment at which the broker appended them (LogAppendTime)."""
        reader, _, form, schema = self._topics[partition.stream]
        for records in reader.read(partition.partition, start, stop):
            events = form.decode(records.column("value")).select(schema.names)
            stamps = records.column("timestamp").to_numpy()
            self._last_due[partition] = events.column("due")[-1].cast(pa.int64()).as_py()
            edges = [0, *(np.flatnonzero(np.diff(stamps)) + 1).tolist(), len(stamps)]
            for first, end in pairwise(edges):
                yield events.slice(first, end - first), int(stamps[first]) * MILLI

    def complete_until(self, available: Available) -> int | None:
        """Events of a partition are in order, so everything before the earliest of the last ones was read."""
        if any(each not in self._last_due for each in available.offsets):
            return None
        return min(self._last_due.values(), default=None)

    def acknowledge(self, offsets: Mapping[StreamPartition, int]) -> None:
        """Everything below these offsets is finished; the group of the trial shows it, if there is one."""
        self._done |= offsets
        if self._committer is not None:
            self._committer.commit(offsets)

    def disconnect(self, partition: StreamPartition, start: int, stop: int) -> None:
        """A consumer of Kafka that leaves a partition unread is not noticed: only the lag shows it."""

    def close(self) -> None:
        """Close all connections."""
        if self._committer is not None:
            self._committer.close()
        for reader, _, _, _ in self._topics.values():
            reader.close()


def _open_committer(endpoints: KafkaEndpoints) -> "PositionCommitter":
    from streamgauge.transports.kafka.client.positions import PositionCommitter  # noqa: PLC0415 - librdkafka is large

    return PositionCommitter(endpoints)


def _warm_up(form: Format) -> None:
    """Write and read one row that is never sent: what is loaded at its first use is not loaded under load."""
    values = form.encode(_made_up(form.schema))
    form.decode(decode(encode(None, values, np.ones(1, np.int64)).data).rows.column("value"))


def _made_up(schema: pa.Schema) -> pa.RecordBatch:
    one = pa.array(np.ones(1, np.int64))
    columns = [one.cast(f.type) if not pa.types.is_string(f.type) else pa.array(["1"]) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class TopicWriter:
    """Writes outputs into the topic. There is nothing to commit: what is in the log counts."""

    def __init__(self, endpoints: KafkaEndpoints, schema: pa.Schema, timeout: float = 60.0) -> None:
        """``schema`` has the columns of every output."""
        self._format, self._timeout = output_format(endpoints.format, schema), timeout
        self._topic, self._key = endpoints.output, endpoints.output_key
        settings = ProducerSettings().within(endpoints.largest)
        self._producer = open_producer(endpoints.cluster, [endpoints.output], time.monotonic_ns, settings)
        made_up = self._records(_made_up(schema))
        encode(made_up.keys, made_up.values, made_up.due_us)  # what is loaded at its first use is loaded now

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

        The rest is for the collector of a queue: an output in a topic does not show which attempt it came from.
        """
        rows = 0
        for one in batches:
            if one.num_rows:
                self._producer.publish({TopicPartition(self._topic, partition): self._records(one)})
            rows += one.num_rows
        self._producer.flush(self._timeout)
        return rows

    def _records(self, rows: pa.RecordBatch) -> RecordColumns:
        # the broker stamps: these times are overwritten
        return RecordColumns(record_keys(rows, self._key), self._format.encode(rows), np.zeros(rows.num_rows, np.int64))

    def status(self) -> Json:
        """How many outputs the broker has, and how many it has not confirmed yet."""
        committed = sum(self._producer.acknowledged().values())
        return {"committed": committed, "waiting": self._producer.unacknowledged}

    def close(self) -> None:
        """Close the connections."""
        self._producer.close()


class TopicOutputs:
    """The outputs of a trial, read back from their topic: a sample while the load lasts, everything after it.

    So nothing competes with the load. An output was emitted when the broker appended it (LogAppendTime).
    """

    final = False

    def __init__(self, endpoints: KafkaEndpoints, updates: bool) -> None:
        """``updates``: a window may be emitted many times, and once in a second counts as one window result."""
        self._endpoints, self._updates, self._wall_us = endpoints, updates, 0
        self._format = output_format(endpoints.format, schema_of(endpoints.output_schema))
        self._offsets = TopicOffsets(endpoints.cluster, endpoints.output)
        self._ranges = open_range_reader(endpoints.cluster, endpoints.output)
        self._seen = dict.fromkeys(self._offsets.end_offsets(), 0)
        self._sampled, self._gaps = False, False
        """Whether outputs were read, and whether there were offsets without one among them."""
        self._next = time.monotonic()

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """When the load begins."""
        self._wall_us = wall_ns // 1_000

    def set_schema(self, schema: pa.Schema) -> None:
        """The columns of a user's function are known when it starts."""
        self._format = output_format(self._endpoints.format, schema)

    def poll(self, seconds: float) -> Sequence[OutputRows]:
        """Once a second, a sample of the newest outputs."""
        if time.monotonic() < self._next:
            sleep(seconds)
            return ()
        self._next = time.monotonic() + _SAMPLE_INTERVAL
        ends = self._offsets.end_offsets()
        found = list[OutputRows]()
        for partition, end in ends.items():
            fresh = end - self._seen[partition]
            first = max(self._seen[partition], end - _SAMPLE // len(ends))
            self._seen[partition] = end
            rows = [self._rows(records) for records in self._ranges.read(partition, first, end)]
            self._sampled = self._sampled or end > first
            self._gaps = self._gaps or sum(map(len, rows)) < end - first
            if rows:
                table = pa.concat_tables(rows)
                found.append(OutputRows(OUTPUTS, table, max(0, fresh - len(table))))
        return found

    def drain(self) -> Iterator[OutputRows]:
        """The whole topic."""
        for records in read_batches(self._endpoints.cluster, self._endpoints.output):
            yield OutputRows(OUTPUTS, self._rows(records))

    def _rows(self, records: pa.RecordBatch) -> pa.Table:
        """Outputs as they are stored: with the moment of the broker's clock, and the number of their batch."""
        try:
            rows = pa.Table.from_batches([self._format.decode(records.column("value"))])
        except FormatError as error:
            raise OutputsUnreadable(f"its outputs cannot be read as {self._endpoints.format}: {error}") from error
        emitted = records.column("timestamp").to_numpy().astype(np.int64) * MILLI
        # no batch is known here: a window is emitted once, or, if it may be emitted many times, once in a second
        batch = (emitted - self._wall_us) // 1_000_000 if self._updates else np.zeros(len(emitted), np.int64)
        return rows.append_column("emitted_us", pa.array(emitted)).append_column("batch", pa.array(batch))

    def behind(self) -> int:
        """Outputs wait in their topic."""
        return 0

    def status(self) -> Json:
        """How many outputs the topic has: exactly, unless they are written in transactions.

        A transaction ends with a marker, which has an offset too. So a sample of the newest offsets has a gap then.
        """
        committed = sum(self._offsets.end_offsets().values())
        return {"committed": committed, "exact": not self._gaps and (self._sampled or not committed)}

    def close(self) -> None:
        """Close the connections."""
        self._ranges.close()
