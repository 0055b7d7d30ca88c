"""Events into a real topic and back: both producers, both readers, and what a broker refuses."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from kafka_broker import administration, fresh_topic, needs_kafka, shared

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.run.sources import Source, open_source
from streamgauge.transport.kafka.cluster import Cluster, Security
from streamgauge.transport.kafka.confluent_reader import ConfluentEnds, read_singly
from streamgauge.transport.kafka.formats import FormatName, keys_of, numbered, open_format, with_sequence
from streamgauge.transport.kafka.producer import Kind, Part, Producer, Sending, Tick, TooFarBehind, open_producer
from streamgauge.transport.kafka.protocol import KafkaFailure, Refused, Unreachable
from streamgauge.transport.kafka.reader import RECORDS, open_ends, read_topic
from streamgauge.transport.kafka.records import HEADER
from streamgauge.transport.kafka.topics import Topic
from streamgauge.transport.kafka.vectorised import VectorisedProducer
from streamgauge.transport.kafka.wire import Wire
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

pytestmark = needs_kafka
PARTITIONS = 3
ORIGIN = 1_800_000_000 * SECOND
KINDS: tuple[Kind, ...] = ("vectorised", "confluent")
CREATE_TIME = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**62)}


def source(partitions: int = PARTITIONS) -> Source:
    """Purchases, 300,000 in a second."""
    plan, params = constant(300_000).plan(SECOND), WindowedAggregationParams().model_dump()
    return open_source(
        "windowed-aggregation",
        "purchases",
        params,
        plan=plan,
        seed=3,
        origin_ns=ORIGIN,
        partitions=partitions,
    )


def part(events: Source, partition: int, start: int, stop: int, form: FormatName = "binary") -> Part:
    """The events at some offsets of a partition, ready to be sent."""
    made = events.batch(partition, start, stop)
    rows = numbered(made, start * events.partitions + partition, events.partitions)
    due = made.column("due").view(pa.int64()).to_numpy()
    keys = keys_of(made.column("gem_pack_id").to_numpy())
    return Part(keys, open_format(form, rows.schema).encode(rows), due)


def ticks(rows: int, count: int, form: FormatName = "binary") -> Iterator[Tick]:
    """So many ticks of so many events in each partition."""
    events = source()
    for tick in range(count):
        yield {p: part(events, p, tick * rows, (tick + 1) * rows, form) for p in range(PARTITIONS)}


def send(producer: Producer, all_of_them: Iterable[Tick]) -> None:
    """Publish ticks one after the other, and wait until they are acknowledged."""
    for tick in all_of_them:
        producer.publish(tick)
    producer.flush(20)


@contextmanager
def producing(topic: str, kind: Kind = "vectorised", sending: Sending | None = None) -> Iterator[Producer]:
    producer = open_producer(shared().cluster, topic, time.monotonic_ns, sending, kind)
    try:
        yield producer
    finally:
        producer.close()


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("acks", ["0", "1"])
def test_with_fewer_acknowledgements_all_is_stored_too(kind: Kind, acks: str) -> None:
    topic = fresh_topic(PARTITIONS)
    with producing(topic, kind, Sending(acks=acks)) as producer:  # type: ignore[arg-type]
        send(producer, ticks(200, 5))
        ends, expected = open_ends(shared().cluster, topic), {0: 1000, 1: 1000, 2: 1000}
        assert producer.acknowledged() == expected
        until = time.monotonic() + 10  # nobody says when what needs no acknowledgement is stored
        while ends.ask() != expected and time.monotonic() < until:
            time.sleep(0.01)
        assert ends.ask() == expected
        ends.close()


def test_events_that_may_linger_gather_into_one_batch() -> None:
    topic = fresh_topic(PARTITIONS)
    batches = {}
    for linger in (0, 300_000_000):
        sending = Sending(linger=linger, in_flight=100)
        producer = VectorisedProducer(shared().cluster, topic, time.monotonic_ns, sending)
        for tick in ticks(50, 10):
            producer.publish(tick)
        until = time.monotonic() + 10
        while producer.waiting and time.monotonic() < until:
            producer.attend(0.05)
        batches[linger] = len(producer.take_receipts())
        producer.close()
    assert batches == {0: 30, 300_000_000: 3}


@contextmanager
def nobody_answers() -> Iterator[None]:
    """The broker stands still meanwhile: it takes bytes, as the system does, and says nothing."""
    (broker,) = shared().brokers.processes
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def test_librdkafka_is_waited_for_less_than_a_millisecond_too() -> None:
    with producing(fresh_topic(1), "confluent") as producer:
        until, calls = time.monotonic() + 0.1, 0
        while time.monotonic() < until:
            producer.attend(0.0005)
            calls += 1
    assert calls <= 200


@pytest.mark.parametrize("linger", [0, 1_000_000])
def test_a_producer_that_waits_for_an_answer_sleeps(linger: int) -> None:
    producer = VectorisedProducer(
        shared().cluster, fresh_topic(PARTITIONS), time.monotonic_ns, Sending(linger=linger, in_flight=1)
    )
    whole = ticks(100, 2)
    with nobody_answers():
        producer.publish(next(whole))
        producer.attend(0.05)
        producer.publish(next(whole))  # it may not go: as many requests as may be are on their way
        until, calls = time.monotonic() + 0.4, 0
        while time.monotonic() < until:
            producer.attend(0.05)
            calls += 1
    assert calls <= 9, "each of them waits its 50 ms, however long the events have been there"
    producer.flush(20)
    assert producer.acknowledged() == {0: 200, 1: 200, 2: 200}
    producer.close()


def test_what_may_go_goes_without_waiting_for_an_answer_that_nobody_gives() -> None:
    sending, began = Sending(acks="0", in_flight=1, batch=16_384), time.monotonic()
    producer = VectorisedProducer(shared().cluster, fresh_topic(PARTITIONS), time.monotonic_ns, sending)
    [tick] = ticks(10_000, 1)
    producer.publish(tick)
    while producer.waiting:
        producer.attend(20)
    producer.close()
    assert time.monotonic() - began < 20


def batches_of(topic: str) -> int:
    """How many batches lie in the log of a topic with one partition."""
    wire, found, at = Wire(shared().cluster.bootstrap), 0, 0
    (leader,) = wire.leaders(topic).values()
    [fetched] = wire.fetch(leader, topic, {0: 0}, 1 << 20)
    wire.close()
    while at < len(fetched.data):
        at += 12 + HEADER.unpack_from(fetched.data, at)[1]
        found += 1
    return found


def test_librdkafka_gathers_a_tick_before_it_sends() -> None:
    topic, ahead = fresh_topic(1), [part(source(1), 0, 100 * number, 100 * (number + 1)) for number in range(20)]
    with producing(topic, "confluent") as producer:
        for each in ahead:
            producer.publish({0: each})
            producer.flush(20)
    assert 20 <= batches_of(topic) <= 60, "and does not send one record after the other"


def test_a_load_beyond_one_batch_and_one_request_goes_in_several() -> None:
    topic = fresh_topic(PARTITIONS)
    producer = VectorisedProducer(shared().cluster, topic, time.monotonic_ns, Sending(batch=16_384, in_flight=2))
    send(producer, ticks(20_000, 2))
    receipts = producer.take_receipts()
    producer.close()
    assert len(receipts) > 3 * 2 * 20_000 * 32 / 16_384
    table = read_topic(shared().cluster, topic)
    made = pa.concat_batches([numbered(source().batch(p, 0, 40_000), p, PARTITIONS) for p in range(PARTITIONS)])
    assert open_format("binary", made.schema).decode(table.column("value").combine_chunks()).equals(made)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_broker_refuses_is_said_with_topic_partition_and_reason(kind: Kind) -> None:
    cluster = shared().cluster
    with pytest.raises(Refused, match=r"for streamgauge\.ghost\.001\.in: error 3, there is no such topic"):
        open_producer(cluster, "streamgauge.ghost.001.in", time.monotonic_ns, None, kind)
    topic = fresh_topic(1)
    administration().reset([Topic(topic, 2, settings={"max.message.bytes": "2000"})])
    events = source(2)
    with producing(topic, kind) as producer, pytest.raises(Refused) as refused:
        send(producer, [{1: part(events, 1, 0, 500)}])
    assert str(refused.value).startswith("127.0.0.1" if kind == "vectorised" else "the cluster")
    assert f"did not take records for {topic}, partition 1: error 10, the batch is larger" in str(refused.value)
    assert (refused.value.code, refused.value.topic, refused.value.partition) == (10, topic, 1)
    with producing(topic, kind) as producer, pytest.raises(KafkaFailure, match="has no partition 7: it has 2"):
        producer.publish({7: part(events, 1, 0, 5)})


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_falls_too_far_behind_is_told(kind: Kind) -> None:
    topic = fresh_topic(PARTITIONS)
    sending = Sending(backlog=100_000, in_flight=1, linger=10 * SECOND)
    with producing(topic, kind, sending) as producer, pytest.raises(TooFarBehind, match="does not keep up"):
        send(producer, ticks(5_000, 3))


def test_the_producer_that_suits_the_cluster_is_taken() -> None:
    topic, cluster = fresh_topic(1), shared().cluster
    kinds = []
    for sending in (Sending(), Sending(compression="lz4")):
        producer = open_producer(cluster, topic, time.monotonic_ns, sending)
        kinds.append(type(producer).__name__)
        producer.close()
    assert kinds == ["VectorisedProducer", "ConfluentProducer"]
    for refused, how in (
        (Cluster(cluster.bootstrap, Security(tls=True)), Sending()),
        (cluster, Sending(compression="gzip")),
    ):
        with pytest.raises(KafkaFailure, match="neither TLS nor SASL nor compression"):
            open_producer(refused, topic, time.monotonic_ns, how, "vectorised")


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
