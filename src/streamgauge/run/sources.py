"""Events as the generator wants them: ready Arrow batches of one partition, from any offset on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.model.profile import Plan
from streamgauge.transport.schemas import schema_of
from streamgauge.workloads.purchases import SCHEMA as PURCHASES
from streamgauge.workloads.purchases import Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams


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
    if workload != "windowed-aggregation":
        raise ValueError(f"the generator has no events for the workload {workload} yet; use windowed-aggregation")
    return {"purchases": schema_of(PURCHASES)}


def open_source(
    workload: str, stream: str, params: Mapping[str, Any], *, plan: Plan, seed: int, origin_ns: int, partitions: int
) -> Source:
    """The events of one stream of a workload. ``params`` are resolved values, ``origin_ns`` is since 1970."""
    schemas = streams_of(workload)
    number = list(schemas).index(stream)
    chosen = WindowedAggregationParams.model_construct(**params)
    made = Purchases(chosen, plan, seed, number, origin_ns)
    _short_of_the_end(plan)
    return Source(stream, schemas[stream], made, partitions)


def _short_of_the_end(plan: Plan) -> None:
    if plan.total == 0:
        raise ValueError("the plan has no events: the load is too low for its length")
