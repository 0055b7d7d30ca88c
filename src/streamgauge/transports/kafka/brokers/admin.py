"""Topics of runs on a Kafka cluster: created, deleted and described. No other topic is ever changed."""

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

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.topics import Topic, assignment, by_run, run_of

_SECONDS = 20.0
"""Until the response of the cluster must arrive."""
_SHOWN = 3
_LARGEST = "max.message.bytes"
_NOT_YET = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
}
"""Errors of a broker that has no metadata of a new topic yet."""

WaitUntil = Callable[[Callable[[], bool]], bool]
"""Waits until the function returns true, for a limited time; whether it did."""


class AdminFuture(Protocol):
    """The result of an AdminClient's request, as soon as it has arrived."""

    def result(self, timeout: float | None = None) -> object: ...


class ClusterError(TransportError):
    """The cluster rejected a request; the message names it with the reason. ``code`` is its error code."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class LeadershipError(ClusterError):
    """Partitions are not led by the one broker that should lead them all."""


class TopicNotEmpty(ClusterError):
    """A topic that was just created contains records."""


class KafkaAdmin:
    """The administration of a cluster. It has no clock, so it gets the function that waits."""

    def __init__(self, cluster: Cluster, wait_until: WaitUntil) -> None:
        self.cluster = cluster
        self._wait_until = wait_until
        self._last_error = ""
        settings: dict[str, Any] = {
            "log_level": 0,
            "socket.timeout.ms": int(_SECONDS * 1000),
            "error_cb": self._on_error,
        }
        try:
            self._client = AdminClient({**cluster.client_settings(), **settings})
        except KafkaException as error:
            raise ClusterError(f"the cluster at {cluster.bootstrap} cannot be used: {error.args[0].str()}") from error

    def _on_error(self, error: KafkaError) -> None:
        """Remember the error of a connection: a request that times out does not contain it."""
        self._last_error = error.str()

    def brokers(self, seconds: float = _SECONDS) -> tuple[int, ...]:
        """The ids of the brokers of the cluster; waits at most so long."""
        return tuple(sorted(self._metadata(seconds).brokers))

    def cluster_id(self) -> str | None:
        """The id of the cluster."""
        return self._metadata().cluster_id

    def topics_by_run(self) -> dict[str, tuple[str, ...]]:
        """Every topic of a run, by the id of the run."""
        return by_run(self._metadata().topics)

    def _metadata(self, seconds: float = _SECONDS) -> ClusterMetadata:
        try:
            return self._client.list_topics(timeout=seconds)
        except KafkaException as error:
            raise self._error("cannot be reached", error) from error

    def create(self, topics: Sequence[Topic], leader: int | None = None) -> int:
        """Create topics whose partitions are all led by one broker: the first one unless another is named.

        Returns when every partition is led by it, has all its copies, and is empty. The id of that broker.
        """
        brokers = self.brokers()
        chosen = min(brokers) if leader is None else leader
        for topic in topics:
            _require_run_topic(topic.name)
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
            raise ClusterError(
                f"the cluster at {self.cluster.bootstrap} cannot create these topics: {error}"
            ) from error
        self._create(new)
        self.check_leaders(topics, chosen)
        self.require_empty([topic.name for topic in topics])
        return chosen

    def _create(self, topics: Sequence[NewTopic]) -> None:
        """Create all of them or raise. Those that could be created are known afterwards, so they can be deleted.

        The topics of one request are created independently of each other.
        """
        futures, errors = self._client.create_topics([*topics], operation_timeout=_SECONDS), list[ClusterError]()
        created = []
        for name, future in futures.items():
            try:
                self._await({name: future}, "cannot create the topic")
                created.append(name)
            except ClusterError as error:
                errors.append(error)
        if errors:
            self._wait_until(lambda: len(self._partitions(created)) == len(created))
            raise errors[0]

    def delete(self, names: Sequence[str]) -> tuple[str, ...]:
        """Delete topics of runs, and wait until they are deleted. Those that existed.

        A topic that was just created may become known to a broker while this waits: it is deleted too.
        """
        for name in names:
            _require_run_topic(name)
        found: dict[str, None] = {}

        def deleted() -> bool:
            there = self._partitions(names)
            new = [name for name in there if name not in found]
            if new:
                self._await(self._client.delete_topics(new, operation_timeout=_SECONDS), "cannot delete the topic")
                found.update(dict.fromkeys(new))
            return not there

        if not self._wait_until(deleted):
            raise ClusterError(f"the topics {shortened([*found])} were deleted but still exist")
        return tuple(found)

    def check_leaders(self, topics: Sequence[Topic], leader: int) -> None:
        """Raise unless, soon, this broker leads every partition and all copies are in step."""
        found: list[str] = []

        def correct() -> bool:
            found[:] = self._leadership_problems(topics, leader)
            return not found

        if not self._wait_until(correct):
            raise LeadershipError(
                f"broker {leader} should lead every partition, with all copies in step; {shortened(found)}"
            )

    def _leadership_problems(self, topics: Sequence[Topic], leader: int) -> list[str]:
        there = self._partitions([topic.name for topic in topics])
        found = [f"{topic.name} does not exist" for topic in topics if topic.name not in there]
        for topic in topics:
            partitions = there.get(topic.name, [])
            if topic.name in there and len(partitions) != topic.partitions:
                found.append(f"{topic.name} has {len(partitions)} partitions, not {topic.partitions}")
            for partition in partitions:
                if partition.leader != leader:
                    led = "no broker" if partition.leader < 0 else partition.leader
                    found.append(f"partition {partition.id} of {topic.name} is led by {led}")
                elif len(partition.isrs) != topic.replication:
                    copies = f"{len(partition.isrs)} of {topic.replication} copies"
                    found.append(f"partition {partition.id} of {topic.name} has {copies} in step")
        return found

    def require_empty(self, names: Sequence[str]) -> None:
        """Raise if any of these topics contains a record, or ever contained one."""
        held = {name: sum(ends) for name, ends in self.end_offsets(names).items() if any(ends)}
        if held:
            raise TopicNotEmpty(
                shortened([f"{name} was just created but has {count} records" for name, count in held.items()])
            )

    def end_offsets(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """The end offset of every partition: how many records were ever appended, even unreadable ones."""
        partitions = {name: len(held) for name, held in self._partitions(names).items()}
        absent = [name for name in names if name not in partitions]
        if absent:
            raise ClusterError(f"the cluster at {self.cluster.bootstrap} has no topic {shortened(absent)}")
        known: dict[tuple[str, int], int] = {}

        def complete() -> bool:
            known.update(self._offsets(partitions) or {})
            return bool(known) or not partitions

        if not self._wait_until(complete):
            raise ClusterError(
                f"the cluster at {self.cluster.bootstrap} did not return the number of records of {shortened(names)}"
            )
        return {name: tuple(known[name, n] for n in range(count)) for name, count in partitions.items()}

    def largest_batch(self, names: Sequence[str]) -> int:
        """Bytes of the largest record batch that all these topics accept; 0 if the cluster does not return it."""
        found = list[int]()
        wanted = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
        for future in self._client.describe_configs(wanted, request_timeout=_SECONDS).values():
            try:
                found.append(int(future.result(2 * _SECONDS)[_LARGEST].value))
            except KafkaException:  # DescribeConfigs may be forbidden: a batch that is too large is rejected later
                return 0
        return min(found, default=0)

    def _offsets(self, partitions: Mapping[str, int]) -> dict[tuple[str, int], int] | None:
        """The end offsets by topic and partition; None while a new leader is not ready yet."""
        latest = OffsetSpec.latest()
        wanted = {TopicPartition(name, n): latest for name, count in partitions.items() for n in range(count)}
        found = {}
        for partition, future in self._client.list_offsets(wanted, request_timeout=_SECONDS).items():
            try:
                found[partition.topic, partition.partition] = future.result(2 * _SECONDS).offset
            except KafkaException as error:
                if error.args[0].code() not in _NOT_YET:
                    raise self._error(f"did not return the number of records of {partition.topic}", error) from error
                return None
        return found

    def _partitions(self, names: Sequence[str]) -> dict[str, list[PartitionMetadata]]:
        """The partitions of those topics that exist.

        The request is about all topics: any broker responds, and it never creates one, whatever the cluster allows.
        """
        there = self._metadata().topics
        return {name: [*there[name].partitions.values()] for name in names if name in there}

    def _await(self, futures: Mapping[str, AdminFuture], failing: str) -> None:
        for name, future in futures.items():
            try:
                future.result(2 * _SECONDS)
            except KafkaException as error:
                raise self._error(f"{failing} {name}", error) from error

    def _error(self, what: str, error: KafkaException) -> ClusterError:
        """A message with the error of the cluster, and the last error of the connections to it."""
        self._client.poll(0)
        detail = f" ({self._last_error})" if self._last_error else ""
        reason = error.args[0]
        return ClusterError(f"the cluster at {self.cluster.bootstrap} {what}: {reason.str()}{detail}", reason.code())


def _require_run_topic(name: str) -> None:
    if run_of(name) is None:
        raise ValueError(f"{name} does not contain the id of a run, so streamgauge does not change it")


def shortened(things: Sequence[str]) -> str:
    """The first few of some things, and how many more there are."""
    more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
    return f"{'; '.join(things[:_SHOWN])}{more}"
