"""A broker that is killed while records are sent: the producer reports immediately which one and what happened."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kafka_broker import launched, needs_kafka

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.brokers.admin import ClusterError, KafkaAdmin
from streamgauge.transports.kafka.brokers.start import BrokerCluster, start_brokers, wait_until
from streamgauge.transports.kafka.client.decode import RecordError
from streamgauge.transports.kafka.client.producer import (
    PartitionRecords,
    Producer,
    ProducerFull,
    ProducerKind,
    RecordColumns,
    TopicPartition,
    open_producer,
)
from streamgauge.transports.kafka.client.protocol import BrokerError, BrokerUnreachable
from streamgauge.transports.kafka.secrets import SecretError
from streamgauge.transports.kafka.topics import Topic, topic_name

pytestmark = needs_kafka
KINDS: tuple[ProducerKind, ...] = ("vectorised", "confluent")
TIMEOUT = 10.0
"""Seconds: half of the time that a broker may take to respond, so that no deadline of a producer is the reason."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerCluster]:
    with launched() as (launcher, runtime), start_brokers(runtime, tmp_path, launcher) as brokers:
        yield brokers


def tick(topic: str) -> PartitionRecords:
    return {
        TopicPartition(topic, 0): RecordColumns(
            None, np.zeros((100, 20), np.uint8), np.full(100, time.time_ns() // 1000)
        )
    }


def failure_of(producer: Producer, topic: str, *, sending: bool) -> str:
    """The error of a producer that publishes further records, or only polls."""
    ends = time.monotonic() + TIMEOUT
    try:
        while time.monotonic() < ends:
            if sending:
                producer.publish(tick(topic))
            producer.poll(0.005)
    except BrokerUnreachable as lost:
        return str(lost)
    return "nothing"


def test_both_producers_report_at_the_next_call_which_broker_has_ended(broker: BrokerCluster) -> None:
    admin, topic = KafkaAdmin(broker.cluster, wait_until), topic_name("death", 1, "in")
    admin.create([Topic(topic, 1)])
    all_of_them = {
        (kind, sending): open_producer(broker.cluster, [topic], time.monotonic_ns, None, kind)
        for kind in KINDS
        for sending in (True, False)
    }
    for producer in all_of_them.values():
        producer.publish(tick(topic))
        producer.flush(20)
    os.kill(broker.processes[0].pid, signal.SIGKILL)
    for (kind, sending), producer in all_of_them.items():
        said = failure_of(producer, topic, sending=sending)
        assert f"the connection to {broker.cluster.bootstrap} broke: " in said, (kind, sending)
        assert "were not acknowledged" in said
        with pytest.raises(BrokerUnreachable):
            producer.poll()  # and it reports it again
        producer.close()
    assert wait_until(lambda: broker.failures == (f"broker 1 at {broker.cluster.bootstrap} ended with signal 9",), 10)


def test_all_errors_of_kafka_have_one_base_class() -> None:
    families = (ClusterError, BrokerUnreachable, BrokerError, ProducerFull, SecretError, RecordError)
    assert [each for each in families if not issubclass(each, TransportError)] == []
