"""Topics with transactions, as exactly-once sinks write them: only what was committed is read."""

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import Producer
from kafka_broker import fresh_topic, needs_kafka, shared
from kafka_events import producing

from streamgauge.model.streams import Column, Schema, schema_of
from streamgauge.processes.clock import wait_until
from streamgauge.transports.kafka.client.confluent_reader import ConfluentRangeReader, TopicOffsets
from streamgauge.transports.kafka.client.producer import ProducerSettings, RecordColumns, TopicPartition
from streamgauge.transports.kafka.client.reader import PlainRangeReader, RangeReader, open_range_reader, read_topic
from streamgauge.transports.kafka.cluster import KafkaEndpoints
from streamgauge.transports.kafka.formats.formats import output_format
from streamgauge.transports.kafka.topics_io import TopicOutputs, TopicWriter

pytestmark = needs_kafka
PARTITIONS = 2
_FLUSH = 20.0


def values(name: str, count: int = 50) -> list[bytes]:
    """Different values."""
    return [f"{name} {number}".encode() for number in range(count)]


@contextmanager
def transactional(compression: str) -> Iterator[Producer]:
    """A producer whose transactions are open until they are committed or aborted."""
    producer = Producer(
        {
            **shared().cluster.client_settings(),
            "transactional.id": f"test-{secrets.token_hex(4)}",
            "compression.type": compression,
        }
    )
    producer.init_transactions(_FLUSH)
    yield producer
    producer.flush(_FLUSH)


def write(producer: Producer, topic: str, held: Iterable[bytes]) -> None:
    """The same values into every partition, in a new transaction."""
    producer.begin_transaction()
    for value in held:
        for partition in range(PARTITIONS):
            producer.produce(topic, value, value[:3], partition)
    assert producer.flush(_FLUSH) == 0, "aborted records are in the log too"


def committed_and_aborted(topic: str, compression: str) -> list[bytes]:
    """Write transactions of both kinds, the last one aborted. The values that were committed, of each partition."""
    with transactional(compression) as producer:
        for number in range(3):
            write(producer, topic, values(f"aborted {number}"))
            producer.abort_transaction(_FLUSH)
            write(producer, topic, values(f"committed {number}"))
            producer.commit_transaction(_FLUSH)
        write(producer, topic, values("aborted in the end"))
        producer.abort_transaction(_FLUSH)
    return [value for number in range(3) for value in values(f"committed {number}")]


def plainly(topic: str, held: list[bytes]) -> None:
    """Values of one length into every partition, without a transaction, from the producer of load drivers."""
    rows = np.frombuffer(b"".join(held), np.uint8).reshape(len(held), -1)
    part = RecordColumns(None, rows, np.zeros(len(held), np.int64))
    with producing(topic, settings=ProducerSettings()) as producer:
        producer.publish({TopicPartition(topic, partition): part for partition in range(PARTITIONS)})
        producer.flush(_FLUSH)


def read(reader: RangeReader, partition: int, start: int, stop: int) -> list[bytes]:
    """The values of a range. Offsets grow and are within it."""
    batches = list(reader.read(partition, start, stop))
    offsets = [offset for rows in batches for offset in rows.column("offset").to_pylist()]
    assert offsets == sorted({*offsets})
    assert all(start <= offset < stop for offset in offsets)
    return [value for rows in batches for value in rows.column("value").to_pylist()]


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_only_committed_records_of_a_topic_are_read(compression: str) -> None:
    topic, cluster = fresh_topic(PARTITIONS, "outputs"), shared().cluster
    before, after = [b"before %03d" % n for n in range(100)], [b"after %03d" % n for n in range(100)]
    plainly(topic, before)
    expected = before + committed_and_aborted(topic, compression)
    plainly(topic, after)
    expected += after
    table = read_topic(cluster, topic)
    assert table.column("partition").to_pylist() == [p for p in range(PARTITIONS) for _ in expected]
    assert table.column("value").to_pylist() == expected * PARTITIONS
    ends = TopicOffsets(cluster, topic).end_offsets()
    markers, aborted = 7, 200
    assert ends == dict.fromkeys(range(PARTITIONS), len(expected) + markers + aborted), "an upper bound"


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_topic_whose_log_ends_with_an_aborted_transaction_is_read_to_its_end(compression: str) -> None:
    topic = fresh_topic(PARTITIONS, "outputs")
    expected = committed_and_aborted(topic, compression)
    assert read_topic(shared().cluster, topic).column("value").to_pylist() == expected * PARTITIONS


