"""Events made ahead of their due time, in the idle time between ticks, and cut to size when they are due."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from streamgauge.model.options import Params
from streamgauge.model.profile import Ints, Plan
from streamgauge.model.units import SECOND
from streamgauge.transports.ledger import Lane
from streamgauge.transports.schemas import schema_of
from streamgauge.workloads.contract import EventSource, Inputs, Stream, Workload
from streamgauge.workloads.registry import workloads

MICRO = 1_000
MILLI = 1_000_000
TICK, KAFKA_TICK = 5 * MILLI, 10 * MILLI
"""From one tick to the next. On Kafka each is a request for every partition, and a request costs a broker a millisecond
of the core that it may share with the driver, however few events are in it."""
_FINEST, _FINE = MILLI, 2 * MILLI
_OF_LATENCY = 50
"""An event waits half an interval for its tick on average: 1 % of a latency that is so many intervals."""
_REQUESTS = 500
"""Requests per second that a broker beside the driver takes without a loss."""


def send_interval(kafka: bool, load: float, partitions: int, latency: int) -> int:
    """Nanoseconds from one tick to the next, for a system that takes events as they come.

    Micro-batches collect events anyway: there a finer interval than the usual one would only cost requests. ``latency``
    is the tightest objective on one, 0 if there is none. A tick without events sends nothing, so that a low load may
    have the finest interval.
    """
    usual = KAFKA_TICK if kafka else TICK
    wanted = latency // _OF_LATENCY if latency else _FINE
    least = partitions * SECOND // _REQUESTS if kafka and load * partitions > _REQUESTS else _FINEST
    return min(usual, max(wanted, least, _FINEST)) // (MILLI // 2) * (MILLI // 2)


def held(events: int, partition: int, partitions: int) -> int:
    """How many of the first ``events`` events of a stream fall into a partition."""
    return -((partition - events) // partitions)


@dataclass(frozen=True, slots=True)
class Pace:
    """The ticks of one stream."""

    plan: Plan
    tick_ns: int
    partitions: int
    _edges: Ints = field(init=False, repr=False, compare=False)
    """Events due before each tick's begin, counted beforehand: a tick has no time for it."""

    def __post_init__(self) -> None:
        if self.tick_ns <= 0 or self.tick_ns % MICRO:
            raise ValueError(f"a tick is a whole number of microseconds, not {self.tick_ns} ns")
        edges = self.plan.count(np.arange(0, self.plan.horizon + self.tick_ns, self.tick_ns))
        object.__setattr__(self, "_edges", edges)

    def moment(self, tick: int) -> int:
        """When the tick happens, in nanoseconds since the load began: all that is due before it is published."""
        return (tick + 1) * self.tick_ns

    def tick_at(self, elapsed_ns: int) -> int:
        """The first tick that happens at or after this moment."""
        return max(0, -(-elapsed_ns // self.tick_ns) - 1)

    def due_before(self, elapsed_ns: int) -> int:
        """Events of the stream that are due before this moment."""
        tick, rest = divmod(elapsed_ns, self.tick_ns)
        if rest == 0 and 0 <= tick < len(self._edges):
            return int(self._edges[tick])
        return int(self.plan.count(elapsed_ns))

    def offset(self, elapsed_ns: int, partition: int) -> int:
        """Events of one partition that are due before this moment."""
        return held(self.due_before(elapsed_ns), partition, self.partitions)

    def numbers(self, start: int, stop: int, partition: int) -> tuple[int, int]:
        """First and end of the event numbers whose share in a partition is the offsets ``start … stop − 1``."""
        return start * self.partitions + partition, stop * self.partitions + partition


@dataclass(frozen=True)
class Source:
    """One stream with its schema. ``batch`` copies nothing: Arrow looks at numpy's memory."""

    name: str
    schema: pa.Schema
    made: EventSource
    partitions: int

    def batch(self, partition: int, start: int, stop: int) -> pa.RecordBatch:
        """The events at the offsets ``start … stop − 1`` of a partition."""
        first = start * self.partitions + partition
        columns = self.made.events(first, first + (stop - start) * self.partitions, self.partitions, partition)
        arrays = [
            pa.Array.from_buffers(field.type, stop - start, [None, pa.py_buffer(columns[field.name])])
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def require_streams(workload: Workload[Any], params: Params) -> tuple[Stream, ...]:
    """The streams of a workload; raises ValueError if streamgauge cannot make its events."""
    streams = workload.streams(params)
    if not streams:
        made = ", ".join(name for name, other in workloads().items() if other.streams(other.params()))
        raise ValueError(f"the load generator does not support the workload {workload.name}; it supports {made}")
    return streams


def open_source(workload: Workload[Any], params: Params, stream: Stream, inputs: Inputs, *, partitions: int) -> Source:
    """The events of one stream of a workload."""
    if inputs.plans[stream.name].total == 0:
        raise ValueError("no event is planned: the load is too low for the length of the trial")
    made = workload.events(params, stream.name, inputs)
    return Source(stream.name, schema_of(stream.schema), made, partitions)


LARGEST_CHUNK = 65_536
"""Rows made at once: below it the fixed cost of numpy shows, above it a tick waits for the chunk to end."""
SMALLEST_CHUNK = 4_096
_FIRST_GUESS = 50.0  # nanoseconds per row, until it was measured
_FORGET = 0.2


class Chunk(Protocol):
    """Ready events of one lane: an Arrow batch, or the bytes that go to a broker."""

    @property
    def num_rows(self) -> int: ...

    def slice(self, offset: int, length: int) -> "Chunk":
        """Some of them, without copying."""


class Makes(Protocol):
    """Makes the events of one stream."""

    def batch(self, partition: int, start: int, stop: int) -> Chunk:
        """The events at the offsets ``start … stop − 1`` of a partition."""


@dataclass(slots=True)
class Stock:
    """The ready events of one lane. ``taken`` and ``ready`` are offsets."""

    lane: Lane
    source: Makes
    pace: Pace
    taken: int = 0
    ready: int = 0
    chunks: deque[tuple[int, Chunk]] = field(default_factory=deque)

    def wanted(self, elapsed_ns: int) -> int:
        """Offset up to which events are due before this moment."""
        return self.pace.offset(elapsed_ns, self.lane.partition)

    def make(self, rows: int) -> None:
        """Make the next rows."""
        batch = self.source.batch(self.lane.partition, self.ready, self.ready + rows)
        self.chunks.append((self.ready, batch))
        self.ready += rows

    def take(self, stop: int) -> list[Chunk]:
        """The ready events up to offset ``stop``, as slices of what was made."""
        slices = []
        while self.taken < stop:
            start, batch = self.chunks[0]
            upto = min(stop - start, batch.num_rows)
            slices.append(batch.slice(self.taken - start, start + upto - self.taken))
            self.taken = start + upto
            if upto == batch.num_rows:
                self.chunks.popleft()
        return slices


class Preparation:
    """Keeps the stocks filled for ``ahead_ns``, without ever holding up a tick that could be on time."""

    def __init__(self, stocks: list[Stock], ahead_ns: int, now_ns: Callable[[], int]) -> None:
        self.stocks, self.ahead_ns, self._now = stocks, ahead_ns, now_ns
        self.row_ns = _FIRST_GUESS

    def _make(self, stock: Stock, rows: int) -> None:
        began = self._now()
        stock.make(rows)
        self.row_ns += _FORGET * ((self._now() - began) / rows - self.row_ns)

    def fill(self, elapsed_ns: int, until_ns: int, deadline_ns: int) -> None:
        """Use the time up to ``deadline_ns`` (of the clock) to make what is due before ``elapsed_ns + ahead``.

        Nothing new is made while half of it is still there, so that chunks stay large at low rates too.
        """
        horizon = min(elapsed_ns + self.ahead_ns, until_ns)
        half = min(elapsed_ns + self.ahead_ns // 2, until_ns)
        for stock in self.stocks:
            if stock.ready >= stock.wanted(half):
                continue
            target = stock.wanted(horizon)
            while stock.ready < target:
                fits = int((deadline_ns - self._now()) / self.row_ns)
                rows = min(target - stock.ready, LARGEST_CHUNK)
                if fits < rows and fits < SMALLEST_CHUNK:
                    return
                self._make(stock, min(rows, fits))

    def take(self, elapsed_ns: int) -> list[tuple[Lane, Chunk]]:
        """Everything due before this moment that was not taken yet; what is not ready is made now.

        Where ticks leave no time to fill, that is the only time there is: then half of what is made ahead is made at
        once. A few events for every tick would cost many times as much, and no tick would be on time again.
        """
        parts = []
        for stock in self.stocks:
            stop = stock.wanted(elapsed_ns)
            while stock.ready < stop:
                ahead = max(stop, stock.wanted(elapsed_ns + self.ahead_ns // 2))
                self._make(stock, min(ahead - stock.ready, LARGEST_CHUNK))
            parts += [(stock.lane, batch) for batch in stock.take(stop)]
        return parts
