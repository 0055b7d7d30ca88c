"""The queue as a streaming source of Spark: Arrow batches, micro-batches cut at one due time.

Spark calls ``latestOffset`` at the start of a micro-batch, when all that came before is done, so that is when the
queue is acknowledged. What was planned and not finished is not acknowledged, and can be read again by a retry or
after a restart from the checkpoint.
"""

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from streamgauge.engines.spark.options import Ends
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.outputs import OutputWriter
from streamgauge.transports.queue.reader import Cut, QueueReader


@cache
def unburden() -> None:
    """Take all that is imported out of the garbage collector's sight, once in a process.

    Spark's Python daemon collects garbage after every task. With pyarrow and pandas imported that takes 50 ms and
    more, four times in a micro-batch: a fifth of a core at one micro-batch a second, which no job of the user's needs.
    """
    gc.collect()
    gc.freeze()


Offset = dict[str, Any]
ROWS = 65_536
"""Rows of an Arrow batch for Spark, at least, where there are so many: ticks are too small to be handed on singly."""
_SQL = {"int32": "int", "int64": "bigint", "timestamp[us, tz=UTC]": "timestamp", "float64": "double"}
_STAMP = pa.timestamp("us", "UTC")


def ddl(ends: Ends) -> str:
    """The columns of the events as Spark writes them."""
    columns = [f"{name} {_SQL[kind]}" for name, kind in ends.columns]
    columns += ["sequence bigint"] if ends.numbered else []
    return ", ".join([*columns, "ingested timestamp"] if ends.stamp else columns)


@lru_cache(maxsize=1)
def _reader(queues: tuple[str, ...], token: str) -> QueueReader:
    """The line to the queues of this trial, kept while a worker process lives: connecting costs milliseconds."""
    return QueueReader(queues, token)


def _offset(due: int | None, offsets: Mapping[Lane, int]) -> Offset:
    return {"due": -1 if due is None else due, "lanes": {str(lane.partition): n for lane, n in offsets.items()}}


class Range(InputPartition):
    """The events ``start … stop − 1`` of one partition."""

    def __init__(self, partition: int, start: int, stop: int) -> None:
        super().__init__(partition)
        self.partition, self.start, self.stop = partition, start, stop


