"""Events into a real topic and back: both producers write the same, both readers read it."""

import socket
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka_broker import administration, fresh_topic, needs_kafka, shared
from kafka_events import KINDS, ORIGIN, PARTITIONS, producing, send, source, ticks

from streamgauge.transports.kafka.client.confluent_reader import ConfluentEnds, read_singly
from streamgauge.transports.kafka.client.producer import Part, Sending
from streamgauge.transports.kafka.client.protocol import KafkaFailure, Unreachable
from streamgauge.transports.kafka.client.reader import RECORDS, open_ends, read_topic
from streamgauge.transports.kafka.client.vectorised import VectorisedProducer
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import numbered, open_format, with_sequence
from streamgauge.transports.kafka.topics import Topic

pytestmark = needs_kafka
CREATE_TIME = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**62)}


def create_time(partitions: int = PARTITIONS) -> str:
    """A topic whose records keep the timestamps that their producer gave them."""
    topic = fresh_topic(1)
    administration().reset([Topic(topic, partitions, settings=CREATE_TIME)])
    return topic


@pytest.mark.parametrize("form", ["json", "binary", "avro"])
def test_both_producers_put_the_same_records_into_the_log(form: FormatName) -> None:
    logs = []
    for kind in KINDS:
        topic = create_time()
        with producing(topic, kind) as producer:
            send(producer, ticks(700, 5, form))
            assert (producer.acknowledged(), producer.waiting) == ({0: 3500, 1: 3500, 2: 3500}, 0)
        ends = open_ends(shared().cluster, topic)
        assert ends.ask() == {0: 3500, 1: 3500, 2: 3500}, "intended, acknowledged and stored are one number"
        ends.close()
        logs.append(read_topic(shared().cluster, topic))
    assert logs[0].equals(logs[1])
    for partition in range(PARTITIONS):
        log = logs[0].filter(pc.equal(logs[0].column("partition"), partition))
        made = source().batch(partition, 0, 3500)
        events = open_format(form, with_sequence(made.schema)).decode(log.column("value").combine_chunks())
        assert events.equals(numbered(made, partition, PARTITIONS))
        due_ms = made.column("due").view(pa.int64()).to_numpy() // 1000
        assert log.column("timestamp").to_numpy().tolist() == due_ms.tolist()
        assert log.column("offset").to_numpy().tolist() == list(range(3500))


def test_both_readers_read_the_same_whoever_wrote_it_and_however_it_is_packed() -> None:
    topic, cluster = create_time(), shared().cluster
    rng = np.random.default_rng(5)
    for number, compression in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        with producing(topic, "confluent", Sending(compression=compression)) as producer:  # type: ignore[arg-type]
            for tick in range(30):  # records of many widths, one without a key
                due = np.arange(20) + ORIGIN // 1000
                values = rng.integers(0, 40, (20, int(rng.integers(0, 150))), np.uint8)
                keys = None if tick % 3 == 0 else rng.integers(0, 256, (20, tick), np.uint8)
                producer.publish({number % PARTITIONS: Part(keys, values, due)})
            producer.flush(20)
    with producing(topic) as producer:
        send(producer, ticks(100, 2))
    plainly = read_topic(cluster, topic)
    singly = pa.Table.from_batches(read_singly(cluster, topic), schema=RECORDS)
    assert plainly.num_rows == 5 * 600 + 600
    assert plainly.equals(singly)
    lines = (open_ends(cluster, topic), ConfluentEnds(cluster, topic))
    assert lines[0].ask() == lines[1].ask() == {0: 1400, 1: 1400, 2: 800}


def test_an_empty_topic_reads_as_nothing() -> None:
    topic, cluster = fresh_topic(2), shared().cluster
    assert read_topic(cluster, topic).num_rows == 0
    assert list(read_singly(cluster, topic)) == []


def test_receipts_tell_when_the_broker_appended_and_readers_read_the_same_moment() -> None:
    topic = fresh_topic(PARTITIONS)
    before = time.time_ns() // 1_000_000
    producer = VectorisedProducer(shared().cluster, topic, time.monotonic_ns, Sending())
    send(producer, ticks(500, 4))
    receipts = producer.take_receipts()
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


def test_where_no_broker_is_that_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = Cluster(f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(Unreachable, match=r"the broker at 127\.0\.0\.1:\d+ cannot be reached: .*refused"):
            open_ends(nobody, "x")
    with pytest.raises(KafkaFailure, match="'nowhere' is no address of a broker"):
        open_ends(Cluster("nowhere"), "x")


def test_what_is_no_broker_is_called_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for words in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""):
                connection, _ = server.accept()
                with connection:
                    connection.recv(100)
                    connection.sendall(words)

        threading.Thread(target=answer, daemon=True).start()
        cluster = Cluster(f"127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(Unreachable, match="is no Kafka broker"):
            open_ends(cluster, "x")
        with pytest.raises(Unreachable, match="has closed the connection"):
            open_ends(cluster, "x")


def test_asking_where_a_topic_ends_costs_next_to_nothing() -> None:
    ends = open_ends(shared().cluster, fresh_topic(PARTITIONS))
    ends.ask()
    began = time.process_time()
    for _ in range(50):
        assert ends.ask() == {0: 0, 1: 0, 2: 0}
    assert (time.process_time() - began) / 50 < 0.005, "ten times a second must be below 5 % of a core"
    ends.close()
