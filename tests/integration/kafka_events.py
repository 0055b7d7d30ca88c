"""Purchases for tests, ready to be sent into a topic of the shared broker, and the producers that send them."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from kafka_broker import shared

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.run.driver.send_schedule import StreamSource, open_source
from streamgauge.transports.kafka.client.producer import (
    PartitionRecords,
    Producer,
    ProducerKind,
    ProducerSettings,
    RecordColumns,
    TopicPartition,
    open_producer,
)
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import encode_keys, open_format, with_sequence_numbers
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.data.shopping import PURCHASE_STREAM
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

PARTITIONS = 3
ORIGIN = 1_800_000_000 * SECOND
KINDS: tuple[ProducerKind, ...] = ("vectorised", "confluent")


def source(partitions: int = PARTITIONS) -> StreamSource:
    """Purchases, 300,000 in a second."""
    inputs = Inputs({PURCHASE_STREAM.name: constant(300_000).plan(SECOND)}, seed=3, origin_ns=ORIGIN)
    return open_source(
        windowed_aggregation, WindowedAggregationParams(), PURCHASE_STREAM, inputs, partitions=partitions
    )


def part(events: StreamSource, partition: int, start: int, stop: int, form: FormatName = "binary") -> RecordColumns:
    """The events at some offsets of a partition, ready to be sent."""
    made = events.batch(partition, start, stop)
    rows = with_sequence_numbers(made, start * events.partitions + partition, events.partitions)
    due = made.column("due").view(pa.int64()).to_numpy()
    keys = encode_keys(made.column("gem_pack_id").to_numpy())
    return RecordColumns(keys, open_format(form, rows.schema).encode(rows), due)


def ticks(topic: str, rows: int, count: int, form: FormatName = "binary") -> Iterator[PartitionRecords]:
    """So many ticks of so many events in each partition of a topic."""
    events = source()
    for tick in range(count):
        yield {
            TopicPartition(topic, p): part(events, p, tick * rows, (tick + 1) * rows, form) for p in range(PARTITIONS)
        }


def by_partition(producer: Producer, topic: str) -> dict[int, int]:
    """The acknowledged events of each partition of a topic."""
    return {place.partition: count for place, count in producer.acknowledged().items() if place.topic == topic}


def send(producer: Producer, all_of_them: Iterable[PartitionRecords]) -> None:
    """Publish ticks one after the other, and wait until they are acknowledged."""
    for tick in all_of_them:
        producer.publish(tick)
    producer.flush(20)


@contextmanager
def producing(
    topics: str | Sequence[str], kind: ProducerKind = "vectorised", settings: ProducerSettings | None = None
) -> Iterator[Producer]:
    named = [topics] if isinstance(topics, str) else topics
    producer = open_producer(shared().cluster, named, time.monotonic_ns, settings, kind)
    try:
        yield producer
    finally:
        producer.close()
