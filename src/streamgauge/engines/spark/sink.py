"""The collector as a streaming sink of Spark: Arrow in, exactly once by (query, batch, partition, attempt).

A task sends its rows under its own attempt; the commit of the micro-batch names the attempts that count. A batch
that Spark runs again after a restart is recognised by the collector and thrown away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from streamgauge.engines.spark.options import Ends
from streamgauge.engines.spark.worker import unburden
from streamgauge.transport.output_writer import OutputWriter

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
