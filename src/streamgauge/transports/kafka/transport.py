"""The Kafka of a run: brokers of ours, started at first need, or the user's cluster; and the topics of each trial.

Brokers live as long as the run. Topics are made for one trial, checked, and removed after it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from streamgauge.install.jars import pinned
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.facts import ClockDifference, TransportFacts
from streamgauge.processes.clock import Clock
from streamgauge.processes.launch import Launcher, Process
from streamgauge.transports.kafka.brokers.admin import Administration
from streamgauge.transports.kafka.brokers.start import (
    Brokers,
    broker_runtime,
    ending,
    start_brokers,
    until,
    warm_brokers,
)
from streamgauge.transports.kafka.client.producer import Part, open_producer
from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.client.reader import read_topic
from streamgauge.transports.kafka.clock_offset import ClockOffset
from streamgauge.transports.kafka.cluster import Cluster, KafkaEnds
from streamgauge.transports.kafka.options import KafkaOptions, kafka_options
from streamgauge.transports.kafka.topics import Topic, topic_name

OUTPUTS = "outputs"
"""What the topic of the outputs is called after the trial's number."""
_CLOCK, _WARM = "clock", "warm"
_PROBES = 40
_STORING = 10.0
"""Seconds that the log may take to hold what was acknowledged: a producer that waits for no answer is ahead of it."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What the Kafka of a run stands on: where jars are, where sockets go, or the cluster that the user has."""

    cache: Path | None = None
    runtime: Path | None = None
    cluster: Cluster | None = None


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of one trial, made and empty."""

    ends: KafkaEnds
    kafka: "Kafka"
    leader: int
    clock: str
    """A topic for probes of the broker's clock, on the same broker."""

    def probe_clock(self) -> dict[str, int] | None:
        """How far the broker's clock is from ours: single records are sent and waited for, one after the other."""
        clock, offset = Clock(), ClockOffset()
        one = Part(None, np.zeros((1, 1), np.uint8), np.zeros(1, np.int64))
        producer = open_producer(self.ends.cluster, self.clock, clock.monotonic_ns)
        around: list[tuple[int, int]] = []
        try:
            for _ in range(_PROBES):
                sent = clock.wall_ns()
                producer.publish({0: one})
                producer.flush(_STORING)
                around.append((sent, clock.wall_ns()))
        finally:
            producer.close()
        stamps = read_topic(self.ends.cluster, self.clock).column("timestamp").to_pylist()
        for stamp, (sent, acknowledged) in zip(stamps[-_PROBES:], around, strict=True):
            offset.see(stamp, sent, acknowledged)
        return offset.said()

    def stored(self, at_least: int = 0) -> int:
        """Events that the logs of the inputs hold, once they are so many or a while is over."""
        found = 0

        def enough() -> bool:
            nonlocal found
            found = sum(sum(ends) for ends in self.kafka.administration().ends([*self.ends.inputs.values()]).values())
            return found >= at_least

        until(enough, _STORING)
        return found


