"""The columns of a workload's events and outputs as Arrow knows them."""

import pyarrow as pa

STAMP = "timestamp[us, tz=UTC]"
_TYPES = {
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "text": pa.string(),
    STAMP: pa.timestamp("us", "UTC"),
}


def schema_of(columns: tuple[tuple[str, str], ...]) -> pa.Schema:
    """A workload's column list as an Arrow schema."""
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns])
