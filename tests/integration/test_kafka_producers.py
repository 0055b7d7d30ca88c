"""How producers send: acknowledgements, gathering, waiting, and what a broker refuses."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest
from kafka_broker import administration, fresh_topic, needs_kafka, shared
from kafka_events import KINDS, PARTITIONS, part, producing, send, source, ticks

from streamgauge.model.units import SECOND
from streamgauge.transports.kafka.client.batches import HEADER
from streamgauge.transports.kafka.client.connections import Wire
from streamgauge.transports.kafka.client.producer import Kind, Sending, TooFarBehind, open_producer
from streamgauge.transports.kafka.client.protocol import KafkaFailure, Refused
from streamgauge.transports.kafka.client.reader import open_ends, read_topic
from streamgauge.transports.kafka.client.vectorised import VectorisedProducer
from streamgauge.transports.kafka.cluster import Cluster, Security
from streamgauge.transports.kafka.formats.formats import numbered, open_format
from streamgauge.transports.kafka.topics import Topic

pytestmark = needs_kafka


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