@dataclass(slots=True)
class Kafka:
    """A context manager: what it started is gone when it is left."""

    options: KafkaOptions
    run: str
    """The run's id: topics carry it."""
    folder: Path
    """Where logs and data of brokers go."""
    ground: Ground
    say: Callable[[str], None] = lambda _: None
    warm: bool = True
    """Brokers of ours are warmed up before anything is measured with them."""
    _launcher: Launcher | None = field(default=None, repr=False)
    _brokers: Brokers | None = field(default=None, repr=False)
    _administration: Administration | None = field(default=None, repr=False)
    _rounds: tuple[int, ...] = ()
    """Requests of each second in which its brokers were warmed up."""

    def stand(self, cores: tuple[int, ...]) -> Cluster:
        """The cluster; brokers of ours are started on these cores if they do not stand."""
        if self.options.cluster is not None:
            if self.ground.cluster is None:
                raise KafkaFailure(
                    "the external cluster of the experiment cannot be used, because its secrets are missing"
                )
            return self.ground.cluster
        if self._brokers is None or self.fallen():
            self.stop()
            self._start(cores)
        assert self._brokers is not None
        return self._brokers.cluster

    def _start(self, cores: tuple[int, ...]) -> None:
        if self.ground.cache is None:
            raise KafkaFailure("the jars of the local broker are missing; run `streamgauge setup kafka`")
        count = self.options.brokers
        self.say(f"Starting {count} local Kafka broker{'' if count == 1 else 's'}")
        self._launcher = Launcher(self.ground.runtime)
        runtime = broker_runtime(self.ground.cache, self._launcher, lambda *_: None, cores)
        taken = sum(1 for _ in self.folder.glob("kafka-*")) if self.folder.exists() else 0
        folder = self.folder / f"kafka-{taken + 1}"
        self._brokers = start_brokers(runtime, folder, self._launcher, count=count, practise=self._practise)

    def _practise(self, cluster: Cluster) -> None:
        """Nothing is measured with a broker that is not warm."""
        if not self.warm:
            return
        self.say("Warming up the local broker until its request times are stable")
        self._rounds = warm_brokers(Administration(cluster, until), Topic(topic_name(self.run, 0, _WARM), 1))

    def administration(self) -> Administration:
        """The cluster, asked and told."""
        cluster = self.stand(()) if self._brokers is None else self._brokers.cluster
        if self._administration is None or self._administration.cluster is not cluster:
            self._administration = Administration(cluster, until)
        return self._administration

    @contextmanager
    def topics(self, trial: int, streams: Iterable[str], partitions: int, cores: tuple[int, ...]) -> Iterator[Topics]:
        """Fresh topics for a trial, all led by one broker; they are removed in the end."""
        cluster = self.stand(cores)
        inputs = {stream: topic_name(self.run, trial, stream) for stream in streams}
        output = topic_name(self.run, trial, OUTPUTS)
        clock = topic_name(self.run, trial, _CLOCK)
        made = [Topic(name, partitions, self.options.replication) for name in (*inputs.values(), output)]
        made.append(Topic(clock, 1, self.options.replication))
        group = next(iter(inputs.values())) if self.options.commit_group else ""
        try:
            leader = self.administration().create(made)
            largest = self.administration().largest_batch([topic.name for topic in made])
            yield Topics(KafkaEnds(cluster, inputs, output, self.options.format, group, largest), self, leader, clock)
        finally:
            if not self.fallen():  # their data go with the brokers
                self._remove([topic.name for topic in made])

    def _remove(self, names: list[str]) -> None:
        """What cannot be removed is said; the trial is over, and what it measured stands."""
        try:
            self.administration().delete(names)
        except KafkaFailure as error:
            self.say(f"Some topics of this run may still be on the cluster: {error}")

    @property
    def processes(self) -> tuple[Process, ...]:
        """Brokers of ours, for the monitor."""
        return self._brokers.processes if self._brokers else ()

    def fallen(self) -> str:
        """A sentence on the brokers of ours that have ended; nothing if all stand."""
        if self._brokers is None:
            return ""
        addresses = self._brokers.cluster.bootstrap.split(",")
        gone = [(p.exit_code(), number) for number, p in enumerate(self._brokers.processes)]
        said = [
            f"broker {number + 1} at {addresses[number]} ended with {ending(code)}"
            for code, number in gone
            if code is not None
        ]
        return "; ".join(said)

    def facts(self, leader: int, clock: ClockDifference | None) -> TransportFacts:
        """What is stored with a trial, whose topics this broker leads. No secret is in it."""
        options = self.options
        settings: dict[str, Any] = {
            "format": options.format,
            "replication": options.replication,
            "acks": options.acks,
            "producer": options.chosen,
            "compression": options.compression,
            "leader": leader,
        }
        if options.cluster is not None:
            name, settings = f"Kafka at {options.cluster.bootstrap}", {"cluster": options.cluster.bootstrap} | settings
        else:
            version, brokers = pinned("kafka").version, options.brokers
            name = f"Kafka {version}, {brokers} local broker{'' if brokers == 1 else 's'}"
            settings = {"version": version, "brokers": brokers, "warm": [*self._rounds]} | settings
        copies = f"{options.replication} {'copy' if options.replication == 1 else 'copies'}"
        sentence = f"{name}, {options.format} records, {copies}, acks {options.acks}"
        return TransportFacts("kafka", sentence, settings, clock)

    def stop(self) -> None:
        """End brokers of ours."""
        try:
            if self._brokers is not None:
                self._brokers.stop()
        finally:
            self._brokers = self._administration = None
            if self._launcher is not None:
                self._launcher.close()
                self._launcher = None

    def __enter__(self) -> "Kafka":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def kafka_of(
    choice: TransportChoice, run: str, folder: Path, ground: Ground, say: Callable[[str], None] = lambda _: None
) -> Kafka | None:
    """The Kafka of a run; None where its events are on the queue."""
    options = kafka_options(choice)
    return Kafka(options, run, folder, ground, say) if options else None
