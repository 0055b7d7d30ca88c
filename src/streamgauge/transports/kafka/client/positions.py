"""Positions committed to a consumer group without members, so that every monitoring tool for Kafka shows the lag."""

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from streamgauge.model.streams import Offsets
from streamgauge.transports.kafka.client.protocol import BrokerError
from streamgauge.transports.kafka.cluster import KafkaEndpoints


class PositionCommitter:
    """Commits to the group of a trial. One commit is unanswered at a time: a newer position replaces an older one."""

    def __init__(self, endpoints: KafkaEndpoints) -> None:
        self._topics, self._newest, self._committing = endpoints.inputs, list[TopicPartition](), False
        settings = {**endpoints.cluster.client_settings(), "log_level": 0, "group.id": endpoints.group}
        self._consumer = Consumer({**settings, "enable.auto.commit": False, "on_commit": self._on_commit})

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self._committing = False

    def commit(self, offsets: Offsets) -> None:
        """Commit these positions, now or after the commit that is unanswered."""
        self._newest = [TopicPartition(self._topics[each.stream], each.partition, at) for each, at in offsets.items()]
        self._consumer.poll(0)
        if not self._committing and self._newest:
            self._committing = True
            self._consumer.commit(offsets=self._newest, asynchronous=True)

    def close(self) -> None:
        """Commit the last positions, and close the connections."""
        try:
            if self._newest:
                self._consumer.commit(offsets=self._newest, asynchronous=False)
        except KafkaException as error:
            raise BrokerError("positions cannot be committed", error.args[0].code()) from error
        finally:
            self._consumer.close()
