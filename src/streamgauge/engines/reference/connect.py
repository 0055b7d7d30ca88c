"""Where the reference engine reads from and writes to: queue and collector, or the topics of a trial. Chosen here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from streamgauge.engines.reference.delayed_output import SCHEMA, Writer
from streamgauge.engines.reference.engine import WorkOrder
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.outputs import OutputWriter
from streamgauge.transports.queue.reader import Cut, QueueReader

Now = Callable[[], int]


class Inlet(Protocol):
    """Where events come from."""

    def lanes(self) -> tuple[Lane, ...]: ...

    def latest(self, most: int | None = None) -> Cut: ...

    def stamped(self, lane: Lane, start: int, stop: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The events ``start … stop − 1`` of a lane, and when they were ingested, in µs since 1970."""

    def taken(self, offsets: Mapping[Lane, int]) -> None:
        """Work on everything below these offsets has begun."""

    def acknowledge(self, offsets: Mapping[Lane, int]) -> None: ...

    def close(self) -> None: ...


class Outlet(Writer, Protocol):
    """Where outputs go."""

    def status(self) -> dict[str, Any]: ...


BreakOff = Callable[[Lane, int, int], None]


class Ends(NamedTuple):
    """Both ends, and what it is to drop a partition in the middle of a stream."""

    inlet: Inlet
    outlet: Outlet
    break_off: BreakOff


class QueueInlet(QueueReader):
    """The queue; what is read is stamped as it comes, on the engine's clock."""

    def __init__(self, endpoints: Sequence[str], token: str, now_us: Now) -> None:
        super().__init__(endpoints, token)
        self._now = now_us

    def stamped(self, lane: Lane, start: int, stop: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The events of a range, and when they came."""
        for batch in self.read(lane, start, stop):
            yield batch, self._now()

    def taken(self, offsets: Mapping[Lane, int]) -> None:
        """The queue saw it when it handed the events out."""


def open_ends(order: WorkOrder, now_us: Now, now_ns: Now) -> Ends:
    """The ends that the order names. Clocks: µs since 1970, and one that only goes forward, in nanoseconds."""
    if order.kafka is None:
        return _on_the_queue(order, now_us)
    return _on_kafka(order, KafkaEnds.read(order.kafka), now_ns)


def _on_the_queue(order: WorkOrder, now_us: Now) -> Ends:
    def break_off(lane: Lane, start: int, stop: int) -> None:
        """Begin to read and hang up: the driver notices."""
        with QueueReader(order.queues, order.token) as apart:
            apart.read(lane, start, stop).read_next_batch()

    return Ends(QueueInlet(order.queues, order.token, now_us), OutputWriter(order.outputs, order.token), break_off)


def _on_kafka(order: WorkOrder, ends: KafkaEnds, now_ns: Now) -> Ends:
    from streamgauge.transports.kafka.topics_io import EventReader, TopicWriter  # noqa: PLC0415 - Kafka is an extra

    # nobody is told when a consumer of Kafka leaves a partition alone: the lag shows it
    return Ends(EventReader(order.queues, order.token, ends), TopicWriter(ends, SCHEMA, now_ns), lambda *_: None)
