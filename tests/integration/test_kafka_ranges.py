"""What a system under test of ours reads of a topic, range by range, and what it writes into one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka_broker import fresh_topic, needs_kafka, shared

from streamgauge.transports.kafka.client.confluent_reader import ConfluentRanges
from streamgauge.transports.kafka.client.positions import Group
from streamgauge.transports.kafka.client.producer import Part, Sending, open_producer
from streamgauge.transports.kafka.client.reader import PlainRanges, Ranges, read_topic
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import keys_of, output_format
from streamgauge.transports.kafka.topics_io import TopicWriter
from streamgauge.transports.ledger import Lane
from streamgauge.transports.schemas import schema_of
from streamgauge.workloads.windowed_aggregation import OUTPUT

pytestmark = needs_kafka
KINDS = [PlainRanges, ConfluentRanges]
ROWS, BATCHES = 900, 40


def values(start: int, stop: int) -> list[bytes]:
    """The values at these offsets: numbers."""
    return [b"%08d" % number for number in range(start, stop)]


def filled(partitions: int = 1, sending: Sending | None = None) -> str:
    """A topic with many batches of numbers in each partition, the partition as their key."""
    topic = fresh_topic(partitions)
    producer = open_producer(shared().cluster, topic, time.monotonic_ns, sending)
    for batch in range(BATCHES):
        rows = np.frombuffer(b"".join(values(batch * ROWS, (batch + 1) * ROWS)), np.uint8).reshape(ROWS, 8)
        for partition in range(partitions):
            keys = keys_of(np.full(ROWS, partition))
            producer.publish({partition: Part(keys, rows, np.zeros(ROWS, np.int64))})
            producer.flush(20)  # so that each of them is a batch of its own
    producer.close()
    return topic


@contextmanager
def reading(kind: type[PlainRanges] | type[ConfluentRanges], topic: str) -> Iterator[Ranges]:
    ranges = kind(shared().cluster, topic)
    try:
        yield ranges
    finally:
        ranges.close()


def read(ranges: Ranges, start: int, stop: int, partition: int = 0) -> list[bytes]:
    """The values of a range; offsets must be those that were asked for, and keys those of the partition."""
    table = pa.Table.from_batches(ranges.read(partition, start, stop))
    assert table.column("offset").to_pylist() == list(range(start, stop))
    assert set(table.column("key").to_pylist()) == {partition.to_bytes(4, "big")}
    found: list[bytes] = table.column("value").to_pylist()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_hold_what_was_produced_at_exactly_these_offsets(
    kind: type[PlainRanges] | type[ConfluentRanges],
) -> None:
    with reading(kind, filled(2)) as ranges:
        at = 0
        for stop in (1, 450, 900, 901, 4_000, 4_001, 30_000, ROWS * BATCHES):  # within, at the end of, over batches
            for partition in (0, 1):
                assert read(ranges, at, stop, partition) == values(at, stop)
            at = stop
        assert list(ranges.read(0, at, at)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_can_be_read_again_and_one_that_was_broken_off_is_whole_the_next_time(
    kind: type[PlainRanges] | type[ConfluentRanges],
) -> None:
    with reading(kind, filled()) as ranges:
        assert read(ranges, 5_000, 7_000) == values(5_000, 7_000)
        next(iter(ranges.read(0, 7_000, 36_000)))
        assert read(ranges, 7_000, 7_500) == values(7_000, 7_500)
        assert read(ranges, 100, 7_500) == values(100, 7_500)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_compressed_is_read_as_well(kind: type[PlainRanges] | type[ConfluentRanges]) -> None:
    with reading(kind, filled(sending=Sending(compression="lz4"))) as ranges:
        assert read(ranges, 777, 7_777) == values(777, 7_777)


def test_a_range_of_records_that_are_not_there_yet_is_waited_for() -> None:
    topic, cluster = fresh_topic(), shared().cluster
    producer = open_producer(cluster, topic, time.monotonic_ns)
    row = np.frombuffer(b"%08d" % 0, np.uint8).reshape(1, 8)
    with reading(PlainRanges, topic) as ranges:
        producer.publish({0: Part(keys_of(np.zeros(1, np.int64)), row, np.zeros(1, np.int64))})  # not acknowledged
        assert read(ranges, 0, 1) == values(0, 1)
    producer.flush(20)
    producer.close()


def test_positions_are_seen_by_any_monitor_of_the_consumer_group() -> None:
    topic, cluster = fresh_topic(2), shared().cluster
    ends = KafkaEnds(cluster, {"events": topic}, "", "binary", group=topic)
    group = Group(ends)
    for at in range(1, 50):
        group.commit({Lane("events", 0): at, Lane("events", 1): 2 * at})
    group.close()
    monitor = Consumer({**cluster.client_settings(), "group.id": topic})
    told = monitor.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], 20)
    monitor.close()
    assert [place.offset for place in told] == [49, 98]


@pytest.mark.parametrize("form", ["binary", "json", "avro"])
def test_outputs_stand_in_the_topic_in_the_format_of_the_trial_with_their_gem_pack_as_key(form: FormatName) -> None:
    schema, packs = schema_of(OUTPUT.schema), np.arange(200)
    columns = [pa.array(packs + number).cast(pa.int64()).cast(field.type) for number, field in enumerate(schema)]
    rows = pa.record_batch(columns, schema=schema)
    ends = KafkaEnds(shared().cluster, {}, fresh_topic(stream="outputs"), form)
    begun = time.time_ns() // 1_000_000
    with TopicWriter(ends, schema, time.monotonic_ns) as writer:
        assert writer.put("windowed-aggregation", 0, schema, [rows, rows.slice(0, 0), rows.slice(7, 1)]) == 201
        assert writer.status() == {"committed": 201, "waiting": 0}
    log = read_topic(ends.cluster, ends.output)
    read_back = output_format(form, schema).decode(log.column("value").combine_chunks())
    assert pa.Table.from_batches([read_back]).equals(pa.Table.from_batches([rows, rows.slice(7, 1)]).combine_chunks())
    assert log.column("key").to_pylist() == [int(k).to_bytes(4, "big") for k in [*packs, 7]]
    assert min(log.column("timestamp").to_pylist()) >= begun - 1, "the broker stamps what its producer left open"
