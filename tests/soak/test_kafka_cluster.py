"""Several brokers: one of them leads everything, the others hold the same bytes, and what is lost is noticed."""

import os
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_broker import launched, needs_kafka

from streamgauge.run import brokers as starting
from streamgauge.run.brokers import Brokers, start_brokers, until
from streamgauge.transport.kafka.administer import Administration, WrongLeaders
from streamgauge.transport.kafka.topics import Topic, topic_name

pytestmark = [pytest.mark.soak, needs_kafka]

TOPICS = [Topic(topic_name("soak", 1, stream), 6, replication=3) for stream in ("input", "output")]
RECORDS = 10_000


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Brokers, Path]]:
    folder = tmp_path_factory.mktemp("three")
    with launched() as (launcher, runtime), start_brokers(runtime, folder, launcher, count=3) as brokers:
        yield brokers, folder


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


def test_one_broker_leads_every_partition_and_stamps_every_record(three: tuple[Brokers, Path]) -> None:
    brokers, folder = three
    admin = Administration(brokers.cluster, until)
    assert admin.brokers() == (1, 2, 3)
    assert admin.create(TOPICS) == 1
    producer = Producer({**brokers.cluster.client_settings(), "acks": "all"})
    for number in range(RECORDS):
        producer.produce(TOPICS[number % 2].name, b"x" * 100, partition=number // 2 % 6, timestamp=1)
    assert producer.flush(60) == 0
    assert sum(map(sum, admin.ends([topic.name for topic in TOPICS]).values())) == RECORDS
    admin.check_leaders(TOPICS, leader=1)
    # A follower keeps what the leader stamped, byte by byte. Were one of them to lead, it would stamp by its own clock.
    for topic in TOPICS:
        assert until(partial(agree, folder, topic), 20)
        assert all(len(copy) > 1000 for copies in segments(folder, topic).values() for copy in copies)


def test_another_broker_can_be_told_to_lead(three: tuple[Brokers, Path]) -> None:
    admin, topic = Administration(three[0].cluster, until), Topic(topic_name("soak", 2, "input"), 4, replication=2)
    assert admin.create([topic], leader=3) == 3
    with pytest.raises(WrongLeaders, match="broker 1 should lead every partition"):
        Administration(three[0].cluster, lambda holds: until(holds, 0.5)).check_leaders([topic], leader=1)


def test_a_copy_that_is_lost_is_noticed(three: tuple[Brokers, Path]) -> None:
    brokers, _ = three
    topic = Topic(topic_name("soak", 3, "input"), 2, replication=3)
    Administration(brokers.cluster, until).create([topic])
    os.kill(brokers.processes[2].pid, signal.SIGKILL)
    assert until(lambda: brokers.fallen == ("kafka broker 3 ended with signal 9",), 10)

    def noticed() -> bool:
        try:
            Administration(brokers.cluster, lambda holds: holds()).check_leaders([topic], leader=1)
        except WrongLeaders as lost:
            return "has 2 of 3 copies in step" in str(lost)
        return False

    assert until(noticed, 60)


def test_five_brokers_come_together_and_go(tmp_path: Path) -> None:
    with launched() as (launcher, runtime):
        with start_brokers(runtime, tmp_path, launcher, count=5) as brokers:
            assert Administration(brokers.cluster, until).brokers() == (1, 2, 3, 4, 5)
            assert len(brokers.cluster.bootstrap.split(",")) == 5
        assert all(not process.alive() for process in brokers.processes)
        assert {path.suffix for path in tmp_path.iterdir()} == {".log"}, "data are gone, logs stay"
        with pytest.raises(ValueError, match="6 brokers were asked for; 1 to 5 can be had"):
            start_brokers(runtime, tmp_path, launcher, count=6)


def test_a_port_that_was_taken_meanwhile_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as thief, launched() as (launcher, runtime):
        thief.bind(("127.0.0.1", 0))
        thief.listen()
        taken, free = thief.getsockname()[1], starting._free_ports
        offers = iter([[taken, *free(2)], free(3)])
        monkeypatch.setattr(starting, "_free_ports", lambda count: next(offers))
        with start_brokers(runtime, tmp_path, launcher) as brokers:
            assert str(taken) not in brokers.cluster.bootstrap
