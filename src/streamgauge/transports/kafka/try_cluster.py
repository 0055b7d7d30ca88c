"""Tries a user's cluster before a run: a topic as trials have them is created, written, read and deleted.

What the cluster or its administrator does not allow is reported before the first trial, with what to do about it.
"""

from contextlib import suppress

import numpy as np

from streamgauge.processes.clock import Clock
from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.brokers.admin import KafkaAdmin
from streamgauge.transports.kafka.brokers.start import wait_until
from streamgauge.transports.kafka.client.producer import RecordColumns, TopicPartition, open_producer
from streamgauge.transports.kafka.client.reader import read_topic
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.kafka.topics import PREFIX, Topic, topic_name

_STREAM = "check"
_WIDTH = 100
_TIMEOUT = 20.0
_RIGHTS = (
    "The user needs the rights Create, Describe, DescribeConfigs, Write, Read and Delete on topics whose names begin "
    f"with {PREFIX}, and the right Read on groups whose names begin with {PREFIX}."
)
_ADVICE = {
    10: "Set transport.batch to the largest batch that the cluster accepts (message.max.bytes), for example 100KB.",
    19: "Set transport.replication to min.insync.replicas of the cluster or more.",
    29: _RIGHTS,
    30: _RIGHTS,
    31: _RIGHTS,
    38: "Set transport.replication to what the cluster allows.",
    40: "Ask the administrator of the cluster to allow this topic setting.",
    44: "Ask the administrator of the cluster to allow such topics.",
    76: "Set transport.compression to what the cluster allows.",
    89: "Wait a minute and run again, or ask the administrator of the cluster for a higher quota.",
}
"""What to do, by the error code of the broker."""


def try_cluster(cluster: Cluster, options: KafkaOptions, token: str) -> None:
    """Raise TransportError, with what to do, unless a topic can be created, written, read and deleted.

    ``token`` makes the name of the topic unique.
    """
    topic = Topic(topic_name(f"{_STREAM}-{token}", 0, _STREAM), 1, options.replication)
    try:
        _use(KafkaAdmin(cluster, wait_until), options, topic)
    except TransportError as error:
        raise TransportError(advised(error)) from error


def advised(error: TransportError) -> str:
    """What went wrong and, if the error code of the broker is known, what to do."""
    return f"{error}. {_ADVICE.get(getattr(error, 'code', 0), '')}".rstrip(". ")


def _use(admin: KafkaAdmin, options: KafkaOptions, topic: Topic) -> None:
    """Everything that a trial does with a topic. It is deleted even if a step before fails."""
    try:
        admin.create([topic])
        _write_and_read(admin.cluster, options, topic.name, admin.largest_batch([topic.name]))
    except TransportError:
        with suppress(TransportError):  # the first failure shows what to change
            admin.delete([topic.name])
        raise
    admin.delete([topic.name])


def _write_and_read(cluster: Cluster, options: KafkaOptions, topic: str, largest: int) -> None:
    """Send as many records as fill a batch, and read them back."""
    settings = options.producer_settings.within(largest)
    rows = max(1, settings.batch // _WIDTH)
    part = RecordColumns(None, np.zeros((rows, _WIDTH), np.uint8), np.zeros(rows, np.int64))
    producer = open_producer(cluster, [topic], Clock().monotonic_ns, settings, options.requested_producer)
    try:
        producer.publish({TopicPartition(topic, 0): part})
        producer.flush(_TIMEOUT)
    finally:
        producer.close()
    if not wait_until(lambda: len(read_topic(cluster, topic)) >= rows, _TIMEOUT):
        raise TransportError(f"the cluster at {cluster.bootstrap} does not return all records that it was sent")
    if min(read_topic(cluster, topic).column("timestamp").to_pylist()) <= 0:
        raise TransportError(
            f"the cluster at {cluster.bootstrap} does not stamp records with its own clock: the topic setting "
            "message.timestamp.type=LogAppendTime has no effect there, but latencies are measured with it"
        )
