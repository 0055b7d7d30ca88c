"""The columns of a workload's events and outputs as Arrow schemas."""

from collections.abc import Iterable

import pyarrow as pa

from streamgauge.model.streams import TIME

_TYPES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "text": pa.string(),
    TIME: pa.timestamp("us", "UTC"),
}


def schema_of(columns: Iterable[tuple[str, str]]) -> pa.Schema:
    """Columns, name and type each, as an Arrow schema."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns])
