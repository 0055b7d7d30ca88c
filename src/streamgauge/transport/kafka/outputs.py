"""The outputs of an engine of ours into the trial's topic: what the collector's client is on the queue."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.transport.kafka.ends import KafkaEnds
from streamgauge.transport.kafka.formats import output_format, record_keys
from streamgauge.transport.kafka.producer import Now, Part, Sending, open_producer
from streamgauge.transport.kafka.records import encode


class TopicWriter:
    """Writes outputs into the topic. There is nothing to commit: what is in the log counts."""

    def __init__(self, ends: KafkaEnds, schema: pa.Schema, now_ns: Now, timeout: float = 60.0) -> None:
        """``schema`` has the columns of every output; ``now_ns`` is a clock that only goes forward."""
        self._format, self._timeout = output_format(ends.format, schema), timeout
        self._producer = open_producer(ends.cluster, ends.output, now_ns, Sending().within(ends.largest))
        nothing = [pa.array(np.zeros(1, np.int64)).cast(pa.int64()).cast(field.type) for field in schema]
        part = self._part(pa.RecordBatch.from_arrays(nothing, schema=schema))
        encode(part.keys, part.values, part.due_us)  # what is loaded at its first use is loaded now

    def put(
        self,
        query: str,
        batch: int,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        partition: int = 0,
        attempt: int = 0,
        commit: bool = False,
    ) -> int:
        """Write outputs into a partition, as they are made; returns when the broker has them all. Their number.

        The rest is for the collector of a queue: an output in a topic does not say which attempt it came from.
        """
        rows = 0
        for one in batches:
            if one.num_rows:
                self._producer.publish({partition: self._part(one)})
            rows += one.num_rows
        self._producer.flush(self._timeout)
        return rows

    def _part(self, rows: pa.RecordBatch) -> Part:
        keys = record_keys(rows)
        # the broker stamps: what stands here is overwritten
        return Part(keys, self._format.encode(rows), np.zeros(rows.num_rows, np.int64))

    def status(self) -> dict[str, Any]:
        """How many outputs the broker has taken, and how many it has not confirmed yet."""
        return {"committed": sum(self._producer.acknowledged().values()), "waiting": self._producer.waiting}

    def close(self) -> None:
        """Hang up."""
        self._producer.close()

    def __enter__(self) -> "TopicWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
