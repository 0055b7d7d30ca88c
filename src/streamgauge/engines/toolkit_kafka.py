"""Engines that read and write Kafka: the position of a job as its consumer group commits it, and a job in plain Python.

Nothing here imports confluent-kafka before a topic is used, so that engines can be listed without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamgauge.engines.contract import JobRun, Position
from streamgauge.engines.toolkit import ChildSpec, ControlledChild, ProcessDeployment
from streamgauge.model.facts import EngineFacts
from streamgauge.model.streams import StreamPartition, schema_of
from streamgauge.processes.child import hide_pandas, log, on_sigterm, read_spec
from streamgauge.processes.clock import Clock, wait_until
from streamgauge.processes.control import ControlRefused, ControlServer, Json
from streamgauge.transports.kafka.cluster import KafkaEndpoints
from streamgauge.transports.kafka.formats.formats import open_format, with_sequence
from streamgauge.transports.kafka.topics_io import TopicWriter
from streamgauge.workloads.parameters import watermark_of
from streamgauge.workloads.registry import workloads

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

NOTHING_READ = -(1 << 62)
"""The low watermark while a partition exists of which no event was read."""
_ANSWER = 1.0
"""Seconds that the cluster may take to return what a group has committed."""
_FIRST_ANSWER, _RETRY = 15.0, 0.1
_MICROS = 1_000
"""Microseconds in a millisecond, and nanoseconds in a microsecond."""


def group_of(endpoints: KafkaEndpoints) -> str:
    """The consumer group of a trial: the one that the transport names, else one with the name of its first topic."""
    return endpoints.group or next(iter(endpoints.inputs.values()))


def _consumer(endpoints: KafkaEndpoints) -> "Consumer":
    from confluent_kafka import Consumer  # noqa: PLC0415 - librdkafka is large

    settings = {"group.id": group_of(endpoints), "enable.auto.commit": False, "log_level": 0}
    return Consumer({**endpoints.cluster.client_settings(), **settings})


def _await_coordinator(consumer: "Consumer", partitions: list["TopicPartition"]) -> None:
    """Wait until the cluster can store the offsets of a group. A new cluster creates the topic for them at first use,
    which must not happen under load."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    failures: list[KafkaException] = []

    def answers() -> bool:
        try:
            consumer.committed(partitions, timeout=_ANSWER)
        except KafkaException as error:
            failures.append(error)
            return False
        return True

    if not wait_until(answers, _FIRST_ANSWER, _RETRY):
        raise failures[-1]


def _topic_partitions(endpoints: KafkaEndpoints, offset: int) -> list["TopicPartition"]:
    from confluent_kafka import TopicPartition  # noqa: PLC0415

    topics, partitions = endpoints.inputs.values(), range(endpoints.partitions)
    return [TopicPartition(topic, partition, offset) for topic in topics for partition in partitions]


class KafkaDeployment(ProcessDeployment):
    """A process whose position is what its consumer group has committed."""

    def __init__(self, child: ControlledChild, facts: EngineFacts, endpoints: KafkaEndpoints) -> None:
        super().__init__(child, facts)
        self._streams = {topic: stream for stream, topic in endpoints.inputs.items()}
        self._consumer: Consumer | None = _consumer(endpoints)
        self._partitions = _topic_partitions(endpoints, -1)
        self._committed: Mapping[StreamPartition, int] = {}

    def position(self) -> Position | None:
        """What the group has committed at the moment of this call, if it is more than at the last one."""
        from confluent_kafka import KafkaException  # noqa: PLC0415

        if self._consumer is None:
            return None
        try:
            found = self._consumer.committed(self._partitions, timeout=_ANSWER)
        except KafkaException:  # another check notices that the cluster has ended
            return None
        committed = {
            StreamPartition(self._streams[each.topic], each.partition): each.offset
            for each in found
            if each.error is None and each.offset >= 0
        }
        if committed == self._committed:
            return None
        self._committed = committed
        return Position(committed, Clock().monotonic_ns())

    def end(self) -> None:
        """End the process, and request no further position."""
        super().end()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def kafka_deployment(process: ControlledChild, run: JobRun[Any], version: str) -> KafkaDeployment:
    """The deployment of a process that reads the topics of a trial and commits what it has finished to a group.

    ``group_of`` is the group that it must use.
    """
    facts = EngineFacts(
        name=process.process.name,
        version=version,
        options=run.trial.options,
        queue="published − offsets that its consumer group has committed",
    )
    return KafkaDeployment(process, facts, KafkaEndpoints.from_wire(run.endpoints.wire()))


