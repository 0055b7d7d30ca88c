"""Records per second into Kafka and their cost: the vectorised producer, Kafka's own performance tool, confluent-kafka.

All send the same: values of so many bytes, no keys, one partition, the same acks, batches and linger. The producer runs
on the load driver's core, the broker on the other one. Then the whole generator, with events that are made and encoded.
"""

import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamgauge.cli.environment import cache_folder
from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND, format_duration, format_rate
from streamgauge.processes.child import hide_pandas, low_latency_mode
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import assign_cores
from streamgauge.run.driver.journals import p99
from streamgauge.run.driver.send_schedule import StreamSource, open_source
from streamgauge.transports.kafka.brokers.admin import KafkaAdmin
from streamgauge.transports.kafka.brokers.config import BrokerRuntime
from streamgauge.transports.kafka.brokers.start import installed_runtime, start_brokers, wait_until
from streamgauge.transports.kafka.client.producer import (
    Producer,
    ProducerKind,
    ProducerSettings,
    RecordColumns,
    TopicPartition,
    open_producer,
)
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import encode_keys, open_format, with_sequence, with_sequence_numbers
from streamgauge.transports.kafka.topics import Topic, topic_name
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.data.shopping import PURCHASE_STREAM
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

RECORDS = {40: 4_000_000, 100: 3_000_000, 200: 2_000_000}
FORMATS: tuple[FormatName, ...] = ("json", "binary", "avro")
RATES = (500_000, 1_000_000)
SENDING = ProducerSettings(acks="all", batch=131_072, linger=5_000_000)
CHUNK = 8_192
WAITING = 200_000
"""Records that may wait while a producer sends as fast as possible."""
TICK = 5_000_000


@dataclass(frozen=True)
class Sample:
    """One measurement."""

    records: int
    seconds: float
    cpu: float

    @property
    def rate(self) -> float:
        return self.records / self.seconds

    @property
    def cost(self) -> float:
        """CPU seconds per million records."""
        return self.cpu / self.records * 1e6


@dataclass(frozen=True)
class Bench:
    """A broker, and what is needed to send to it."""

    cluster: Cluster
    runtime: BrokerRuntime
    admin: KafkaAdmin

    @contextmanager
    def topic(self) -> Iterator[str]:
        """A topic of one partition, whose data are deleted with it immediately."""
        name = topic_name(f"bench-{time.monotonic_ns()}", 1, "in")
        self.admin.create([Topic(name, 1, settings={"file.delete.delay.ms": "0"})])
        yield name
        self.admin.delete([name])

    @contextmanager
    def producer(
        self, kind: ProducerKind, sending: ProducerSettings = SENDING
    ) -> Iterator[tuple[Producer, TopicPartition]]:
        """A producer, and the partition of the topic that it sends to."""
        with self.topic() as topic:
            producer = open_producer(self.cluster, [topic], time.monotonic_ns, sending, kind)
            yield producer, TopicPartition(topic, 0)
            producer.close()


def unthrottled(producer: Producer, place: TopicPartition, parts: Iterator[RecordColumns]) -> Sample:
    """Send as fast as possible, until all is acknowledged."""
    records, began, cpu = 0, time.monotonic(), time.process_time()
    for part in parts:
        producer.publish({place: part})
        records += len(part.values)
        while producer.unacknowledged > WAITING:
            producer.poll(0.01)
    producer.flush(60)
    sample = Sample(records, time.monotonic() - began, time.process_time() - cpu)
    assert producer.acknowledged() == {place: records}
    return sample


