"""Streams of events: their columns, their partitions, and how far each partition was processed."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

TIME: Final = "timestamp[us, tz=UTC]"
"""The type of a column that contains moments: microseconds since 1970."""

MAX_DUE: Final = "max_due"
"""The column of outputs with the due time of the latest event that a row was made from."""
MAX_INGESTED: Final = "max_ingested"
"""The column of outputs with the time at which the last of these events was read."""
MEAN_PUBLISHED: Final = "mean_published"
"""The column of outputs with the mean time of publication of the events that a row was made from."""
WINDOW_END: Final = "window_end"

ColumnType = Literal["int32", "int64", "float64", "text", "timestamp[us, tz=UTC]"]


class Column(NamedTuple):
    """A column of events or outputs."""

    name: str
    type: ColumnType


Schema = tuple[Column, ...]
"""The columns of an event or an output, in their order."""


def schema_of(columns: Iterable[tuple[str, str]]) -> "pa.Schema":
    """Columns, name and type each, as an Arrow schema."""
    import pyarrow as pa  # noqa: PLC0415 - most commands need no Arrow

    types = {
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float64": pa.float64(),
        "text": pa.string(),
        TIME: pa.timestamp("us", "UTC"),
    }
    return pa.schema([(name, types[kind]) for name, kind in columns])


class StreamPartition(NamedTuple):
    """One partition of one stream."""

    stream: str
    partition: int


Offsets = Mapping[StreamPartition, int]
"""How many events of each partition: an offset is the number of events before it."""


class Position(NamedTuple):
    """How far a system under test was at one moment."""

    offsets: Offsets
    """The events that it has finished."""
    at_ns: int
    """The moment at which this became true, on the monotonic clock."""
    started: Offsets | None = None
    """The events that it has begun to process by then, the finished ones included; None: unknown."""
