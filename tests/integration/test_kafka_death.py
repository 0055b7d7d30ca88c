"""A broker that dies while records are sent: whoever sends is told at once where it was and what happened."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from kafka_broker import launched, needs_kafka

from streamgauge.transports.kafka.brokers.admin import Administration, ClusterError
from streamgauge.transports.kafka.brokers.start import Brokers, start_brokers, until
from streamgauge.transports.kafka.client.decode import RecordError
from streamgauge.transports.kafka.client.decompress import InflateError
from streamgauge.transports.kafka.client.producer import Kind, Part, Producer, TooFarBehind, open_producer
from streamgauge.transports.kafka.client.protocol import KafkaFailure, Refused, Unreachable
from streamgauge.transports.kafka.secrets import SecretError
from streamgauge.transports.kafka.topics import Topic, topic_name

pytestmark = needs_kafka
KINDS: tuple[Kind, ...] = ("vectorised", "confluent")
PATIENCE = 10.0
"""Seconds: half of what a broker may take for an answer, so that no deadline of ours can have been the reason."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Brokers]:
    with launched() as (launcher, runtime), start_brokers(runtime, tmp_path, launcher) as brokers:
        yield brokers


def tick() -> dict[int, Part]:
    return {0: Part(None, np.zeros((100, 20), np.uint8), np.full(100, time.time_ns() // 1000))}


def told(producer: Producer, *, sending: bool) -> str:
    """What a producer says when it is used on, or only attended to."""
    ends = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < ends:
            if sending:
                producer.publish(tick())
            producer.attend(0.005)
    except Unreachable as lost:
        return str(lost)
    return "nothing"


def test_both_producers_say_at_the_next_call_that_the_broker_is_gone_and_where_it_was(broker: Brokers) -> None:
    admin, topic = Administration(broker.cluster, until), topic_name("death", 1, "in")
    admin.create([Topic(topic, 1)])
    all_of_them = {
        (kind, sending): open_producer(broker.cluster, topic, time.monotonic_ns, None, kind)
        for kind in KINDS
        for sending in (True, False)
    }
    for producer in all_of_them.values():
        producer.publish(tick())
        producer.flush(20)
    os.kill(broker.processes[0].pid, signal.SIGKILL)
    for (kind, sending), producer in all_of_them.items():
        said = told(producer, sending=sending)
        assert f"the connection to {broker.cluster.bootstrap} broke: " in said, (kind, sending)
        assert "were not acknowledged" in said
        with pytest.raises(Unreachable):
            producer.attend()  # and it says so again
        producer.close()
    assert until(lambda: broker.fallen == ("kafka broker 1 ended with signal 9",), 10)


def test_whatever_goes_wrong_with_kafka_is_caught_by_one_name() -> None:
    families = (ClusterError, Unreachable, Refused, TooFarBehind, SecretError, RecordError, InflateError)
    assert [each for each in families if not issubclass(each, KafkaFailure)] == []