def ready(size: int, records: int) -> Iterator[RecordColumns]:
    """The same random bytes again and again, as Kafka's tool sends them, due now."""
    values = np.random.default_rng(1).integers(0, 256, (CHUNK, size), np.uint8)
    for start in range(0, records, CHUNK):
        rows = min(CHUNK, records - start)
        yield RecordColumns(None, values[:rows], np.full(rows, time.time_ns() // 1_000))


def python(bench: Bench, kind: ProducerKind, size: int) -> Sample:
    with bench.producer(kind) as (producer, place):
        return unthrottled(producer, place, ready(size, RECORDS[size]))


def java(bench: Bench, size: int, records: int, idle: float = 0.0) -> Sample:
    """Kafka's own tool. The CPU time that a JVM takes to start (``idle``) is not held against it."""
    settings = {
        "acks": SENDING.acks,
        "batch.size": SENDING.batch,
        "linger.ms": SENDING.linger // 1_000_000,
        "max.in.flight.requests.per.connection": SENDING.in_flight,
    }
    with bench.topic() as topic:
        words = [str(bench.runtime.java), "-Xmx512m", "-cp", f"{bench.runtime.jars}/*"]
        words += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "org.apache.kafka.tools.ProducerPerformance"]
        words += ["--topic", topic, "--num-records", str(records), "--record-size", str(size), "--throughput", "-1"]
        words += ["--command-property", f"bootstrap.servers={bench.cluster.bootstrap}"]
        words += [f"{name}={value}" for name, value in settings.items()]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as tool:
            assert tool.stdout is not None
            said = tool.stdout.read()
            _, status, usage = os.wait4(tool.pid, 0)
            tool.returncode = os.waitstatus_to_exitcode(status)
        told = re.findall(rf"^{records} records sent, ([\d.]+) records/sec", said, re.MULTILINE)
        assert told, said
        return Sample(records, records / float(told[-1]), usage.ru_utime + usage.ru_stime - idle)


def source(rate: float, seconds: float) -> StreamSource:
    """Purchases at this rate, due from now on."""
    plan = constant(rate).plan(int(seconds * SECOND))
    inputs = Inputs({PURCHASE_STREAM.name: plan}, seed=1, origin_ns=time.time_ns())
    return open_source(windowed_aggregation, WindowedAggregationParams(), PURCHASE_STREAM, inputs, partitions=1)


def made(events: StreamSource, form: FormatName) -> Callable[[int, int], RecordColumns]:
    """Makes and encodes the events at some offsets."""
    encode = open_format(form, with_sequence(events.schema)).encode

    def part(start: int, stop: int) -> RecordColumns:
        rows = events.batch(0, start, stop)
        keys = encode_keys(rows.column("gem_pack_id").to_numpy())
        return RecordColumns(
            keys, encode(with_sequence_numbers(rows, start)), rows.column("due").view(pa.int64()).to_numpy()
        )

    return part


def generator(bench: Bench, form: FormatName, records: int = 3_000_000) -> Sample:
    """Events made, encoded and sent, as fast as possible."""
    part = made(source(1_000_000, 10), form)
    with bench.producer("vectorised", ProducerSettings()) as (producer, place):
        return unthrottled(producer, place, (part(start, start + CHUNK) for start in range(0, records, CHUNK)))


def paced(bench: Bench, form: FormatName, rate: int, seconds: float = 5.0) -> str:
    """The generator on its schedule: its send delay, and its share of a core."""
    part, rows = made(source(rate, seconds + 1), form), rate * TICK // SECOND
    lags = np.zeros(int(seconds * SECOND) // TICK, np.int64)
    with bench.producer("vectorised", ProducerSettings()) as (producer, place):
        part(0, rows)
        begin, cpu = time.monotonic_ns() + TICK, time.process_time()
        for tick in range(len(lags)):
            ahead, due = part(tick * rows, (tick + 1) * rows), begin + (tick + 1) * TICK
            while (left := due - time.monotonic_ns()) > 0:
                producer.poll(left / SECOND)
            producer.publish({place: ahead})
            lags[tick] = time.monotonic_ns() - due
        producer.flush(20)
        share = (time.process_time() - cpu) / seconds
    shown = {"p50": np.median(lags), "p99": p99(lags), "max": lags.max()}
    text = "  ".join(f"{name} {format_duration(int(lag))}" for name, lag in shown.items())
    return f"  {form:8} at {format_rate(rate):>7}  send delay {text}  {share:.0%} of a core"


def shown(name: str, samples: list[Sample], size: int) -> tuple[float, float]:
    """Print the medians of a row; the rate and the cost."""
    rate, cost = (statistics.median(values) for values in zip(*((s.rate, s.cost) for s in samples), strict=True))
    rates = ", ".join(format_rate(sample.rate) for sample in samples)
    print(f"  {name:22} {format_rate(rate):>8} {rate * size / 1e6:7.0f} MB/s {cost:6.2f} s/M   ({rates})", flush=True)
    return rate, cost


def compare(bench: Bench, sizes: list[int], repeats: int) -> None:
    """The three producers side by side, one after the other in each repeat."""
    print(f"records into one partition, acks {SENDING.acks}, batches of {SENDING.batch:,} bytes, medians of {repeats}")
    python(bench, "vectorised", 100)  # the broker warms up
    idle = statistics.median(java(bench, 40, 1).cpu for _ in range(3))
    for size in sizes:
        rows: dict[str, list[Sample]] = {"vectorised": [], "Kafka's own tool": [], "confluent-kafka": []}
        for _ in range(repeats):
            rows["vectorised"].append(python(bench, "vectorised", size))
            rows["Kafka's own tool"].append(java(bench, size, RECORDS[size], idle))
            rows["confluent-kafka"].append(python(bench, "confluent", size))
        print(f" {size} bytes; a JVM's start of {idle:.1f} s CPU is not counted")
        (rate, cost), (java_rate, java_cost), _ = (shown(name, samples, size) for name, samples in rows.items())
        faster, cheaper = rate / java_rate, cost / java_cost
        print(f"  against Kafka's tool: {faster:.1f} x the rate (wanted 2), {cheaper:.2f} x the CPU (0.25)")


def whole(bench: Bench, repeats: int) -> None:
    """The generator from events to acknowledgements, as fast as possible and on its schedule."""
    print(f"the generator, events made, encoded and sent, batches up to 1 MB, medians of {repeats}")
    for form in FORMATS:
        width = open_format(form, with_sequence(source(1, 1).schema)).width
        shown(f"{form}, {width} bytes", [generator(bench, form) for _ in range(repeats)], width)
    for form in FORMATS:
        for rate in RATES:
            print(paced(bench, form, rate), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="*", default=[*RECORDS], choices=[*RECORDS])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-generator", action="store_true")
    arguments = parser.parse_args()
    hide_pandas()
    where = assign_cores(1)
    with tempfile.TemporaryDirectory(prefix="sgb") as name, Launcher(Path(name)) as launcher:
        runtime = installed_runtime(cache_folder(), where.sut)
        with start_brokers(runtime, Path(name) / "logs", launcher) as brokers:
            if where.driver:
                os.sched_setaffinity(0, where.driver)
            low_latency_mode()
            print(f"producers on core {where.driver}, the broker on core {where.sut}")
            bench = Bench(brokers.cluster, runtime, KafkaAdmin(brokers.cluster, wait_until))
            if arguments.sizes:
                compare(bench, arguments.sizes, arguments.repeats)
            if not arguments.no_generator:
                whole(bench, arguments.repeats)


if __name__ == "__main__":
    main()
