"""The queue as a streaming source of Spark: Arrow batches, micro-batches cut at one due time.

Spark calls ``latestOffset`` at the start of a micro-batch, when everything before it is done, so the queue is
acknowledged then. What was planned and not finished is not acknowledged, and can be read again by a retry or
after a restart from the checkpoint.
"""

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streamgauge.engines.spark.connect.table import Columns, Notify
from streamgauge.engines.spark.options import QuerySpec, SourceAndSink, StreamSpec
from streamgauge.model.streams import Offsets, StreamPartition
from streamgauge.transports.queue.outputs import QueueOutputWriter
from streamgauge.transports.queue.reader import QueueReader


@cache
def freeze_imports_for_gc() -> None:
    """Take all that is imported out of the garbage collector's sight, once in a process.

    Spark's Python daemon collects garbage after every task. With pyarrow and pandas imported that takes 50 ms and
    more, four times in a micro-batch: a fifth of a core at one micro-batch a second, which no job of the user needs.
    """
    gc.collect()
    gc.freeze()


Offset = dict[str, Any]
ROWS = 65_536
"""Least rows of an Arrow batch for Spark, if there are so many: send intervals are too small to be passed on singly."""
_SQL = {
    "int32": "int",
    "int64": "bigint",
    "timestamp[us, tz=UTC]": "timestamp",
    "float64": "double",
    "text": "string",
}
_STAMP = pa.timestamp("us", "UTC")


def spark_schema(ends: SourceAndSink, stream: StreamSpec) -> str:
    """The columns of the events as Spark writes them."""
    columns = [f"{name} {_SQL[kind]}" for name, kind in stream.columns]
    columns += ["sequence bigint"] if stream.numbered else []
    return ", ".join([*columns, "ingested timestamp"] if ends.stamp else columns)


@lru_cache(maxsize=1)
def _reader(queues: tuple[str, ...], token: str) -> QueueReader:
    """The connection to the queues of this trial, kept while a worker process lives: connecting costs milliseconds."""
    return QueueReader(queues, token)


def _offset(due: int | None, offsets: Offsets, stream: str) -> Offset:
    found = {str(each.partition): n for each, n in offsets.items() if each.stream == stream}
    return {"due": -1 if due is None else due, "partitions": found}


class OffsetRange(InputPartition):
    """The events ``start … stop − 1`` of one partition."""

    def __init__(self, partition: int, start: int, stop: int) -> None:
        super().__init__(partition)
        self.partition, self.start, self.stop = partition, start, stop


