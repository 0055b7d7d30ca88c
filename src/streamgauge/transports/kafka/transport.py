"""Kafka as a transport: topics between load generator and system under test, and for its outputs.

Nothing here imports confluent-kafka before a cluster is used, so that it need not be installed.
"""

import secrets as random_tokens
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from streamgauge.install.requirements import JavaRuntime, PythonPackage, Requirement
from streamgauge.model.options import Options
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import Host
from streamgauge.transports.contract import (
    DriverShare,
    Endpoints,
    EventReader,
    Json,
    Leftover,
    Leftovers,
    OpenTransport,
    OutputSource,
    OutputWriter,
    Publisher,
    Secrets,
    TransportError,
)
from streamgauge.transports.kafka.brokers.config import BROKER, pinned_jars
from streamgauge.transports.kafka.cluster import Cluster, KafkaEndpoints
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.kafka.secrets import open_user_cluster, secret_variables
from streamgauge.transports.queue.transport import fine_interval

if TYPE_CHECKING:
    from streamgauge.transports.kafka.brokers.admin import KafkaAdmin

SEND_INTERVAL = 10_000_000
"""Each send is a request for every partition, and a request costs a broker a millisecond of the core that it may share
with the load driver, however few events are in it."""
_MAX_REQUESTS = 500
"""Requests per second that a broker beside the load driver processes without a loss."""
CLIENT = PythonPackage("confluent-kafka", extra="kafka", field="client")
_NOT_IN_IDENTITY = ("format", "cluster", "commit_group")
"""Options that the identity names in another way, or that change no rate."""
_CONNECT_TIMEOUT = 8.0
"""Seconds until the first response of a cluster must arrive."""


class KafkaTransport:
    """Kafka topics on local brokers or on an external cluster."""

    name = "kafka"
    title = "Kafka"
    summary = "Kafka topics between load generator and system under test, and for its outputs"
    options: type[Options] = KafkaOptions
    formats: tuple[str, ...] = get_args(FormatName)
    allowance_ns = 200_000_000
    """Partitions are not read up to the same moment, and a watermark may follow the one that is furthest."""
    start_seconds = 20.0
    broker = True
    exact_offsets = False
    queue_counts_reads = False
    usual_interval_ns = SEND_INTERVAL
    unthrottled_per_interval = 20_000
    delay_probe_rate = 2e5
    collector_limits = False

    def resolve(self, values: Mapping[str, Any]) -> KafkaOptions:
        """The options from their resolved values."""
        return KafkaOptions.from_resolved(values)

    def requirements(self, options: KafkaOptions) -> Sequence[Requirement]:
        """The client; for local brokers also Java and the jars."""
        return (CLIENT,) if options.cluster else (CLIENT, JavaRuntime(), pinned_jars(BROKER))

    def secret_variables(self, options: KafkaOptions) -> Sequence[str]:
        """Where the secrets of the external cluster are according to the experiment."""
        return secret_variables(options.cluster) if options.cluster else ()

    def check(self, options: KafkaOptions, secrets: Secrets) -> Sequence[str]:
        """Whether the external cluster responds, has enough brokers, and allows what a trial does."""
        if options.cluster is None:
            return ()
        try:
            return _check_reachable(open_user_cluster(options.cluster, secrets), options)
        except TransportError as error:
            return (f"{error}.",)

    def external(self, options: KafkaOptions) -> bool:
        """Whether the experiment names a cluster."""
        return options.cluster is not None

    def identity(self, options: KafkaOptions) -> str:
        """The format, every option that differs from its default, and the external cluster."""
        default, chosen = KafkaOptions().to_json(), options.to_json()
        changed = [
            f"{key} {chosen[key]}" for key in default if key not in _NOT_IN_IDENTITY and chosen[key] != default[key]
        ]
        at = [f"the cluster at {options.cluster.bootstrap}"] if options.cluster else []
        return ", ".join([self.name, f"{options.format} records", *changed, *at])

    def calibrate_arguments(self, options: KafkaOptions) -> tuple[str, ...]:
        """The external cluster of an experiment, or local brokers."""
        return ("--cluster", "EXPERIMENT") if options.cluster else ("--transport", self.name)

    def send_interval_ns(self, load: float, partitions: int, latency: int) -> int:
        """As fine as the latency needs and the broker allows."""
        least = partitions * SECOND // _MAX_REQUESTS if load * partitions > _MAX_REQUESTS else 0
        return fine_interval(SEND_INTERVAL, least, latency)

    @contextmanager
    def open(self, options: KafkaOptions, run: str, host: Host, secrets: Secrets) -> Iterator[OpenTransport]:
        """Local brokers start at the first channel."""
        from streamgauge.transports.kafka.open_kafka import OpenKafka  # noqa: PLC0415 (confluent-kafka)

        cluster = open_user_cluster(options.cluster, secrets) if options.cluster else None
        kafka = OpenKafka(options, run, host, cluster)
        try:
            yield kafka
        finally:
            kafka.stop()

    def publisher(self, wire: Json, share: DriverShare) -> Publisher:
        """A producer into the topics."""
        from streamgauge.transports.kafka.publisher import KafkaPublisher  # noqa: PLC0415

        return KafkaPublisher(KafkaEndpoints.from_wire(wire["endpoints"]), self.resolve(wire["options"]), share)

    def outputs(self, wire: Json) -> OutputSource:
        """A reader of the topic of the outputs."""
        from streamgauge.transports.kafka.topics_io import TopicOutputs  # noqa: PLC0415

        return TopicOutputs(KafkaEndpoints.from_wire(wire["endpoints"]), bool(wire["updates"]))

    def endpoints(self, wire: Json) -> Endpoints:
        """The topics."""
        return KafkaEndpoints.from_wire(wire)

    def reader(self, wire: Json) -> EventReader:
        """A reader of the topics of all streams."""
        from streamgauge.transports.kafka.topics_io import KafkaEventReader  # noqa: PLC0415

        return KafkaEventReader(KafkaEndpoints.from_wire(wire))

    def writer(self, wire: Json, schema: pa.Schema) -> OutputWriter:
        """A producer into the topic of the outputs."""
        from streamgauge.transports.kafka.topics_io import TopicWriter  # noqa: PLC0415

        return TopicWriter(KafkaEndpoints.from_wire(wire), schema)

    def leftovers(self, options: KafkaOptions, secrets: Secrets) -> Leftovers | None:
        """The topics of runs on the external cluster: those with the id of a run in their name."""
        if options.cluster is None:
            return None
        from streamgauge.transports.kafka.brokers.admin import KafkaAdmin  # noqa: PLC0415 (confluent-kafka)
        from streamgauge.transports.kafka.brokers.start import wait_until  # noqa: PLC0415

        cluster = open_user_cluster(options.cluster, secrets)
        return LeftTopics(KafkaAdmin(cluster, wait_until), f"the cluster at {cluster.bootstrap}")


