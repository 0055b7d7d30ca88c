"""The publisher of a load driver on Kafka: events become records, and one producer sends those of all streams."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from streamgauge.model.streams import StreamPartition, schema_of
from streamgauge.model.units import SECOND
from streamgauge.transports.contract import BatchSource, DriverShare, Json, PartitionSource, Parts
from streamgauge.transports.kafka.client.producer import (
    DeliveryReport,
    RecordColumns,
    TopicPartition,
    open_producer,
)
from streamgauge.transports.kafka.clock_offset import MILLI, ClockOffset
from streamgauge.transports.kafka.cluster import KafkaEndpoints
from streamgauge.transports.kafka.formats.formats import (
    Format,
    open_format,
    record_keys,
    with_sequence,
    with_sequence_numbers,
)
from streamgauge.transports.kafka.ledger import EncodedEvents, KafkaLedger
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.ledger import Confirmation

DUE = "due"
CLOSE_DELAY = SECOND // 4
"""Positions come through the controller, which requests them from the engine ten times a second."""


@dataclass(frozen=True, slots=True)
class EncodingSource:
    """Makes events as the bytes of records, numbered as in their stream."""

    source: PartitionSource
    format: Format
    key: str | None

    def batch(self, partition: int, start: int, stop: int) -> EncodedEvents:
        """The events at the offsets ``start … stop − 1`` of a partition."""
        source = self.source
        rows = source.batch(partition, start, stop)
        first = start * source.partitions + partition
        values = self.format.encode(with_sequence_numbers(rows, first, source.partitions))
        return EncodedEvents(
            RecordColumns(record_keys(rows, self.key), values, rows.column(DUE).view(pa.int64()).to_numpy())
        )


class KafkaPublisher:
    """Through a producer into the topics of the trial. Whatever fails there is raised, and ends the load driver."""

    close_delay_ns = CLOSE_DELAY

    def __init__(self, endpoints: KafkaEndpoints, options: KafkaOptions, share: DriverShare) -> None:
        self.ledger = KafkaLedger(share.partitions, share.bound_events, share.bound_bytes)
        self._lock, self._now = share.lock, share.monotonic_ns
        settings = options.producer_settings.within(endpoints.largest)
        self._timeout = settings.timeout
        self._topics = {
            each: TopicPartition(endpoints.inputs[each.stream], each.partition) for each in share.partitions
        }
        self._streams = {topic: partition for partition, topic in self._topics.items()}
        names = list(dict.fromkeys(topic.topic for topic in self._topics.values()))
        self._producer = open_producer(
            endpoints.cluster, names, share.monotonic_ns, settings, options.requested_producer
        )
        self._formats = {
            stream.name: open_format(endpoints.format, with_sequence(schema_of(stream.schema)))
            for stream in share.streams
        }
        self._keys = {stream.name: stream.key for stream in share.streams}
        self._start = self._wall = 0
        self._offset = ClockOffset()
        self._sent: dict[StreamPartition, deque[tuple[int, int]]] = {each: deque() for each in share.partitions}
        """Of each partition the send intervals that are not confirmed whole: until when they are due, and how many
        events are left."""
        self._counted: dict[StreamPartition, int] = dict.fromkeys(share.partitions, 0)

    def encode(self, source: PartitionSource) -> BatchSource:
        """As bytes, made ahead of time."""
        return EncodingSource(source, self._formats[source.name], self._keys[source.name])

    def publish(self, parts: Parts, until_us: int) -> bool:
        """Hand the events of a send interval to the producer, and collect what the broker has confirmed meanwhile."""
        with self._lock:
            if not self.ledger.record_sent(parts, until_us):
                return False
        records: dict[TopicPartition, RecordColumns] = {}
        for partition, events in parts:
            if not events.num_rows:
                continue
            self._sent[partition].append((until_us, events.num_rows))
            topic = self._topics[partition]
            if topic in records:  # events of one send interval that were made in two pieces
                self._producer.publish(records)
                records = {}
            records[topic] = events.records
        if records:
            self._producer.publish(records)
        self._collect_acks()
        return True

    def wait(self, seconds: float) -> None:
        """Send and receive, until something is confirmed or the time is over."""
        self._producer.poll(seconds)
        self._collect_acks()

    def flush(self) -> None:
        """Return when the broker has confirmed everything."""
        self._producer.flush(self._timeout / SECOND)
        self._collect_acks()

    def _collect_acks(self) -> None:
        confirmed = list[tuple[int, int, int]]()
        for report in self._producer.take_delivery_reports():
            partition = self._streams[TopicPartition(report.topic, report.partition)]
            confirmed += self._confirmed(partition, report.rows, self._appended(report))
        acknowledged = self._producer.acknowledged()
        counts = {partition: acknowledged[topic] for topic, partition in self._streams.items()}
        for partition, count in counts.items():  # a producer without delivery reports
            confirmed += self._confirmed(partition, count - self._counted[partition], self._now() - self._start)
        with self._lock:
            self.ledger.record_appended(counts)
            now = self._now() - self._start  # under the lock: a second that is closed gets nothing any more
            self.ledger.confirmations += [Confirmation(intended, at, now, rows) for intended, at, rows in confirmed]

    def _appended(self, report: DeliveryReport) -> int:
        """When the broker appended a batch, since the load began. Its stamp cannot be before the batch was sent or
        after it was acknowledged, whatever its clock shows."""
        ahead = self._wall - self._start
        sent, acknowledged = report.sent_ns + ahead, report.acknowledged_ns + ahead
        self._offset.add(report.appended_ms, sent, acknowledged)
        stamp = report.appended_ms * MILLI if report.appended_ms >= 0 else acknowledged
        return min(max(stamp, sent), acknowledged) - self._wall

    def _confirmed(self, partition: StreamPartition, rows: int, appended: int) -> Iterator[tuple[int, int, int]]:
        """The oldest events of a partition are in the log: for each of their send intervals its moment, when, how
        many."""
        waiting = self._sent[partition]
        self._counted[partition] += rows
        while rows > 0 and waiting:
            until, left = waiting.popleft()
            taken = min(rows, left)
            if left > taken:
                waiting.appendleft((until, left - taken))
            rows -= taken
            yield until * 1_000 - self._wall // 1_000 * 1_000, appended, taken

    def take_confirmations(self) -> tuple[list[Confirmation], int]:
        """What the broker has confirmed, and the largest skew of partitions."""
        skew, self.ledger.skew_us = self.ledger.skew_us, 0
        return self.ledger.take_confirmations(), skew * 1_000

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """The wall clock of due times."""
        self._start, self._wall = start_ns, wall_ns

    def status(self) -> Json:
        """What was sent, and how far the clock of the broker is from this one."""
        return {"sent": self.ledger.sent, "clock": self._offset.bounds()}

    def close(self) -> None:
        """Close the connections."""
        self._producer.close()