def _concatenate(
    batches: Sequence[pa.RecordBatch], ends: SourceAndSink, stream: StreamSpec, first: int
) -> pa.RecordBatch:
    """One batch out of many, with the numbers of its events, beginning with ``first``, and the moment it arrived."""
    whole = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
    columns, names = list(whole.columns), list(whole.schema.names)
    if stream.numbered:
        stop = first + whole.num_rows * ends.partitions
        columns.append(pa.array(np.arange(first, stop, ends.partitions, dtype=np.int64)))
        names.append("sequence")
    if ends.stamp:
        columns.append(pa.repeat(pa.scalar(time.time_ns() // 1_000, pa.int64()), whole.num_rows).view(_STAMP))
        names.append("ingested")
    return pa.RecordBatch.from_arrays(columns, names=names)


def read_range(ends: SourceAndSink, stream: StreamSpec, wanted: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The events of a range, in batches that are worth handing on. Also the first operator: it stamps."""
    freeze_imports_for_gc()
    partition = StreamPartition(stream.name, wanted.partition)
    reader = _queue(ends).stream(partition, wanted.start, wanted.stop)
    held, rows, offset = list[pa.RecordBatch](), 0, wanted.start
    for batch in reader:
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS:
            yield _concatenate(held, ends, stream, offset * ends.partitions + wanted.partition)
            held, rows, offset = [], 0, offset + rows
    if held:
        yield _concatenate(held, ends, stream, offset * ends.partitions + wanted.partition)


def _queue(ends: SourceAndSink) -> QueueReader:
    return _reader(tuple(ends.endpoints["queues"]), str(ends.endpoints["token"]))


class QueueStreamReader(DataSourceStreamReader):
    """Offsets of all partitions of a stream at one due time."""

    def __init__(self, ends: SourceAndSink, stream: StreamSpec) -> None:
        self._ends, self._stream = ends, stream
        self._acknowledged: Offset | None = None

    def _offsets(self, offset: Offset) -> dict[StreamPartition, int]:
        return {StreamPartition(self._stream.name, int(p)): n for p, n in offset["partitions"].items()}

    def initialOffset(self) -> Offset:
        """What is not acknowledged: of a new queue, everything."""
        return _offset(None, _queue(self._ends).available().starts, self._stream.name)

    def getDefaultReadLimit(self) -> ReadLimit:
        """At most so many events in a micro-batch, if the options have a limit."""
        return ReadMaxRows(self._ends.max_batch) if self._ends.max_batch else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Acknowledge what is done, and end the next micro-batch at one due time; the start again if nothing is new."""
        if start != self._acknowledged:
            _queue(self._ends).acknowledge(self._offsets(start))
            self._acknowledged = start
        latest = self._latest(limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        return start if latest["partitions"] == start["partitions"] else latest

    def _latest(self, most: int | None = None) -> Offset:
        available = _queue(self._ends).available(most)
        return _offset(available.due_us, available.offsets, self._stream.name)

    def reportLatestOffset(self) -> Offset:
        """Where the queue ends now, for Spark's own progress report."""
        return self._latest()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """One range per partition of the queue that has something new."""
        before, after = start["partitions"], end["partitions"]
        return [OffsetRange(int(p), before[p], stop) for p, stop in after.items() if stop > before[p]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker process."""
        assert isinstance(partition, OffsetRange)
        return read_range(self._ends, self._stream, partition)


class QueueBatchReader(DataSourceReader):
    """All events of a stream that are in the queue, as a table: the same events on the same way, in batch."""

    def __init__(self, ends: SourceAndSink, stream: StreamSpec) -> None:
        self._ends, self._stream = ends, stream

    def partitions(self) -> list[InputPartition]:
        """One range per partition of the queue."""
        available = _queue(self._ends).available()
        wanted = {each: stop for each, stop in available.offsets.items() if each.stream == self._stream.name}
        return [OffsetRange(each.partition, available.starts[each], stop) for each, stop in wanted.items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a worker process."""
        assert isinstance(partition, OffsetRange)
        return read_range(self._ends, self._stream, partition)


def queue_source(of_trial: SourceAndSink, of_stream: StreamSpec) -> type[DataSource]:
    """The source of one stream of a trial. The class is made here, so that Spark copies it, with the token inside."""

    class QueueSource(DataSource):
        ends = of_trial
        stream = of_stream

        @classmethod
        def name(cls) -> str:
            return f"streamgauge-queue-{cls.ends.query}-{cls.stream.name}"

        def schema(self) -> str:
            return spark_schema(self.ends, self.stream)

        def reader(self, schema: object) -> DataSourceReader:
            return QueueBatchReader(self.ends, self.stream)

        def streamReader(self, schema: object) -> DataSourceStreamReader:
            freeze_imports_for_gc()
            return QueueStreamReader(self.ends, self.stream)

    return QueueSource


_BATCH = "streaming.sql.batchId"


@lru_cache(maxsize=1)
def _writer(endpoint: str, token: str) -> QueueOutputWriter:
    return QueueOutputWriter(endpoint, token)


@dataclass
class TaskResult(WriterCommitMessage):
    """What one task has sent; nothing was sent where there were no rows."""

    partition: int
    attempt: int
    rows: int


def _attempt(restart: int, context: TaskContext) -> int:
    """A number that no other try has: task attempts are counted through a whole session, starts of the query here."""
    return (restart << 40) | int(context.taskAttemptId())


class CollectorWriter(DataSourceStreamArrowWriter):
    """Sends outputs as Spark makes them."""

    def __init__(self, ends: SourceAndSink) -> None:
        self._ends = ends

    def _outputs(self) -> QueueOutputWriter:
        return _writer(str(self._ends.endpoints["outputs"]), str(self._ends.endpoints["token"]))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskResult:
        """In a worker process: the outputs of one task."""
        freeze_imports_for_gc()
        context = TaskContext.get()
        assert context is not None
        partition, attempt = context.partitionId(), _attempt(self._ends.restart, context)
        first = next((batch for batch in iterator if batch.num_rows), None)
        if first is None:
            return TaskResult(partition, attempt, 0)
        batch = int(context.getLocalProperty(_BATCH) or 0)
        rows = chain([first], (more for more in iterator if more.num_rows))
        sent = self._outputs().put(self._ends.query, batch, first.schema, rows, partition=partition, attempt=attempt)
        return TaskResult(partition, attempt, sent)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks are done: exactly these attempts count."""
        freeze_imports_for_gc()
        parts = [(m.partition, m.attempt) for m in messages if isinstance(m, TaskResult) and m.rows]
        if parts:
            self._outputs().commit(self._ends.query, batchId, parts)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """The micro-batch failed: nothing of it counts."""
        self._outputs().abort(self._ends.query, batchId)


def collector_sink(of_trial: SourceAndSink) -> type[DataSource]:
    """The sink of one trial; made here for the same reason as the source."""

    class CollectorSink(DataSource):
        ends = of_trial

        @classmethod
        def name(cls) -> str:
            return f"streamgauge-collector-{cls.ends.query}"

        def streamWriter(self, schema: object, overwrite: bool) -> DataSourceStreamArrowWriter:
            freeze_imports_for_gc()
            return CollectorWriter(self.ends)

    return CollectorSink


class Connector:
    """Registers a source for each stream and a sink for every query. The queue counts the requests."""

    columns: Columns = ()

    def __init__(self, spark: SparkSession, notify: Notify) -> None:
        self._spark = spark

    def events(self, ends: SourceAndSink, *, stream: bool) -> dict[str, DataFrame]:
        """The events of each stream."""
        found: dict[str, DataFrame] = {}
        for each in ends.streams:
            source = queue_source(ends, each)
            self._spark.dataSource.register(source)
            reader = self._spark.readStream if stream else self._spark.read
            events = reader.format(source.name()).load()
            # the load driver publishes an event when it is due; how late it was is measured as the send delay
            found[each.name] = events.withColumn("published", F.col("due")) if ends.published else events
        return found

    def writer(self, outputs: DataFrame, spec: QuerySpec) -> DataStreamWriter:
        """Sends outputs to the collector."""
        sink = collector_sink(spec.ends)
        self._spark.dataSource.register(sink)
        return outputs.writeStream.format(sink.name())

    def stop(self) -> None:
        """There is nothing to stop."""