class KafkaJob:
    """The job of one trial in plain Python: it polls events as dictionaries, and writes outputs as dictionaries.

    All times are whole microseconds since 1970.
    """

    def __init__(self, spec: ChildSpec) -> None:
        self.params, self.options = spec.params, spec.options
        params = workloads()[spec.workload].params.from_resolved(spec.params)
        self._endpoints = KafkaEndpoints.from_wire(spec.endpoints)
        self._query, self._outputs = spec.workload, schema_of(self._endpoints.output_schema)
        self._formats = {
            topic: open_format(self._endpoints.format, with_sequence(schema_of(self._endpoints.schemas[stream])))
            for stream, topic in self._endpoints.inputs.items()
        }
        self._streams = {topic: stream for stream, topic in self._endpoints.inputs.items()}
        partitions = _topic_partitions(self._endpoints, 0)
        self._newest = {(each.topic, each.partition): NOTHING_READ for each in partitions}
        self._next = {(each.topic, each.partition): 0 for each in partitions}
        self._committed = dict(self._next)
        self._watermark = -(-watermark_of(params) // _MICROS)
        self._stopping, self._batches = False, 0
        self._writer = TopicWriter(self._endpoints, self._outputs)
        self._consumer = _consumer(self._endpoints)
        _await_coordinator(self._consumer, partitions)
        self._consumer.assign(partitions)

    def running(self) -> bool:
        """Whether the trial continues."""
        return not self._stopping

    def stop(self) -> None:
        """Read nothing more. It only sets a flag."""
        self._stopping = True

    def poll(self, most: int, seconds: float = 0.1) -> list[dict[str, Any]]:
        """The events that arrive within this time, at most so many, those of a partition in their order.

        Each has the columns of its stream, and also ``stream``, ``sequence`` (its number in the stream) and
        ``ingested``, the moment at which the broker appended it.
        """
        from confluent_kafka import KafkaException  # noqa: PLC0415

        by_topic: dict[str, list[Any]] = {}
        for message in self._consumer.consume(most, seconds):
            if message.error() is not None:
                raise KafkaException(message.error())
            by_topic.setdefault(str(message.topic()), []).append(message)
        return [event for topic, messages in by_topic.items() for event in self._events(topic, messages)]

    def _events(self, topic: str, messages: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """The events of one topic; which of them were read is noted before any is returned."""
        rows = self._formats[topic].decode(pa.array([message.value() for message in messages], pa.binary()))
        events = pa.RecordBatch.from_arrays(
            [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in rows.columns],
            names=rows.schema.names,
        ).to_pylist()
        for event, message in zip(events, messages, strict=True):
            place = (topic, message.partition())
            self._newest[place] = max(self._newest[place], event["due"])
            self._next[place] = message.offset() + 1
            event |= {"stream": self._streams[topic], "ingested": message.timestamp()[1] * _MICROS}
        yield from events

    def low_watermark(self) -> int:
        """No event that is due before this moment comes any more: events of a partition come in their order.

        While no event of some partition was read, it is a moment before all events.
        """
        return min(self._newest.values()) - self._watermark

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write outputs with the columns of the workload's outputs; returns when the broker has them."""
        if not rows:
            return
        batch = pa.RecordBatch.from_pylist(rows, schema=self._outputs)
        partition = self._batches % self._endpoints.partitions
        self._writer.put(self._query, self._batches, self._outputs, [batch], partition=partition)
        self._batches += 1

    def commit(self) -> None:
        """All events that were returned by ``poll`` are finished: commit their offsets to the group."""
        from confluent_kafka import TopicPartition  # noqa: PLC0415

        changed = [(place, offset) for place, offset in self._next.items() if offset != self._committed[place]]
        if changed:
            offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in changed]
            self._consumer.commit(offsets=offsets, asynchronous=False)
            self._committed |= dict(changed)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
        self._writer.close()


@contextmanager
def kafka_job() -> Iterator[KafkaJob]:
    """The job of this process, which ``toolkit.python_child`` has started: its topics are open, and it is ready."""
    hide_pandas()
    spec = ChildSpec.model_validate_json(read_spec())
    ControlServer(spec.control, spec.token).serve_in_background(_no_actions)
    job = KafkaJob(spec)
    on_sigterm(job.stop)
    log("ready")
    try:
        yield job
    finally:
        job.close()


def _no_actions(action: str, content: Json) -> Json:
    raise ControlRefused(f"this job has no action {action}")