@pytest.mark.parametrize("kind", [PlainRangeReader, ConfluentRangeReader])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_ranges_have_the_committed_records_of_their_offsets(
    compression: str, kind: type[PlainRangeReader] | type[ConfluentRangeReader]
) -> None:
    topic, cluster = fresh_topic(PARTITIONS, "outputs"), shared().cluster
    before = [b"before %03d" % n for n in range(100)]
    plainly(topic, before)
    expected = before + committed_and_aborted(topic, compression)
    ends = TopicOffsets(cluster, topic).end_offsets()
    reader = kind(cluster, topic)
    try:
        for partition, end in ends.items():
            assert read(reader, partition, 0, end) == expected
        found, at = list[bytes](), 0
        for stop in (60, 110, 151, 152, 180, 300, ends[1]):  # within and at the ends of transactions
            found += read(reader, 1, at, stop)
            at = stop
        assert found == expected
        assert read(reader, 1, 100, 150) == [], "the first transaction was aborted"
        assert read(reader, 1, 90, 160) == [*before[90:], *values("committed 0", 9)]
    finally:
        reader.close()


def test_records_of_an_open_transaction_are_not_read_yet() -> None:
    topic, cluster = fresh_topic(PARTITIONS, "outputs"), shared().cluster
    with transactional("none") as producer:
        write(producer, topic, values("committed"))
        producer.commit_transaction(_FLUSH)
        write(producer, topic, values("open"))
        assert TopicOffsets(cluster, topic).end_offsets() == {0: 51, 1: 51}
        assert read_topic(cluster, topic).column("value").to_pylist() == values("committed") * PARTITIONS
        reader = open_range_reader(cluster, topic)
        assert read(reader, 0, 0, 51) == values("committed")
        producer.commit_transaction(_FLUSH)
        offsets = TopicOffsets(cluster, topic)  # a broker may write a marker after it has responded
        assert wait_until(lambda: offsets.end_offsets() == {0: 102, 1: 102}, _FLUSH)
        assert read(reader, 0, 51, 102) == values("open")
        reader.close()
    assert len(read_topic(cluster, topic)) == 100 * PARTITIONS


SCHEMA: Schema = (Column("key", "int32"), Column("sum", "int64"))


def output_rows() -> pa.RecordBatch:
    """A hundred outputs."""
    return pa.record_batch([pa.array(np.arange(100)).cast(f.type) for f in schema_of(SCHEMA)], schema_of(SCHEMA))


def output_topic() -> KafkaEndpoints:
    """An empty topic of outputs."""
    topic = fresh_topic(PARTITIONS, "outputs")
    return KafkaEndpoints(shared().cluster, {}, topic, "binary", partitions=PARTITIONS, output_schema=SCHEMA)


def test_outputs_without_transactions_are_counted_exactly_as_soon_as_some_were_read() -> None:
    ends = output_topic()
    outputs, writer = TopicOutputs(ends, updates=False), TopicWriter(ends, schema_of(SCHEMA))
    assert outputs.status() == {"committed": 0, "exact": True}
    writer.put("q", 0, schema_of(SCHEMA), [output_rows()])
    assert outputs.status() == {"committed": 100, "exact": False}
    assert sum(found.rows.num_rows for found in outputs.poll(0)) == 100
    assert outputs.status() == {"committed": 100, "exact": True}
    writer.close()
    outputs.close()


@pytest.mark.parametrize("ending", ["committed", "aborted"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_count_of_outputs_in_transactions_is_known_to_be_an_upper_bound(compression: str, ending: str) -> None:
    ends = output_topic()
    outputs = TopicOutputs(ends, updates=False)
    held = [value.tobytes() for value in output_format("binary", schema_of(SCHEMA)).encode(output_rows())]
    with transactional(compression) as producer:
        write(producer, ends.output, held)
        producer.commit_transaction(_FLUSH)
        write(producer, ends.output, held)
        if ending == "committed":
            producer.commit_transaction(_FLUSH)
        else:
            producer.abort_transaction(_FLUSH)
    committed = PARTITIONS * len(held) * (2 if ending == "committed" else 1)
    count = {"committed": PARTITIONS * (2 * len(held) + 2), "exact": False}
    assert wait_until(lambda: outputs.status() == count, _FLUSH)  # a marker may be late
    assert sum(found.rows.num_rows for found in outputs.poll(0)) == committed
    assert not outputs.status()["exact"], "markers and aborted outputs have offsets too"
    assert sum(found.rows.num_rows for found in outputs.drain()) == committed
    outputs.close()
