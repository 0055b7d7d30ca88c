"""Events into a real topic and back: both producers write the same, both readers read it."""

import socket
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka_broker import fresh_topic, needs_kafka, shared
from kafka_events import KINDS, ORIGIN, PARTITIONS, by_partition, producing, send, source, ticks

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.confluent_reader import ConfluentRangeReader, TopicOffsets
from streamgauge.transports.kafka.client.producer import ProducerSettings, RecordColumns, TopicPartition
from streamgauge.transports.kafka.client.protocol import BrokerUnreachable
from streamgauge.transports.kafka.client.reader import (
    RECORDS,
    PlainRangeReader,
    open_range_reader,
    read_batches,
    read_topic,
)
from streamgauge.transports.kafka.client.vectorised import VectorisedProducer
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import open_format, with_sequence, with_sequence_numbers

pytestmark = needs_kafka
CREATE_TIME = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**62)}


def create_time(partitions: int = PARTITIONS) -> str:
    """A topic whose records keep the timestamps that their producer gave them."""
    return fresh_topic(partitions, settings=CREATE_TIME)


@pytest.mark.parametrize("form", ["json", "binary", "avro"])
def test_both_producers_put_the_same_records_into_the_log(form: FormatName) -> None:
    logs = []
    for kind in KINDS:
        topic = create_time()
        with producing(topic, kind) as producer:
            send(producer, ticks(topic, 700, 5, form))
            assert (by_partition(producer, topic), producer.unacknowledged) == ({0: 3500, 1: 3500, 2: 3500}, 0)
        ends = TopicOffsets(shared().cluster, topic).end_offsets()
        assert ends == {0: 3500, 1: 3500, 2: 3500}, "as many are stored as were sent and acknowledged"
        logs.append(read_topic(shared().cluster, topic))
    assert logs[0].equals(logs[1])
    for partition in range(PARTITIONS):
        log = logs[0].filter(pc.equal(logs[0].column("partition"), partition))
        made = source().batch(partition, 0, 3500)
        events = open_format(form, with_sequence(made.schema)).decode(log.column("value").combine_chunks())
        assert events.equals(with_sequence_numbers(made, partition, PARTITIONS))
        due_ms = made.column("due").view(pa.int64()).to_numpy() // 1000
        assert log.column("timestamp").to_numpy().tolist() == due_ms.tolist()
        assert log.column("offset").to_numpy().tolist() == list(range(3500))


def test_both_readers_read_the_same_records_of_all_producers_and_compressions() -> None:
    topic, cluster = create_time(), shared().cluster
    rng = np.random.default_rng(5)
    for number, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        with producing(topic, "confluent", ProducerSettings(compression=compression)) as producer:  # type: ignore[arg-type]
            for tick in range(30):  # records of many widths, one without a key
                due = np.arange(20) + ORIGIN // 1000
                values = rng.integers(0, 40, (20, int(rng.integers(0, 150))), np.uint8)
                keys = None if tick % 3 == 0 else rng.integers(0, 256, (20, tick), np.uint8)
                place = TopicPartition(topic, number % PARTITIONS)
                producer.publish({place: RecordColumns(keys, values, due)})
            producer.flush(20)
    with producing(topic) as producer:
        send(producer, ticks(topic, 100, 2))
    plainly = read_topic(cluster, topic)
    singly = pa.Table.from_batches(read_batches(cluster, topic, ConfluentRangeReader), schema=RECORDS)
    assert plainly.num_rows == 5 * 600 + 600
    assert plainly.equals(singly)
    assert TopicOffsets(cluster, topic).begin_offsets() == {0: 0, 1: 0, 2: 0}
    assert TopicOffsets(cluster, topic).end_offsets() == {0: 1400, 1: 1400, 2: 800}


def test_an_empty_topic_reads_as_nothing() -> None:
    topic, cluster = fresh_topic(2), shared().cluster
    assert read_topic(cluster, topic).num_rows == 0
    assert list(read_batches(cluster, topic, ConfluentRangeReader)) == []


def test_delivery_reports_contain_the_moment_of_the_broker_that_readers_read() -> None:
    topic = fresh_topic(PARTITIONS)
    before = time.time_ns() // 1_000_000
    producer = VectorisedProducer(shared().cluster, [topic], time.monotonic_ns, ProducerSettings())
    send(producer, ticks(topic, 500, 4))
    receipts = producer.take_delivery_reports()
    producer.close()
    assert sum(receipt.rows for receipt in receipts) == 6000
    assert all(0 < receipt.sent_ns <= receipt.acknowledged_ns for receipt in receipts)
    log = read_topic(shared().cluster, topic)
    for receipt in receipts:
        mine = pc.and_(
            pc.equal(log.column("partition"), receipt.partition),
            pc.and_(
                pc.greater_equal(log.column("offset"), receipt.offset),
                pc.less(log.column("offset"), receipt.offset + receipt.rows),
            ),
        )
        assert set(log.filter(mine).column("timestamp").to_pylist()) == {receipt.appended_ms}
        assert before <= receipt.appended_ms <= time.time_ns() // 1_000_000


def test_an_address_without_a_broker_is_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = Cluster(f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(BrokerUnreachable, match=r"the broker at 127\.0\.0\.1:\d+ cannot be reached: .*refused"):
            open_range_reader(nobody, "x")
    with pytest.raises(TransportError, match="'nowhere' is not the address of a broker"):
        open_range_reader(Cluster("nowhere"), "x")


def test_a_server_that_is_no_broker_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for words in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""):
                connection, _ = server.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(words)

        threading.Thread(target=answer, daemon=True).start()
        cluster = Cluster(f"127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(BrokerUnreachable, match="is no Kafka broker"):
            PlainRangeReader(cluster, "x")
        with pytest.raises(BrokerUnreachable, match="has closed the connection"):
            PlainRangeReader(cluster, "x")


def test_a_request_for_the_end_of_a_topic_costs_little_time() -> None:
    offsets = TopicOffsets(shared().cluster, fresh_topic(PARTITIONS))
    offsets.end_offsets()
    began = time.process_time()
    for _ in range(50):
        assert offsets.end_offsets() == {0: 0, 1: 0, 2: 0}
    assert (time.process_time() - began) / 50 < 0.005, "ten times a second must be below 5 % of a core"
