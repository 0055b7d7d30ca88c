"""How producers send: acknowledgements, gathering, waiting, and what a broker refuses."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from kafka_broker import fresh_topic, needs_kafka, shared
from kafka_events import KINDS, PARTITIONS, by_partition, part, producing, send, source, ticks

from streamgauge.model.units import SECOND
from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.batches import HEADER
from streamgauge.transports.kafka.client.confluent_reader import TopicOffsets
from streamgauge.transports.kafka.client.connections import BrokerConnections
from streamgauge.transports.kafka.client.producer import (
    ProducerFull,
    ProducerKind,
    ProducerSettings,
    RecordColumns,
    TopicPartition,
    open_producer,
)
from streamgauge.transports.kafka.client.protocol import BrokerError
from streamgauge.transports.kafka.client.reader import read_topic
from streamgauge.transports.kafka.client.vectorised import VectorisedProducer
from streamgauge.transports.kafka.cluster import Cluster, Security
from streamgauge.transports.kafka.formats.formats import open_format, with_sequence_numbers

pytestmark = needs_kafka


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("acks", ["0", "1"])
def test_with_fewer_acknowledgements_all_is_stored_too(kind: ProducerKind, acks: str) -> None:
    topic = fresh_topic(PARTITIONS)
    with producing(topic, kind, ProducerSettings(acks=acks)) as producer:  # type: ignore[arg-type]
        send(producer, ticks(topic, 200, 5))
        offsets, expected = TopicOffsets(shared().cluster, topic), {0: 1000, 1: 1000, 2: 1000}
        assert by_partition(producer, topic) == expected
        until = time.monotonic() + 10  # without acknowledgements it is not known when records are stored
        while offsets.end_offsets() != expected and time.monotonic() < until:
            time.sleep(0.01)
        assert offsets.end_offsets() == expected


def test_events_that_may_linger_gather_into_one_batch() -> None:
    topic = fresh_topic(PARTITIONS)
    batches = {}
    for linger in (0, 300_000_000):
        sending = ProducerSettings(linger=linger, in_flight=100)
        producer = VectorisedProducer(shared().cluster, [topic], time.monotonic_ns, sending)
        for tick in ticks(topic, 50, 10):
            producer.publish(tick)
        until = time.monotonic() + 10
        while producer.unacknowledged and time.monotonic() < until:
            producer.poll(0.05)
        batches[linger] = len(producer.take_delivery_reports())
        producer.close()
    assert batches == {0: 30, 300_000_000: 3}


@contextmanager
def broker_stopped() -> Iterator[None]:
    """The broker is stopped meanwhile: the operating system still takes bytes for it, and it does not respond."""
    (broker,) = shared().brokers.processes
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def test_a_poll_of_librdkafka_may_last_less_than_a_millisecond() -> None:
    with producing(fresh_topic(1), "confluent") as producer:
        until, calls = time.monotonic() + 0.1, 0
        while time.monotonic() < until:
            producer.poll(0.0005)
            calls += 1
    assert calls <= 200


@pytest.mark.parametrize("linger", [0, 1_000_000])
def test_a_producer_that_waits_for_a_response_sleeps(linger: int) -> None:
    topic = fresh_topic(PARTITIONS)
    settings = ProducerSettings(linger=linger, in_flight=1)
    producer = VectorisedProducer(shared().cluster, [topic], time.monotonic_ns, settings)
    whole = ticks(topic, 100, 2)
    with broker_stopped():
        producer.publish(next(whole))
        producer.poll(0.05)
        producer.publish(next(whole))  # it is not sent yet: as many requests as allowed have no response
        until, calls = time.monotonic() + 0.4, 0
        while time.monotonic() < until:
            producer.poll(0.05)
            calls += 1
    assert calls <= 9, "each of them waits its 50 ms, however long the events have been there"
    producer.flush(20)
    assert by_partition(producer, topic) == {0: 200, 1: 200, 2: 200}
    producer.close()


def test_without_acknowledgements_the_next_request_is_sent_without_waiting_for_a_response() -> None:
    sending, began = ProducerSettings(acks="0", in_flight=1, batch=16_384), time.monotonic()
    topic = fresh_topic(PARTITIONS)
    producer = VectorisedProducer(shared().cluster, [topic], time.monotonic_ns, sending)
    [tick] = ticks(topic, 10_000, 1)
    producer.publish(tick)
    while producer.unacknowledged:
        producer.poll(20)
    producer.close()
    assert time.monotonic() - began < 20


def batches_of(topic: str) -> int:
    """How many batches the log of a topic with one partition has."""
    wire, found, at = BrokerConnections(shared().cluster.bootstrap), 0, 0
    (leader,) = wire.leaders(topic).values()
    [fetched] = wire.fetch(leader, topic, {0: 0}, 1 << 20)
    wire.close()
    while at < len(fetched.data):
        at += 12 + HEADER.unpack_from(fetched.data, at)[1]
        found += 1
    return found


def test_librdkafka_collects_a_send_interval_before_it_sends() -> None:
    topic, ahead = fresh_topic(1), [part(source(1), 0, 100 * number, 100 * (number + 1)) for number in range(20)]
    with producing(topic, "confluent") as producer:
        for each in ahead:
            producer.publish({TopicPartition(topic, 0): each})
            producer.flush(20)
    assert 20 <= batches_of(topic) <= 60, "and does not send one record after the other"


def test_a_load_beyond_one_batch_and_one_request_is_sent_in_several() -> None:
    topic = fresh_topic(PARTITIONS)
    producer = VectorisedProducer(
        shared().cluster, [topic], time.monotonic_ns, ProducerSettings(batch=16_384, in_flight=2)
    )
    send(producer, ticks(topic, 20_000, 2))
    reports = producer.take_delivery_reports()
    producer.close()
    assert len(reports) > 3 * 2 * 20_000 * 32 / 16_384
    table = read_topic(shared().cluster, topic)
    made = pa.concat_batches(
        [with_sequence_numbers(source().batch(p, 0, 40_000), p, PARTITIONS) for p in range(PARTITIONS)]
    )
    assert open_format("binary", made.schema).decode(table.column("value").combine_chunks()).equals(made)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_broker_rejects_is_reported_with_topic_partition_and_reason(kind: ProducerKind) -> None:
    cluster = shared().cluster
    with pytest.raises(BrokerError, match=r"for streamgauge\.ghost\.001\.in: error 3, there is no such topic"):
        open_producer(cluster, ["streamgauge.ghost.001.in"], time.monotonic_ns, None, kind)
    topic = fresh_topic(2, settings={"max.message.bytes": "2000"})
    events = source(2)
    with producing(topic, kind) as producer, pytest.raises(BrokerError) as refused:
        send(producer, [{TopicPartition(topic, 1): part(events, 1, 0, 500)}])
    assert str(refused.value).startswith("127.0.0.1" if kind == "vectorised" else "the cluster")
    assert f"did not take records for {topic}, partition 1: error 10, the batch is larger" in str(refused.value)
    assert (refused.value.code, refused.value.topic, refused.value.partition) == (10, topic, 1)
    with producing(topic, kind) as producer, pytest.raises(TransportError, match="has no partition 7: it has 2"):
        producer.publish({TopicPartition(topic, 7): part(events, 1, 0, 5)})


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_falls_too_far_behind_is_reported(kind: ProducerKind) -> None:
    topic = fresh_topic(PARTITIONS)
    sending = ProducerSettings(backlog=100_000, in_flight=1, linger=10 * SECOND)
    with producing(topic, kind, sending) as producer, pytest.raises(ProducerFull, match="does not keep up"):
        send(producer, ticks(topic, 5_000, 3))


def test_the_producer_that_supports_the_cluster_is_used() -> None:
    topic, cluster = fresh_topic(1), shared().cluster
    kinds = []
    for sending in (ProducerSettings(), ProducerSettings(compression="lz4")):
        producer = open_producer(cluster, [topic], time.monotonic_ns, sending)
        kinds.append(type(producer).__name__)
        producer.close()
    assert kinds == ["VectorisedProducer", "ConfluentProducer"]
    for refused, how in (
        (Cluster(cluster.bootstrap, Security(tls=True)), ProducerSettings()),
        (cluster, ProducerSettings(compression="gzip")),
    ):
        with pytest.raises(TransportError, match="neither TLS nor SASL nor compression"):
            open_producer(refused, [topic], time.monotonic_ns, how, "vectorised")


@pytest.mark.parametrize("kind", KINDS)
def test_one_producer_sends_the_events_of_several_topics(kind: ProducerKind) -> None:
    topics, cluster = [fresh_topic(PARTITIONS, "purchases"), fresh_topic(1, "ads")], shared().cluster
    ads = source(1)
    with producing(topics, kind) as producer:
        for number, tick in enumerate(ticks(topics[0], 300, 4)):
            ad = part(ads, 0, 50 * number, 50 * (number + 1))
            producer.publish({**tick, TopicPartition(topics[1], 0): ad})
        producer.flush(20)
        assert producer.unacknowledged == 0
        assert by_partition(producer, topics[0]) == {0: 1200, 1: 1200, 2: 1200}
        assert by_partition(producer, topics[1]) == {0: 200}
        reported = {report.topic for report in producer.take_delivery_reports()}
        assert reported == ({*topics} if kind == "vectorised" else set())
        with pytest.raises(TransportError, match="no partition 0: it has 0"):
            producer.publish({TopicPartition("streamgauge.other.001.in", 0): part(ads, 0, 0, 5)})
    for topic, partitions, rows in ((topics[0], PARTITIONS, 1200), (topics[1], 1, 200)):
        values = read_topic(cluster, topic).column("value").combine_chunks()
        events = [with_sequence_numbers(source(partitions).batch(p, 0, rows), p, partitions) for p in range(partitions)]
        assert open_format("binary", events[0].schema).decode(values).equals(pa.concat_batches(events))


def test_one_request_contains_a_batch_of_every_partition_of_all_topics() -> None:
    topics = [fresh_topic(2, "purchases"), fresh_topic(1, "ads")]
    producer = VectorisedProducer(shared().cluster, topics, time.monotonic_ns, ProducerSettings(in_flight=1))
    row = RecordColumns(None, np.zeros((10, 8), np.uint8), np.zeros(10, np.int64))
    producer.publish(dict.fromkeys(producer.partitions, row))
    producer.flush(20)
    reports = producer.take_delivery_reports()
    producer.close()
    assert sorted((report.topic, report.partition) for report in reports) == sorted(producer.partitions)
    assert len({report.sent_ns for report in reports}) == 1
    assert len({report.acknowledged_ns for report in reports}) == 1
