"""Positions committed to a consumer group that nobody is a member of, so that any monitor of Kafka sees the lag."""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamgauge.transports.kafka.client.protocol import Refused
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.ledger import Lane


class Group:
    """The group of a trial. One commit is on its way at a time: a newer position makes an older one useless."""

    def __init__(self, ends: KafkaEnds) -> None:
        self._topics, self._newest, self._flying = ends.inputs, list[TopicPartition](), False
        settings = {**ends.cluster.client_settings(), "log_level": 0, "group.id": ends.group}
        self._consumer = Consumer({**settings, "enable.auto.commit": False, "on_commit": self._done})

    def _done(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self._flying = False

    def commit(self, offsets: Mapping[Lane, int]) -> None:
        """These are the positions now."""
        self._newest = [TopicPartition(self._topics[lane.stream], lane.partition, at) for lane, at in offsets.items()]
        self._consumer.poll(0)
        if not self._flying and self._newest:
            self._flying = True
            self._consumer.commit(offsets=self._newest, asynchronous=True)

    def close(self) -> None:
        """Commit the last positions, and leave."""
        try:
            if self._newest:
                self._consumer.commit(offsets=self._newest, asynchronous=False)
        except KafkaException as error:
            raise Refused("positions cannot be committed", error.args[0].code()) from error
        finally:
            self._consumer.close()
