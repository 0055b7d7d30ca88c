"""Making and removing the topics of a run, and asking a cluster what it holds. No other topic is ever touched."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ClusterMetadata,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    PartitionMetadata,
)

from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.topics import Topic, assignment, by_run, run_of

_SECONDS = 20.0
"""How long the cluster may take for one answer."""
_SHOWN = 3
_LARGEST = "max.message.bytes"
_NOT_YET = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
}
"""What a broker says that has not heard of a new topic yet."""

Until = Callable[[Callable[[], bool]], bool]
"""Waits until the function says yes, at most as long as its maker thinks right; whether it did."""


class Promise(Protocol):
    """What an AdminClient returns: the answer, once it is there."""

    def result(self, timeout: float | None = None) -> object: ...


class ClusterError(KafkaFailure):
    """The cluster does not do what it is asked; the sentence says where it is and why. ``code`` is its error code."""

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(sentence)
        self.code = code


class WrongLeaders(ClusterError):
    """Partitions are not led by the one broker that should lead them all."""


class Leftovers(ClusterError):
    """A topic that was just made holds records."""


class Administration:
    """A cluster, asked and told. It is handed the way to wait, since it has no clock."""

    def __init__(self, cluster: Cluster, until: Until) -> None:
        self.cluster = cluster
        self._until = until
        self._said = ""
        settings: dict[str, Any] = {"log_level": 0, "socket.timeout.ms": int(_SECONDS * 1000), "error_cb": self._hear}
        try:
            self._client = AdminClient({**cluster.client_settings(), **settings})
        except KafkaException as error:
            raise ClusterError(f"the cluster at {cluster.bootstrap} cannot be used: {error.args[0].str()}") from error

    def _hear(self, error: KafkaError) -> None:
        """What goes wrong with connections is told here; an answer that never comes says nothing."""
        self._said = error.str()

    def brokers(self, seconds: float = _SECONDS) -> tuple[int, ...]:
        """The ids of the brokers that are there; asked for at most so long."""
        return tuple(sorted(self._metadata(seconds).brokers))

    def cluster_id(self) -> str | None:
        """What the cluster calls itself."""
        return self._metadata().cluster_id

    def runs(self) -> dict[str, tuple[str, ...]]:
        """Every topic of ours, by the run that it belongs to."""
        return by_run(self._metadata().topics)

    def _metadata(self, seconds: float = _SECONDS) -> ClusterMetadata:
        try:
            return self._client.list_topics(timeout=seconds)
        except KafkaException as error:
            raise self._trouble("cannot be reached", error) from error

    def create(self, topics: Sequence[Topic], leader: int | None = None) -> int:
        """Make topics whose partitions are all led by one broker, the first one unless another is named.

        Returns when every partition is led so, has all its copies, and is empty. The broker that leads.
        """
        brokers = self.brokers()
        chosen = min(brokers) if leader is None else leader
        for topic in topics:
            _ours(topic.name)
        try:
            new = [
                NewTopic(
                    topic.name,
                    num_partitions=topic.partitions,
                    replica_assignment=assignment(topic.partitions, topic.replication, brokers, chosen),
                    config=topic.effective,
                )
                for topic in topics
            ]
        except ValueError as error:
            raise ClusterError(f"the cluster at {self.cluster.bootstrap} cannot hold these topics: {error}") from error
        self._await(self._client.create_topics(new, operation_timeout=_SECONDS), "cannot make the topic")
        self.check_leaders(topics, chosen)
        self.check_empty([topic.name for topic in topics])
        return chosen

    def reset(self, topics: Sequence[Topic], leader: int | None = None) -> int:
        """Make topics anew: those of the same names go first, with all that they hold."""
        self.delete([topic.name for topic in topics])
        return self.create(topics, leader)

    def delete(self, names: Sequence[str]) -> tuple[str, ...]:
        """Remove topics of ours, and wait until they are gone. Those that were there."""
        for name in names:
            _ours(name)
        there = self._described(names)
        if there:
            self._await(self._client.delete_topics([*there], operation_timeout=_SECONDS), "cannot remove the topic")
            if not self._until(lambda: not self._described(names)):
                raise ClusterError(f"the topics {_some([*there])} were removed but are still there")
        return tuple(there)

    def delete_run(self, run: str) -> tuple[str, ...]:
        """Remove every topic of a run, and none of another. Those that there were."""
        return self.delete(self.runs().get(run, ()))

    def check_leaders(self, topics: Sequence[Topic], leader: int) -> None:
        """Raise unless this broker leads every partition and all copies are in step, after a while at most."""
        found: list[str] = []

        def settled() -> bool:
            found[:] = self._misled(topics, leader)
            return not found

        if not self._until(settled):
            raise WrongLeaders(f"broker {leader} should lead every partition, with all copies in step; {_some(found)}")

    def _misled(self, topics: Sequence[Topic], leader: int) -> list[str]:
        there = self._described([topic.name for topic in topics])
        found = [f"{topic.name} is not there" for topic in topics if topic.name not in there]
        for topic in topics:
            partitions = there.get(topic.name, [])
            if topic.name in there and len(partitions) != topic.partitions:
                found.append(f"{topic.name} has {len(partitions)} partitions, not {topic.partitions}")
            for partition in partitions:
                if partition.leader != leader:
                    led = "nobody" if partition.leader < 0 else partition.leader
                    found.append(f"partition {partition.id} of {topic.name} is led by {led}")
                elif len(partition.isrs) != topic.replication:
                    copies = f"{len(partition.isrs)} of {topic.replication} copies"
                    found.append(f"partition {partition.id} of {topic.name} has {copies} in step")
        return found

    def check_empty(self, names: Sequence[str]) -> None:
        """Raise if any of these topics holds a record, or ever held one."""
        held = {name: sum(ends) for name, ends in self.ends(names).items() if any(ends)}
        if held:
            raise Leftovers(_some([f"{name} was just made and has {count} records" for name, count in held.items()]))

    def ends(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """The end offset of every partition: how many records were ever appended to it."""
        partitions = {name: len(held) for name, held in self._described(names).items()}
        absent = [name for name in names if name not in partitions]
        if absent:
            raise ClusterError(f"the cluster at {self.cluster.bootstrap} has no topic {_some(absent)}")
        told: dict[tuple[str, int], int] = {}

        def answered() -> bool:
            told.update(self._offsets(partitions) or {})
            return bool(told) or not partitions

        if not self._until(answered):
            raise ClusterError(f"the cluster at {self.cluster.bootstrap} does not say how much {_some(names)} holds")
        return {name: tuple(told[name, n] for n in range(count)) for name, count in partitions.items()}

    def largest_batch(self, names: Sequence[str]) -> int:
        """Bytes of the largest record batch that all these topics accept; 0 if the cluster does not tell."""
        found = list[int]()
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        for promise in self._client.describe_configs(asked, request_timeout=_SECONDS).values():
            try:
                found.append(int(promise.result(2 * _SECONDS)[_LARGEST].value))
            except KafkaException:  # DescribeConfigs may be forbidden: a batch that is too large is refused later
                return 0
        return min(found, default=0)

    def _offsets(self, partitions: Mapping[str, int]) -> dict[tuple[str, int], int] | None:
        """The ends by topic and partition; None while a leader does not know yet that it leads: that takes a moment."""
        latest = OffsetSpec.latest()
        asked = {TopicPartition(name, n): latest for name, count in partitions.items() for n in range(count)}
        found = {}
        for partition, promise in self._client.list_offsets(asked, request_timeout=_SECONDS).items():
            try:
                found[partition.topic, partition.partition] = promise.result(2 * _SECONDS).offset
            except KafkaException as error:
                if error.args[0].code() not in _NOT_YET:
                    raise self._trouble(f"does not say how much {partition.topic} holds", error) from error
                return None
        return found

    def _described(self, names: Sequence[str]) -> dict[str, list[PartitionMetadata]]:
        """The partitions of those topics that are there.

        All topics are asked for: any broker answers that, and it never makes a topic, whatever the cluster allows.
        """
        there = self._metadata().topics
        return {name: [*there[name].partitions.values()] for name in names if name in there}

    def _await(self, promises: Mapping[str, Promise], failing: str) -> None:
        for name, promise in promises.items():
            try:
                promise.result(2 * _SECONDS)
            except KafkaException as error:
                raise self._trouble(f"{failing} {name}", error) from error

    def _trouble(self, what: str, error: KafkaException) -> ClusterError:
        """A sentence with what the cluster said, and what was heard of the connections to it."""
        self._client.poll(0)
        heard = f" ({self._said})" if self._said else ""
        said = error.args[0]
        return ClusterError(f"the cluster at {self.cluster.bootstrap} {what}: {said.str()}{heard}", said.code())


def _ours(name: str) -> None:
    if run_of(name) is None:
        raise ValueError(f"{name} carries no run's id, so it is not ours to touch")


def _some(things: Sequence[str]) -> str:
    more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
    return f"{'; '.join(things[:_SHOWN])}{more}"
