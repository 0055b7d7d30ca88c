"""Several brokers: one of them leads all partitions, the others store the same bytes, and a lost copy is noticed."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from kafka_broker import launched, needs_kafka

from streamgauge.transports.kafka.brokers import start as starting
from streamgauge.transports.kafka.brokers.admin import KafkaAdmin, LeadershipError
from streamgauge.transports.kafka.brokers.start import BrokerCluster, start_brokers, wait_until
from streamgauge.transports.kafka.client.batches import HEADER
from streamgauge.transports.kafka.client.confluent import ConfluentProducer
from streamgauge.transports.kafka.client.connections import BrokerConnections
from streamgauge.transports.kafka.client.producer import DeliveryReport, ProducerSettings, RecordColumns, TopicPartition
from streamgauge.transports.kafka.client.reader import read_topic
from streamgauge.transports.kafka.client.vectorised import VectorisedProducer
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.topics import Topic, topic_name

pytestmark = [pytest.mark.soak, needs_kafka]

TOPICS = [Topic(topic_name("soak", 1, stream), 6, replication=3) for stream in ("input", "output")]
RECORDS = 3_000
FRAME, LOG_APPEND_TIME = 12, 0x08


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BrokerCluster, Path]]:
    folder = tmp_path_factory.mktemp("three")
    with launched() as (launcher, runtime), start_brokers(runtime, folder, launcher, count=3) as brokers:
        yield brokers, folder


class Stored(NamedTuple):
    """A batch as a log stores it: the leadership under which it was appended, who stamped it, and when."""

    offset: int
    epoch: int
    by_broker: bool
    stamp_ms: int


def segments(folder: Path, topic: Topic) -> dict[int, list[bytes]]:
    """The log of every partition as each of the three brokers has it."""
    return {
        number: [
            (folder / f"kafka-broker-{broker}" / "data" / f"{topic.name}-{number}" / f"{0:020d}.log").read_bytes()
            for broker in (1, 2, 3)
        ]
        for number in range(topic.partitions)
    }


def agree(folder: Path, topic: Topic) -> bool:
    """Whether all copies of every partition are the same."""
    return all(len({*copies}) == 1 for copies in segments(folder, topic).values())


def batches(log: bytes) -> Iterator[Stored]:
    """The batches of a log."""
    at = 0
    while at < len(log):
        offset, length, epoch, _, _, attributes, _, _, stamp, *_ = HEADER.unpack_from(log, at)
        yield Stored(offset, epoch, bool(attributes & LOG_APPEND_TIME), stamp)
        at += FRAME + length


def send(cluster: Cluster, topic: Topic) -> list[DeliveryReport]:
    """Records of both producers into every partition, with stamps of the year 1970; what the leader reported."""
    part = RecordColumns(None, np.zeros((RECORDS, 100), np.uint8), np.full(RECORDS, 1_000))
    vectorised = VectorisedProducer(cluster, [topic.name], time.monotonic_ns, ProducerSettings(batch=16_384))
    confluent = ConfluentProducer(cluster, [topic.name], ProducerSettings(batch=16_384))
    for producer in (vectorised, confluent):
        producer.publish({TopicPartition(topic.name, p): part for p in range(topic.partitions)})
        producer.flush(60)
        producer.close()
    return vectorised.take_delivery_reports()


def test_one_broker_leads_every_partition_and_stamps_every_record(three: tuple[BrokerCluster, Path]) -> None:
    brokers, folder = three
    admin = KafkaAdmin(brokers.cluster, wait_until)
    assert admin.brokers() == (1, 2, 3)
    assert admin.create(TOPICS) == 1
    before = time.time_ns() // 1_000_000
    reported = {topic.name: send(brokers.cluster, topic) for topic in TOPICS}
    after = time.time_ns() // 1_000_000
    admin.check_leaders(TOPICS, leader=1)
    for topic in TOPICS:
        # Every broker reports the same leader, and no other has led since: the first epoch is 0.
        for address in brokers.cluster.bootstrap.split(","):
            assert {*BrokerConnections(address).leaders(topic.name).values()} == {1}
        assert admin.end_offsets([topic.name]) == {topic.name: (2 * RECORDS,) * topic.partitions}
        assert wait_until(partial(agree, folder, topic), 20), "a follower keeps what the leader stamped, byte by byte"
        stamps = dict[tuple[int, int], int]()
        for number, copies in segments(folder, topic).items():
            held = [*batches(copies[0])]
            assert len(held) > 10
            assert {(batch.epoch, batch.by_broker) for batch in held} == {(0, True)}
            assert all(before <= batch.stamp_ms <= after for batch in held), "none is the producer's, of 1970"
            stamps |= {(number, batch.offset): batch.stamp_ms for batch in held}
        receipts = {(r.partition, r.offset): r.appended_ms for r in reported[topic.name]}
        assert len(receipts) > 10 * topic.partitions
        assert receipts.items() <= stamps.items(), "the moments that the leader reported are those in all copies"
        read = read_topic(brokers.cluster, topic.name).column("timestamp").to_numpy()
        assert (len(read), {*read.tolist()}) == (2 * RECORDS * topic.partitions, {*stamps.values()})


def test_another_broker_can_lead(three: tuple[BrokerCluster, Path]) -> None:
    admin, topic = KafkaAdmin(three[0].cluster, wait_until), Topic(topic_name("soak", 2, "input"), 4, replication=2)
    assert admin.create([topic], leader=3) == 3
    with pytest.raises(LeadershipError, match="broker 1 should lead every partition"):
        KafkaAdmin(three[0].cluster, lambda holds: wait_until(holds, 0.5)).check_leaders([topic], leader=1)


def test_a_copy_that_is_lost_is_noticed(three: tuple[BrokerCluster, Path]) -> None:
    brokers, _ = three
    topic = Topic(topic_name("soak", 3, "input"), 2, replication=3)
    KafkaAdmin(brokers.cluster, wait_until).create([topic])
    os.kill(brokers.processes[2].pid, signal.SIGKILL)
    assert wait_until(lambda: [each.partition(" at ")[0] for each in brokers.failures] == ["broker 3"], 10)

    def noticed() -> bool:
        try:
            KafkaAdmin(brokers.cluster, lambda holds: holds()).check_leaders([topic], leader=1)
        except LeadershipError as lost:
            return "has 2 of 3 copies in step" in str(lost)
        return False

    assert wait_until(noticed, 60)


def test_five_brokers_form_a_cluster_and_are_removed(tmp_path: Path) -> None:
    with launched() as (launcher, runtime):
        with start_brokers(runtime, tmp_path, launcher, count=5) as brokers:
            assert KafkaAdmin(brokers.cluster, wait_until).brokers() == (1, 2, 3, 4, 5)
            assert len(brokers.cluster.bootstrap.split(",")) == 5
        assert all(not process.alive() for process in brokers.processes)
        assert {path.suffix for path in tmp_path.iterdir()} == {".log"}, "data are removed, logs stay"
        with pytest.raises(ValueError, match="cannot start 6 local brokers; 1 to 5 are supported"):
            start_brokers(runtime, tmp_path, launcher, count=6)


def test_a_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as thief, launched() as (launcher, runtime):
        thief.bind(("127.0.0.1", 0))
        thief.listen()
        taken, free = thief.getsockname()[1], starting._free_ports
        offers = iter([[taken, *free(2)], free(3)])
        monkeypatch.setattr(starting, "_free_ports", lambda count: next(offers))
        with start_brokers(runtime, tmp_path, launcher) as brokers:
            assert str(taken) not in brokers.cluster.bootstrap
