"""Purchases for tests, ready to be sent into a topic of the shared broker, and the producers that send them."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from kafka_broker import shared

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.run.driver.send_schedule import Source, open_source
from streamgauge.transports.kafka.client.producer import Kind, Part, Producer, Sending, Tick, open_producer
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.formats.formats import keys_of, numbered, open_format
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.data.shopping import PURCHASE_STREAM
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

PARTITIONS = 3
ORIGIN = 1_800_000_000 * SECOND
KINDS: tuple[Kind, ...] = ("vectorised", "confluent")


def source(partitions: int = PARTITIONS) -> Source:
    """Purchases, 300,000 in a second."""
    inputs = Inputs({PURCHASE_STREAM.name: constant(300_000).plan(SECOND)}, seed=3, origin_ns=ORIGIN)
    return open_source(
        windowed_aggregation, WindowedAggregationParams(), PURCHASE_STREAM, inputs, partitions=partitions
    )


def part(events: Source, partition: int, start: int, stop: int, form: FormatName = "binary") -> Part:
    """The events at some offsets of a partition, ready to be sent."""
    made = events.batch(partition, start, stop)
    rows = numbered(made, start * events.partitions + partition, events.partitions)
    due = made.column("due").view(pa.int64()).to_numpy()
    keys = keys_of(made.column("gem_pack_id").to_numpy())
    return Part(keys, open_format(form, rows.schema).encode(rows), due)


def ticks(rows: int, count: int, form: FormatName = "binary") -> Iterator[Tick]:
    """So many ticks of so many events in each partition."""
    events = source()
    for tick in range(count):
        yield {p: part(events, p, tick * rows, (tick + 1) * rows, form) for p in range(PARTITIONS)}


def send(producer: Producer, all_of_them: Iterable[Tick]) -> None:
    """Publish ticks one after the other, and wait until they are acknowledged."""
    for tick in all_of_them:
        producer.publish(tick)
    producer.flush(20)


@contextmanager
def producing(topic: str, kind: Kind = "vectorised", sending: Sending | None = None) -> Iterator[Producer]:
    producer = open_producer(shared().cluster, topic, time.monotonic_ns, sending, kind)
    try:
        yield producer
    finally:
        producer.close()
