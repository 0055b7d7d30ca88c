"""When events are sent: the send intervals of a plan, and events that are made ahead of their due time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.model.options import Params
from streamgauge.model.profile import Ints, Plan
from streamgauge.model.streams import StreamPartition, schema_of
from streamgauge.transports.contract import BatchSource, EventBatch
from streamgauge.workloads.contract import EventSource, Inputs, Stream, Workload
from streamgauge.workloads.registry import workloads

MICRO = 1_000


def events_in_partition(events: int, partition: int, partitions: int) -> int:
    """How many of the first ``events`` events of a stream are in a partition."""
    return -((partition - events) // partitions)


@dataclass(frozen=True, slots=True)
class SendSchedule:
    """The send intervals of one stream."""

    plan: Plan
    interval_ns: int
    partitions: int
    _edges: Ints = field(init=False, repr=False, compare=False)
    """Events due before the beginning of each interval, counted beforehand: a send has no time for it."""

    def __post_init__(self) -> None:
        if self.interval_ns <= 0 or self.interval_ns % MICRO:
            raise ValueError(f"a send interval is a whole number of microseconds, not {self.interval_ns} ns")
        edges = self.plan.count(np.arange(0, self.plan.horizon + self.interval_ns, self.interval_ns))
        object.__setattr__(self, "_edges", edges)

    def due_before(self, elapsed_ns: int) -> int:
        """Events of the stream that are due before this moment."""
        interval, rest = divmod(elapsed_ns, self.interval_ns)
        if rest == 0 and 0 <= interval < len(self._edges):
            return int(self._edges[interval])
        return int(self.plan.count(elapsed_ns))

    def due_offset(self, elapsed_ns: int, partition: int) -> int:
        """Events of one partition that are due before this moment."""
        return events_in_partition(self.due_before(elapsed_ns), partition, self.partitions)


@dataclass(frozen=True)
class StreamSource:
    """The events of one stream as Arrow batches. Nothing is copied: Arrow reads the memory of numpy."""

    name: str
    schema: pa.Schema
    events: EventSource
    partitions: int

    def batch(self, partition: int, start: int, stop: int) -> pa.RecordBatch:
        """The events at the offsets ``start … stop − 1`` of a partition."""
        first = start * self.partitions + partition
        columns = self.events.events(first, first + (stop - start) * self.partitions, self.partitions, partition)
        arrays = [_as_array(columns[field.name], field.type, stop - start) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _as_array(column: object, kind: pa.DataType, rows: int) -> pa.Array:
    if pa.types.is_primitive(kind):
        return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(column)])
    return column if isinstance(column, pa.Array) else pa.array(column, kind)


def require_streams(workload: Workload[Any], params: Params) -> tuple[Stream, ...]:
    """The streams of a workload; raises ValueError if streamgauge cannot make its events."""
    streams = workload.streams(params)
    if not streams:
        made = ", ".join(name for name, other in workloads().items() if other.streams(other.params()))
        raise ValueError(f"the load generator does not support the workload {workload.name}; it supports {made}")
    return streams


def open_source(
    workload: Workload[Any], params: Params, stream: Stream, inputs: Inputs, *, partitions: int
) -> StreamSource:
    """The events of one stream of a workload."""
    if inputs.plans[stream.name].total == 0:
        raise ValueError("no event is planned: the load is too low for the length of the trial")
    events = workload.events(params, stream.name, inputs)
    return StreamSource(stream.name, schema_of(stream.schema), events, partitions)


MAX_CHUNK = 65_536
"""Rows that are made together: with fewer the fixed cost of numpy shows, with more a send waits for the chunk."""
MIN_CHUNK = 4_096
_FIRST_ESTIMATE = 50.0  # nanoseconds per row, until it was measured
_SMOOTHING = 0.2


@dataclass(slots=True)
class PartitionBuffer:
    """The ready events of one partition. ``taken`` and ``ready`` are offsets."""

    partition: StreamPartition
    source: BatchSource
    schedule: SendSchedule
    taken: int = 0
    ready: int = 0
    chunks: deque[tuple[int, EventBatch]] = field(default_factory=deque)

    def due_offset(self, elapsed_ns: int) -> int:
        """Offset up to which events are due before this moment."""
        return self.schedule.due_offset(elapsed_ns, self.partition.partition)

    def make(self, rows: int) -> None:
        """Make the next rows."""
        batch = self.source.batch(self.partition.partition, self.ready, self.ready + rows)
        self.chunks.append((self.ready, batch))
        self.ready += rows

    def take(self, stop: int) -> list[EventBatch]:
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


class EventBuffer:
    """Keeps events ready for ``lookahead_ns``, without delaying a send that could be on time."""

    def __init__(self, buffers: list[PartitionBuffer], lookahead_ns: int, now_ns: Callable[[], int]) -> None:
        self.buffers, self.lookahead_ns, self._now = buffers, lookahead_ns, now_ns
        self.row_ns = _FIRST_ESTIMATE

    def _make(self, buffer: PartitionBuffer, rows: int) -> None:
        began = self._now()
        buffer.make(rows)
        self.row_ns += _SMOOTHING * ((self._now() - began) / rows - self.row_ns)

    def make_ahead(self, elapsed_ns: int, until_ns: int, deadline_ns: int) -> None:
        """Use the time up to ``deadline_ns`` (of the clock) to make what is due before ``elapsed_ns + lookahead``.

        Nothing new is made while half of it is still there, so that chunks stay large at low rates too.
        """
        horizon = min(elapsed_ns + self.lookahead_ns, until_ns)
        half = min(elapsed_ns + self.lookahead_ns // 2, until_ns)
        for buffer in self.buffers:
            if buffer.ready >= buffer.due_offset(half):
                continue
            target = buffer.due_offset(horizon)
            while buffer.ready < target:
                fits = int((deadline_ns - self._now()) / self.row_ns)
                rows = min(target - buffer.ready, MAX_CHUNK)
                if fits < rows and fits < MIN_CHUNK:
                    return
                self._make(buffer, min(rows, fits))

    def take_due(self, elapsed_ns: int) -> list[tuple[StreamPartition, EventBatch]]:
        """Everything due before this moment that was not taken yet; what is not ready is made now.

        If sends leave no time to make events ahead, this is the only time there is: then half of the lookahead is made
        together. A few events for every send would cost many times as much, and no send would be on time again.
        """
        parts = []
        for buffer in self.buffers:
            stop = buffer.due_offset(elapsed_ns)
            while buffer.ready < stop:
                ahead = max(stop, buffer.due_offset(elapsed_ns + self.lookahead_ns // 2))
                self._make(buffer, min(ahead - buffer.ready, MAX_CHUNK))
            parts += [(buffer.partition, batch) for batch in buffer.take(stop)]
        return parts