@dataclass(frozen=True, slots=True)
class LeftTopics:
    """The topics that runs have left on an external cluster."""

    admin: "KafkaAdmin"
    place: str
    noun: str = "topic"

    def runs(self) -> Sequence[str]:
        """The ids of the runs with topics there."""
        return [*self.admin.topics_by_run()]

    def of_runs(self, runs: Collection[str]) -> Sequence[Leftover]:
        """The topics of these runs, with the number of their partitions and records."""
        topics = {run: names for run, names in self.admin.topics_by_run().items() if run in runs}
        ends = self.admin.end_offsets([name for names in topics.values() for name in names]) if topics else {}
        return [self._described(run, name, ends[name]) for run in runs for name in topics.get(run, ())]

    def _described(self, run: str, name: str, ends: Sequence[int]) -> Leftover:
        records = sum(ends)
        document = {"run": run, "topic": name, "partitions": len(ends), "records": records}
        return Leftover(run, name, f"{name}  {records:,} records", document)

    def delete(self, leftovers: Sequence[Leftover]) -> None:
        """Delete these topics."""
        self.admin.delete([leftover.name for leftover in leftovers])


def _check_reachable(cluster: Cluster, options: KafkaOptions) -> Sequence[str]:
    """What is wrong with a cluster. Raises TransportError if it does not respond or rejects what a trial does."""
    from streamgauge.transports.kafka.brokers.admin import KafkaAdmin  # noqa: PLC0415 (confluent-kafka)
    from streamgauge.transports.kafka.brokers.start import wait_until  # noqa: PLC0415
    from streamgauge.transports.kafka.try_cluster import try_cluster  # noqa: PLC0415

    brokers = len(KafkaAdmin(cluster, wait_until).brokers(_CONNECT_TIMEOUT))
    if brokers < options.replication:
        return (
            f"The cluster at {cluster.bootstrap} has {brokers} broker{'' if brokers == 1 else 's'}, but "
            f"transport.replication is {options.replication}. Set it to {brokers} or less.",
        )
    try_cluster(cluster, options, random_tokens.token_hex(3))
    return ()


kafka = KafkaTransport()
