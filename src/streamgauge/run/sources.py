"""Events as the generator wants them: ready Arrow batches of one partition, from any offset on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.model.profile import Plan
from streamgauge.transport.schemas import schema_of
from streamgauge.workloads.registry import workloads


class Events(Protocol):
    """Columns of any range of a stream's events."""

    def events(
        self, start: int, stop: int, stride: int = 1, offset: int = 0
    ) -> Mapping[str, npt.NDArray[np.int32] | npt.NDArray[np.int64]]: ...


@dataclass(frozen=True)
class Source:
    """One stream with its schema. ``batch`` copies nothing: Arrow looks at numpy's memory."""

    name: str
    schema: pa.Schema
    made: Events
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


def streams_of(workload: str) -> dict[str, pa.Schema]:
    """The streams of a workload and their schemas."""
    known = workloads()[workload]
    if known.stream is None:
        made = ", ".join(name for name, other in workloads().items() if other.stream is not None)
        raise ValueError(f"the load generator does not support the workload {workload}; it supports {made}")
    return dict.fromkeys(known.streams, schema_of(known.schema))


def open_source(
    workload: str, stream: str, params: Mapping[str, Any], *, plan: Plan, seed: int, origin_ns: int, partitions: int
) -> Source:
    """The events of one stream of a workload. ``params`` are resolved values, ``origin_ns`` is since 1970."""
    schema, make = streams_of(workload)[stream], workloads()[workload].stream
    assert make is not None
    _short_of_the_end(plan)
    return Source(stream, schema, make(dict(params), plan, seed, origin_ns), partitions)


def _short_of_the_end(plan: Plan) -> None:
    if plan.total == 0:
        raise ValueError("no event is planned: the load is too low for the length of the trial")
