"""Columns of rows as whole numbers, and back: what all formats of Kafka's values share. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import pyarrow as pa

from streamgauge.transport.kafka.digits import DigitsError, Marks
from streamgauge.transport.kafka.varints import Ints, VarintError

FormatName = Literal["json", "binary", "avro"]
SEQUENCE = "sequence"
"""The column of an event's number in its stream."""


class FormatError(ValueError):
    """A row that a format cannot hold, or bytes that are no row; the sentence says which and why."""


def digits_of(field: pa.Field, outputs: bool) -> int:
    """Digits that a column has room for, the sign of an output included."""
    if (field.name == SEQUENCE and not outputs) or field.type == pa.int32():
        return 12
    if pa.types.is_timestamp(field.type):
        return 20 if outputs else 16  # an event is due before the year 2286
    if field.type == pa.int64():
        return 20
    raise FormatError(f"the column {field.name} has the type {field.type}; whole numbers and times can travel")


@contextmanager
def naming(field: pa.Field) -> Iterator[None]:
    """What a column cannot hold is said with its name."""
    try:
        yield
    except (DigitsError, VarintError, pa.ArrowInvalid) as error:
        raise FormatError(f"the column {field.name}: {error}") from error


def whole_numbers(column: pa.Array, outputs: bool) -> tuple[Ints, Marks | None]:
    """A column as whole numbers, without copying where it can be, and which are null; None: no number is."""
    if column.null_count and not outputs:
        raise FormatError("a column has no value in some row")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    numbers: Ints = (column if missing is None else column.fill_null(0)).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64, copy=False), missing


def as_column(numbers: Ints, field: pa.Field, missing: Marks | None = None) -> pa.Array:
    column = pa.array(numbers, mask=missing)
    if pa.types.is_timestamp(field.type):
        return column.view(pa.timestamp("us", field.type.tz)).cast(field.type)
    return column.cast(field.type)
