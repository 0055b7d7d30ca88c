"""A query of Spark on a topic of the shared broker, without a driver: the events are sent from here, and a door of the
queue's kind counts what Spark says it has done."""

import secrets
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from kafka_broker import administration, shared
from spark_trial import PLACEMENT, until

from streamgauge.cli.cache import cache_folder
from streamgauge.engines.base import Deployment, Endpoints, Ground
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.deploy import SparkSession
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.run.launch import Launcher
from streamgauge.transport.backlog import Lane
from streamgauge.transport.kafka.ends import KafkaEnds
from streamgauge.transport.kafka.formats import FormatName, keys_of, numbered, open_format, with_sequence
from streamgauge.transport.kafka.producer import Part, open_producer
from streamgauge.transport.kafka.reader import read_topic
from streamgauge.transport.kafka.topics import Topic, topic_name
from streamgauge.transport.queue_server import QueueServer
from streamgauge.transport.schemas import schema_of
from streamgauge.workloads.registry import workloads

TICK = 0.05
STREAM = "purchases"


class Counting:
    """Stands for a backlog: lanes, what was published and what was acknowledged."""

    def __init__(self, lanes: tuple[Lane, ...]) -> None:
        self.published = dict.fromkeys(lanes, 0)
        self.done = dict.fromkeys(lanes, 0)
        self.acks: list[tuple[int, int]] = []
        """Moment and events in sum, for each acknowledgement."""

    def cut(self, due: int | None) -> tuple[int | None, dict[Lane, int]]:
        return due, dict(self.published)

    def offsets(self) -> dict[Lane, tuple[int, int]]:
        return {lane: (self.done[lane], end) for lane, end in self.published.items()}

    def acknowledge(self, offsets: dict[Lane, int], now_ns: int) -> "Counting":
        self.done |= offsets
        self.acks.append((now_ns, sum(self.done.values())))
        return self

    @property
    def lag(self) -> int:
        return sum(self.published.values()) - sum(self.done.values())


@dataclass
class Filled:
    """A trial's topics, and what is sent into them."""

    trial: Trial
    form: FormatName
    ends: KafkaEnds
    origin_ns: int = 0
    sent: int = 0
    counting: Counting = field(default_factory=lambda: Counting(()))

    def send(self, seconds: float) -> None:
        """Send the events of so many seconds, each tick when it is due."""
        workload, partitions = workloads()[self.trial.workload], self.trial.partitions
        plan = self.trial.profile.plan(int(seconds + 10) * SECOND)
        self.origin_ns = time.time_ns() // 1_000_000 * 1_000_000
        assert workload.stream is not None
        stream = workload.stream(self.trial.params, plan, self.trial.seed, self.origin_ns)
        schema = schema_of(workload.schema)
        form = open_format(self.form, with_sequence(schema))
        producer = open_producer(self.ends.cluster, self.ends.inputs[STREAM], time.monotonic_ns)
        for tick in range(1, round(seconds / TICK) + 1):
            until_ns = int(tick * TICK * SECOND)
            stop = int(plan.count(until_ns)) // partitions * partitions
            parts = {}
            for partition in range(partitions):
                columns = stream.events(self.sent, stop, partitions, partition)
                arrays = [pa.array(np.asarray(columns[f.name])).view(f.type) for f in schema]
                rows = numbered(pa.RecordBatch.from_arrays(arrays, schema=schema), self.sent + partition, partitions)
                parts[partition] = Part(
                    keys_of(np.asarray(columns["gem_pack_id"], np.int64)),
                    form.encode(rows),
                    np.asarray(columns["due"], np.int64),
                )
            while time.time_ns() < self.origin_ns + until_ns:
                producer.attend(0.005)
            producer.publish(parts)
            self.sent = stop
            for partition, count in producer.acknowledged().items():
                self.counting.published[Lane(STREAM, partition)] = count
        producer.flush(20)
        for partition, count in producer.acknowledged().items():
            self.counting.published[Lane(STREAM, partition)] = count
        producer.close()

    def outputs(self, columns: tuple[tuple[str, str], ...]) -> pa.Table:
        """What came out, with the moment at which the broker appended it (``emitted_us``)."""
        records = read_topic(self.ends.cluster, self.ends.output)
        records = records.sort_by([("timestamp", "ascending"), ("offset", "ascending")])
        form = open_format(self.form, schema_of(columns))
        values = records.column("value").combine_chunks()
        rows = pa.Table.from_batches([form.decode(values.cast(pa.binary()))])
        emitted = records.column("timestamp").to_numpy() * 1_000
        return rows.append_column("emitted_us", pa.array(emitted))


@contextmanager
def kafka_session(folder: Path, trial: Trial) -> Iterator[tuple[SparkSession, Launcher]]:
    """A session that has the connector."""
    folder.mkdir(parents=True, exist_ok=True)
    cores = (*PLACEMENT.driver, *PLACEMENT.sut)
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        ground = Ground(folder, PLACEMENT.sut, cores, cache=cache_folder())
        session = spark.stand(trial.options, ground, launcher)
        try:
            yield session, launcher
        finally:
            session.stop()


@contextmanager
def serving(
    session: SparkSession, trial: Trial, folder: Path, form: FormatName = "binary", group: str = ""
) -> Iterator[tuple[Filled, Deployment]]:
    """The trial's query on fresh topics, ready to be sent to."""
    folder.mkdir(parents=True, exist_ok=True)
    run = f"test-{secrets.token_hex(4)}"
    inputs, output = {STREAM: topic_name(run, 1, STREAM)}, topic_name(run, 1, "outputs")
    administration().create([Topic(inputs[STREAM], trial.partitions), Topic(output, 1)])
    ends = KafkaEnds(shared().cluster, inputs, output, form, group)
    lanes = tuple(Lane(STREAM, number) for number in range(trial.partitions))
    filled = Filled(trial, form, ends, counting=Counting(lanes))
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        endpoint = f"grpc+unix://{short}/queue-0.sock"
        door = QueueServer(
            endpoint,
            filled.counting,  # type: ignore[arg-type]
            schemas={},
            tokens={"sut": "open"},
            lock=threading.Lock(),
            now_ns=time.monotonic_ns,
        )
        endpoints = Endpoints((endpoint,), "", trial.partitions, folder, PLACEMENT.sut, "open", ends)
        with session.serve(trial, endpoints) as deployment:
            yield filled, deployment
        door.shutdown()


def settle(filled: Filled, deployment: Deployment) -> None:
    """Wait until everything that was sent is acknowledged."""
    until(lambda: filled.counting.lag == 0 or not deployment.alive(), "the end of the topic", 60)
    assert deployment.failure() is None, deployment.failure()
