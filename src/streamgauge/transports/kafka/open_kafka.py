"""The Kafka of a run: local brokers, started at first need, or the user's cluster; and the topics of each trial.

Brokers run as long as the run. Topics are created for one trial, checked, and deleted after it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamgauge.model.facts import BROKER, TransportFacts
from streamgauge.processes.clock import Clock, wait_until
from streamgauge.processes.spec import Host, RunningProcess
from streamgauge.transports.contract import Channel, ChannelSpec, Endpoints, Json, TransportError
from streamgauge.transports.kafka.brokers.admin import KafkaAdmin
from streamgauge.transports.kafka.brokers.config import BROKER as BROKER_JARS
from streamgauge.transports.kafka.brokers.config import pinned_jars
from streamgauge.transports.kafka.brokers.start import (
    BrokerCluster,
    installed_runtime,
    start_brokers,
    warm_brokers,
)
from streamgauge.transports.kafka.brokers.start import wait_until as broker_wait
from streamgauge.transports.kafka.client.producer import RecordColumns, TopicPartition, open_producer
from streamgauge.transports.kafka.client.reader import read_topic
from streamgauge.transports.kafka.clock_offset import ClockOffset
from streamgauge.transports.kafka.cluster import Cluster, KafkaEndpoints
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.kafka.topics import Topic, topic_name

OUTPUTS = "outputs"
"""The end of the name of the topic of the outputs."""
_CLOCK, _WARM = "clock", "warm"
_PROBES = 40
_STORE_TIMEOUT = 10.0
"""Seconds until the log has what was confirmed: a producer that waits for no response is ahead of it."""


@dataclass(frozen=True, slots=True)
class KafkaChannel:
    """The topics of one trial, created and empty."""

    kafka: "OpenKafka"
    topics: KafkaEndpoints
    leader: int
    clock_topic: str
    """A topic for probes of the broker's clock, on the same broker."""
    updates: bool

    @property
    def endpoints(self) -> Endpoints:
        """Where the system under test reads and writes."""
        return self.topics

    def driver_wire(self, driver: int) -> Json:
        """The topics, and how events are sent."""
        return {"endpoints": self.topics.wire(), "options": self.kafka.options.to_json()}

    def collector_wire(self) -> Json:
        """The topics, and whether windows may be emitted many times."""
        return {"endpoints": self.topics.wire(), "updates": self.updates}

    def audit(self, sent: int, acknowledged: int) -> Sequence[str]:
        """What was sent, acknowledged and stored must be one number before anything is judged."""
        stored = self.stored_count(sent)
        if sent == acknowledged == stored:
            return ()
        return (
            f"{sent:,} events were sent, the broker acknowledged {acknowledged:,}, and its log contains {stored:,}: "
            "events were lost or duplicated between generator and broker",
        )

    def stored_count(self, at_least: int = 0) -> int:
        """Events that the logs of the inputs have, once they are so many or some time has passed."""
        found = 0

        def enough() -> bool:
            nonlocal found
            ends = self.kafka.admin().end_offsets([*self.topics.inputs.values()])
            found = sum(sum(each) for each in ends.values())
            return found >= at_least

        wait_until(enough, _STORE_TIMEOUT)
        return found

    def clock_bounds(self) -> Json | None:
        """The offset of the broker's clock: single records are sent and waited for, one after the other."""
        clock, offset = Clock(), ClockOffset()
        one = RecordColumns(None, np.zeros((1, 1), np.uint8), np.zeros(1, np.int64))
        producer = open_producer(self.topics.cluster, [self.clock_topic], clock.monotonic_ns)
        around: list[tuple[int, int]] = []
        try:
            for _ in range(_PROBES):
                sent = clock.wall_ns()
                producer.publish({TopicPartition(self.clock_topic, 0): one})
                producer.flush(_STORE_TIMEOUT)
                around.append((sent, clock.wall_ns()))
        finally:
            producer.close()
        stamps = read_topic(self.topics.cluster, self.clock_topic).column("timestamp").to_pylist()
        for stamp, (sent, acknowledged) in zip(stamps[-_PROBES:], around, strict=True):
            offset.add(stamp, sent, acknowledged)
        return offset.bounds()

    def facts(self) -> TransportFacts:
        """What is stored with a trial. No secret is in it."""
        return self.kafka.facts(self.leader)


