"""What a system under test reads from a topic, range by range, and what it writes into one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from kafka_broker import fresh_topic, needs_kafka, shared

from streamgauge.model.streams import StreamPartition, schema_of
from streamgauge.transports.kafka.client.confluent_reader import ConfluentRangeReader
from streamgauge.transports.kafka.client.positions import PositionCommitter
from streamgauge.transports.kafka.client.producer import ProducerSettings, RecordColumns, TopicPartition, open_producer
from streamgauge.transports.kafka.client.reader import PlainRangeReader, RangeReader, read_topic
from streamgauge.transports.kafka.cluster import KafkaEndpoints
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import encode_keys, output_format
from streamgauge.transports.kafka.topics_io import TopicWriter
from streamgauge.workloads.windowed_aggregation import OUTPUT

pytestmark = needs_kafka
KINDS = [PlainRangeReader, ConfluentRangeReader]
ROWS, BATCHES = 900, 40


def values(start: int, stop: int) -> list[bytes]:
    """The values at these offsets: numbers."""
    return [b"%08d" % number for number in range(start, stop)]


def filled(partitions: int = 1, sending: ProducerSettings | None = None) -> str:
    """A topic with many batches of numbers in each partition, the partition as their key."""
    topic = fresh_topic(partitions)
    producer = open_producer(shared().cluster, [topic], time.monotonic_ns, sending)
    for batch in range(BATCHES):
        rows = np.frombuffer(b"".join(values(batch * ROWS, (batch + 1) * ROWS)), np.uint8).reshape(ROWS, 8)
        for partition in range(partitions):
            keys = encode_keys(np.full(ROWS, partition))
            producer.publish({TopicPartition(topic, partition): RecordColumns(keys, rows, np.zeros(ROWS, np.int64))})
            producer.flush(20)  # so that each of them is a separate batch
    producer.close()
    return topic


@contextmanager
def reading(kind: type[PlainRangeReader] | type[ConfluentRangeReader], topic: str) -> Iterator[RangeReader]:
    ranges = kind(shared().cluster, topic)
    try:
        yield ranges
    finally:
        ranges.close()


def read(ranges: RangeReader, start: int, stop: int, partition: int = 0) -> list[bytes]:
    """The values of a range; offsets must be those that were requested, and keys those of the partition."""
    table = pa.Table.from_batches(ranges.read(partition, start, stop))
    assert table.column("offset").to_pylist() == list(range(start, stop))
    assert set(table.column("key").to_pylist()) == {partition.to_bytes(4, "big")}
    found: list[bytes] = table.column("value").to_pylist()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_contain_what_was_produced_at_exactly_these_offsets(
    kind: type[PlainRangeReader] | type[ConfluentRangeReader],
) -> None:
    with reading(kind, filled(2)) as ranges:
        at = 0
        for stop in (1, 450, 900, 901, 4_000, 4_001, 30_000, ROWS * BATCHES):  # within, at the end of, over batches
            for partition in (0, 1):
                assert read(ranges, at, stop, partition) == values(at, stop)
            at = stop
        assert list(ranges.read(0, at, at)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_can_be_read_again_and_one_that_was_read_in_part_is_complete_the_next_time(
    kind: type[PlainRangeReader] | type[ConfluentRangeReader],
) -> None:
    with reading(kind, filled()) as ranges:
        assert read(ranges, 5_000, 7_000) == values(5_000, 7_000)
        next(iter(ranges.read(0, 7_000, 36_000)))
        assert read(ranges, 7_000, 7_500) == values(7_000, 7_500)
        assert read(ranges, 100, 7_500) == values(100, 7_500)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_compressed_is_read_as_well(kind: type[PlainRangeReader] | type[ConfluentRangeReader]) -> None:
    with reading(kind, filled(sending=ProducerSettings(compression="lz4"))) as ranges:
        assert read(ranges, 777, 7_777) == values(777, 7_777)


def test_a_reader_waits_for_records_of_a_range_that_do_not_exist_yet() -> None:
    topic, cluster = fresh_topic(), shared().cluster
    producer = open_producer(cluster, [topic], time.monotonic_ns)
    row = np.frombuffer(b"%08d" % 0, np.uint8).reshape(1, 8)
    with reading(PlainRangeReader, topic) as ranges:
        producer.publish(
            {TopicPartition(topic, 0): RecordColumns(encode_keys(np.zeros(1, np.int64)), row, np.zeros(1, np.int64))}
        )  # not acknowledged
        assert read(ranges, 0, 1) == values(0, 1)
    producer.flush(20)
    producer.close()


def test_positions_are_seen_by_any_monitor_of_the_consumer_group() -> None:
    topic, cluster = fresh_topic(2), shared().cluster
    ends = KafkaEndpoints(cluster, {"events": topic}, "", "binary", group=topic)
    group = PositionCommitter(ends)
    for at in range(1, 50):
        group.commit({StreamPartition("events", 0): at, StreamPartition("events", 1): 2 * at})
    group.close()
    monitor = Consumer({**cluster.client_settings(), "group.id": topic})
    told = monitor.committed([Place(topic, 0), Place(topic, 1)], 20)
    monitor.close()
    assert [place.offset for place in told] == [49, 98]


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_outputs_are_in_the_topic_in_the_format_of_the_trial_with_their_gem_pack_as_key(form: FormatName) -> None:
    schema, packs = schema_of(OUTPUT.schema), np.arange(200)
    columns = [pa.array(packs + number).cast(pa.int64()).cast(field.type) for number, field in enumerate(schema)]
    rows = pa.record_batch(columns, schema=schema)
    ends = KafkaEndpoints(shared().cluster, {}, fresh_topic(stream="outputs"), form, output_key="gem_pack_id")
    begun = time.time_ns() // 1_000_000
    writer = TopicWriter(ends, schema)
    assert writer.put("windowed-aggregation", 0, schema, [rows, rows.slice(0, 0), rows.slice(7, 1)]) == 201
    assert writer.status() == {"committed": 201, "waiting": 0}
    writer.close()
    log = read_topic(ends.cluster, ends.output)
    read_back = output_format(form, schema).decode(log.column("value").combine_chunks())
    assert pa.Table.from_batches([read_back]).equals(pa.Table.from_batches([rows, rows.slice(7, 1)]).combine_chunks())
    assert log.column("key").to_pylist() == [int(k).to_bytes(4, "big") for k in [*packs, 7]]
    assert min(log.column("timestamp").to_pylist()) >= begun - 1, "the broker stamps them"
