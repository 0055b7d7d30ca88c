"""Clusters of users have their own settings: a run adapts to them, or reports what to change before the first trial."""

import time

import numpy as np
import pytest
from kafka_broker import administration, needs_kafka, shared
from kafka_events import KINDS

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.producer import (
    ProducerKind,
    ProducerSettings,
    RecordColumns,
    TopicPartition,
    open_producer,
)
from streamgauge.transports.kafka.client.protocol import BrokerError
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.kafka.topics import Topic, topic_name
from streamgauge.transports.kafka.try_cluster import try_cluster

pytestmark = needs_kafka
SMALL = 200_000
"""Bytes of the largest batch that the cluster of these tests accepts; Kafka's own default is 1048588."""


def topic(largest: int) -> str:
    name = topic_name(f"test-{time.monotonic_ns()}", 1, "limits")
    administration().create([Topic(name, 1, settings={"max.message.bytes": str(largest)})])
    return name


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_no_larger_than_the_topic_accepts(kind: ProducerKind) -> None:
    name, part = topic(SMALL), RecordColumns(None, np.zeros((30_000, 100), np.uint8), np.zeros(30_000, np.int64))
    largest = administration().largest_batch([name])
    assert largest == SMALL
    with pytest.raises(BrokerError, match=r"error 10, the batch is larger than the topic allows"):
        send(name, kind, ProducerSettings(), part)
    assert send(name, kind, ProducerSettings().within(largest), part) == len(part.values)


def send(name: str, kind: ProducerKind, sending: ProducerSettings, part: RecordColumns) -> int:
    """Send records; how many were acknowledged."""
    producer = open_producer(shared().cluster, [name], time.monotonic_ns, sending, kind)
    try:
        producer.publish({TopicPartition(name, 0): part})
        producer.flush(20)
        return sum(producer.acknowledged().values())
    finally:
        producer.close()


def test_a_cluster_that_works_is_left_as_it_was() -> None:
    before = administration().topics_by_run()
    for kind in ("vectorised", "confluent"):
        try_cluster(shared().cluster, KafkaOptions(producer=kind), f"{time.monotonic_ns()}")
    assert administration().topics_by_run() == before


def test_a_topic_that_the_cluster_rejects_is_reported_with_what_to_do() -> None:
    with pytest.raises(TransportError, match=r"create these topics: 3 copies of a partition need as many brokers"):
        try_cluster(shared().cluster, KafkaOptions(brokers=3, replication=3), "x")