class OpenKafka:
    """A context manager: it ends what it started when it is left."""

    def __init__(self, options: KafkaOptions, run: str, host: Host, cluster: Cluster | None, warm: bool = True) -> None:
        """``cluster`` is the user's, if the options name one; local brokers are warmed up if ``warm``."""
        self.options, self.run, self._host, self._user_cluster, self._warm = options, run, host, cluster, warm
        self._brokers: BrokerCluster | None = None
        self._admin: KafkaAdmin | None = None
        self._warm_up_rounds: tuple[int, ...] = ()

    def ensure_up(self) -> Cluster:
        """The cluster; local brokers are started if they do not run."""
        if self.options.cluster is not None:
            if self._user_cluster is None:
                raise TransportError(
                    "the external cluster of the experiment cannot be used, because its secrets are missing"
                )
            return self._user_cluster
        if self._brokers is None or self.failure():
            self.stop()
            self._start()
        assert self._brokers is not None
        return self._brokers.cluster

    def _start(self) -> None:
        count, host = self.options.brokers, self._host
        host.say(f"Starting {count} local Kafka broker{'' if count == 1 else 's'}")
        runtime = installed_runtime(host.cache, host.cores)
        taken = sum(1 for _ in host.logs.glob("kafka-*")) if host.logs.exists() else 0
        folder = host.logs / f"kafka-{taken + 1}"
        self._brokers = start_brokers(runtime, folder, host, count=count, warm_up=self._warm_up)

    def _warm_up(self, cluster: Cluster) -> None:
        """Nothing is measured with a broker that is not warm."""
        if not self._warm:
            return
        self._host.say("Warming up the local broker until its request times are stable")
        admin = KafkaAdmin(cluster, broker_wait)
        self._warm_up_rounds = warm_brokers(admin, Topic(topic_name(self.run, 0, _WARM), 1))

    def admin(self) -> KafkaAdmin:
        """The administration of the cluster."""
        cluster = self.ensure_up()
        if self._admin is None or self._admin.cluster is not cluster:
            self._admin = KafkaAdmin(cluster, broker_wait)
        return self._admin

    @contextmanager
    def channel(self, spec: ChannelSpec) -> Iterator[Channel]:
        """Fresh topics for a trial, all led by one broker; they are deleted at the end."""
        cluster = self.ensure_up()
        inputs = {stream.name: topic_name(self.run, spec.trial, stream.name) for stream in spec.streams}
        output, clock = (topic_name(self.run, spec.trial, name) for name in (OUTPUTS, _CLOCK))
        made = [Topic(name, spec.partitions, self.options.replication) for name in (*inputs.values(), output)]
        made.append(Topic(clock, 1, self.options.replication))
        try:
            leader = self.admin().create(made)
            endpoints = KafkaEndpoints(
                cluster=cluster,
                inputs=inputs,
                output=output,
                format=self.options.format,
                group=next(iter(inputs.values())) if self.options.commit_group else "",
                largest=self.admin().largest_batch([topic.name for topic in made]),
                partitions=spec.partitions,
                schemas={stream.name: stream.schema for stream in spec.streams},
                output_schema=spec.output.schema,
                output_key=next((stream.key for stream in spec.streams if stream.key), None),
            )
            yield KafkaChannel(self, endpoints, leader, clock, spec.updates)
        finally:
            if not self.failure():  # their data are removed with the brokers
                self._remove([topic.name for topic in made])

    def _remove(self, names: list[str]) -> None:
        """What cannot be deleted is reported; the trial is over, and what it measured stays."""
        try:
            self.admin().delete(names)
        except TransportError as error:
            self._host.say(f"Some topics of this run may still be on the cluster: {error}")

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """Local brokers, for the monitor."""
        return {BROKER: self._brokers.processes if self._brokers else ()}

    def failure(self) -> str:
        """A sentence on the local brokers that have ended; empty if all run."""
        return "; ".join(self._brokers.failures) if self._brokers else ""

    def facts(self, leader: int) -> TransportFacts:
        """What is stored with a trial."""
        o = self.options
        settings: dict[str, Any] = {
            "format": o.format,
            "replication": o.replication,
            "acks": o.acks,
            "producer": o.producer_used,
            "compression": o.compression,
            "leader": leader,
        }
        copies = "1 copy" if o.replication == 1 else f"{o.replication} copies"
        how = f"{o.format} records, {copies}, acks {o.acks}"
        if o.cluster is not None:
            settings = {"cluster": o.cluster.bootstrap, **settings}
            return TransportFacts("kafka", f"Kafka at {o.cluster.bootstrap}, {how}", settings)
        version = pinned_jars(BROKER_JARS).version
        settings = {"version": version, "brokers": o.brokers, "warm": [*self._warm_up_rounds], **settings}
        brokers = "1 local broker" if o.brokers == 1 else f"{o.brokers} local brokers"
        return TransportFacts("kafka", f"Kafka {version}, {brokers}, {how}", settings)

    def stop(self) -> None:
        """End local brokers."""
        try:
            if self._brokers is not None:
                self._brokers.stop()
        finally:
            self._brokers = self._admin = None
