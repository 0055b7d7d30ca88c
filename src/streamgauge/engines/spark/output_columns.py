"""Whether the outputs of a user's function can be taken, by their columns."""

from collections import Counter

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, LongType, MapType, StructType, TimestampNTZType, TimestampType

from streamgauge.model.seconds import LATENCY_COLUMNS
from streamgauge.model.streams import WINDOW_END

RESERVED = ("batch", "emitted_us")
"""Columns that the collector adds to every output."""


def unfit(outputs: StructType) -> str:
    """Why the outputs of a user's function cannot be taken, if they cannot: by the schema of their columns."""
    names = outputs.names
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        return f"outputs two columns with the name {twice[0]!r}; rename one of them with alias"
    kept = [name for name in names if name in RESERVED]
    if kept:
        return f"outputs a column with the name {kept[0]!r}, which streamgauge adds to every output; rename it"
    for field in outputs.fields:
        nested = isinstance(field.dataType, (ArrayType, MapType, StructType))
        moment = isinstance(field.dataType, (TimestampType, TimestampNTZType, LongType))
        if (field.name in LATENCY_COLUMNS.values() and not moment) or (field.name == WINDOW_END and nested):
            return (
                f"outputs the column {field.name!r} as {field.dataType.simpleString()}, but it must be a timestamp; "
                "cast or rename it"
            )
        if not _storable(field.dataType):
            return (
                f"outputs the column {field.name!r} as {field.dataType.simpleString()}, which cannot be stored; "
                "cast it to another type"
            )
    return ""


def _storable(kind: DataType) -> bool:
    """Whether outputs of this type can be sent as Arrow and stored as Parquet, which has no empty structs."""
    try:
        return _has_no_empty_struct(to_arrow_type(kind, timezone="UTC"))
    except PySparkException:
        return False


def _has_no_empty_struct(kind: pa.DataType) -> bool:
    inner = [kind.field(n).type for n in range(kind.num_fields)]
    return all(map(_has_no_empty_struct, inner)) and bool(inner or not pa.types.is_struct(kind))