def _whole(batches: Sequence[pa.RecordBatch], ends: Ends, first: int) -> pa.RecordBatch:
    """One batch out of many, with the numbers of its events, the first of which it is, and the moment it came in."""
    whole = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
    columns, names = list(whole.columns), list(whole.schema.names)
    if ends.numbered:
        stop = first + whole.num_rows * ends.partitions
        columns.append(pa.array(np.arange(first, stop, ends.partitions, dtype=np.int64)))
        names.append("sequence")
    if ends.stamp:
        columns.append(pa.repeat(pa.scalar(time.time_ns() // 1_000, pa.int64()), whole.num_rows).view(_STAMP))
        names.append("ingested")
    return pa.RecordBatch.from_arrays(columns, names=names)


def read_range(ends: Ends, wanted: Range) -> Iterator[pa.RecordBatch]:
    """The events of a range, in batches that are worth handing on. Also the first operator: it stamps."""
    unburden()
    reader = _reader(ends.queues, ends.token).read(Lane(ends.stream, wanted.partition), wanted.start, wanted.stop)
    held, rows, offset = list[pa.RecordBatch](), 0, wanted.start
    for batch in reader:
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS:
            yield _whole(held, ends, offset * ends.partitions + wanted.partition)
            held, rows, offset = [], 0, offset + rows
    if held:
        yield _whole(held, ends, offset * ends.partitions + wanted.partition)


class QueueStreamReader(DataSourceStreamReader):
    """Offsets of all partitions at one due time."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._acknowledged: Offset | None = None

    def _queue(self) -> QueueReader:
        return _reader(self._ends.queues, self._ends.token)

    def _lanes(self, offset: Offset) -> dict[Lane, int]:
        return {Lane(self._ends.stream, int(p)): n for p, n in offset["lanes"].items()}

    def initialOffset(self) -> Offset:
        """What is not acknowledged: of a new queue, everything."""
        cut = self._queue().latest()
        return _offset(None, cut.starts)

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most so many events in a micro-batch, if the options say so."""
        return ReadMaxRows(self._ends.max_batch) if self._ends.max_batch else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Acknowledge what is done, and cut the next micro-batch; the start again if nothing is new."""
        if start != self._acknowledged:
            self._queue().acknowledge(self._lanes(start))
            self._acknowledged = start
        cut = self._cut(limit)
        latest = _offset(cut.due, cut.offsets)
        return start if latest["lanes"] == start["lanes"] else latest

    def _cut(self, limit: ReadLimit) -> Cut:
        return self._queue().latest(limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def reportLatestOffset(self) -> Offset:
        """Where the queue ends now, for Spark's own progress report."""
        cut = self._queue().latest()
        return _offset(cut.due, cut.offsets)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """One range per partition of the queue that has something new."""
        before = start["lanes"]
        return [Range(int(p), before[p], stop) for p, stop in end["lanes"].items() if stop > before[p]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker process."""
        assert isinstance(partition, Range)
        return read_range(self._ends, partition)


class QueueBatchReader(DataSourceReader):
    """All that is in the queue, as a table: the same events through the same way, in batch."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def partitions(self) -> list[InputPartition]:
        """One range per partition of the queue."""
        cut = _reader(self._ends.queues, self._ends.token).latest()
        return [Range(lane.partition, cut.starts[lane], stop) for lane, stop in cut.offsets.items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker process."""
        assert isinstance(partition, Range)
        return read_range(self._ends, partition)


def queue_source(bound: Ends) -> type[DataSource]:
    """The source of one trial. The class is made here, so that Spark hands it on by value, with the token inside."""

    class QueueSource(DataSource):
        ends = bound

        @classmethod
        def name(cls) -> str:
            return f"streamgauge-queue-{cls.ends.query}"

        def schema(self) -> str:
            return ddl(self.ends)

        def reader(self, schema: object) -> DataSourceReader:
            return QueueBatchReader(self.ends)

        def streamReader(self, schema: object) -> DataSourceStreamReader:
            unburden()
            return QueueStreamReader(self.ends)

    return QueueSource


_BATCH = "streaming.sql.batchId"


@lru_cache(maxsize=1)
def _writer(endpoint: str, token: str) -> OutputWriter:
    return OutputWriter(endpoint, token)


@dataclass
class Sent(WriterCommitMessage):
    """What one task has sent; nothing was sent where there were no rows."""

    partition: int
    attempt: int
    rows: int


def _attempt(epoch: int, context: TaskContext) -> int:
    """A number that no other try has: task attempts are counted through a whole session, starts of the query by us."""
    return (epoch << 40) | int(context.taskAttemptId())


class CollectorWriter(DataSourceStreamArrowWriter):
    """Sends outputs as Spark makes them."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends

    def _line(self) -> OutputWriter:
        return _writer(self._ends.outputs, self._ends.token)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Sent:
        """In a worker process: the outputs of one task."""
        unburden()
        context = TaskContext.get()
        assert context is not None
        partition, attempt = context.partitionId(), _attempt(self._ends.epoch, context)
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return Sent(partition, attempt, 0)
        batch = int(context.getLocalProperty(_BATCH) or 0)
        rows = chain([first], (more for more in iterator if more.num_rows))
        sent = self._line().put(self._ends.query, batch, first.schema, rows, partition=partition, attempt=attempt)
        return Sent(partition, attempt, sent)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks are done: exactly these attempts count."""
        unburden()
        parts = [(m.partition, m.attempt) for m in messages if isinstance(m, Sent) and m.rows]
        if parts:
            self._line().commit(self._ends.query, batchId, parts)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """The micro-batch failed: nothing of it counts."""
        self._line().abort(self._ends.query, batchId)


def collector_sink(bound: Ends) -> type[DataSource]:
    """The sink of one trial; made here for the same reason as the source."""

    class CollectorSink(DataSource):
        ends = bound

        @classmethod
        def name(cls) -> str:
            return f"streamgauge-collector-{cls.ends.query}"

        def streamWriter(self, schema: object, overwrite: bool) -> DataSourceStreamArrowWriter:
            unburden()
            return CollectorWriter(self.ends)

    return CollectorSink
