"""Whether the outputs of a user's function can be taken, by their columns."""

from collections import Counter

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, LongType, MapType, StructType, TimestampNTZType, TimestampType

RESERVED = ("batch", "emitted_us")
"""Columns that the collector adds to every output."""
MOMENTS = ("max_due", "max_ingested")
"""Columns from which latencies are counted."""


def unfit(outputs: DataFrame) -> str:
    """Why the outputs of a user's function cannot be taken, if they cannot: by their columns alone."""
    names = outputs.columns
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        return f"puts out two columns with the name {twice[0]!r}: rename one of them with alias"
    kept = [name for name in names if name in RESERVED]
    if kept:
        return f"puts out a column with the name {kept[0]!r}, which streamgauge adds to every output: rename it"
    for field in outputs.schema.fields:
        nested = isinstance(field.dataType, (ArrayType, MapType, StructType))
        moment = isinstance(field.dataType, (TimestampType, TimestampNTZType, LongType))
        if (field.name in MOMENTS and not moment) or (field.name == "window_end" and nested):
            return (
                f"puts out the column {field.name!r} as {field.dataType.simpleString()}: it must be a timestamp, "
                "or have another name"
            )
    return ""
