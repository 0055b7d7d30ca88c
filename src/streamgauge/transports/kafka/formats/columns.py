"""The columns that records can have, and columns of integers, for all formats of Kafka's values. Pure."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import pyarrow as pa

from streamgauge.transports.kafka.client.varints import Ints, VarintError
from streamgauge.transports.kafka.formats.cells import CellError
from streamgauge.transports.kafka.formats.digits import DigitsError, Marks

FormatName = Literal["json", "binary", "avro"]
SEQUENCE = "sequence"
"""The column of an event's number in its stream."""


class FormatError(ValueError):
    """A row that a format cannot contain, or bytes that are not a row; the message gives the reason."""


def kind_of(field: pa.Field) -> Literal["number", "float", "text"]:
    """How a column is written: times are integers of microseconds. Raises if no format supports its type."""
    if field.type in (pa.int32(), pa.int64()) or pa.types.is_timestamp(field.type):
        return "number"
    if field.type == pa.float64():
        return "float"
    if field.type == pa.string():
        return "text"
    raise FormatError(
        f"the column {field.name} has the type {field.type}; int32, int64, float64, text and timestamps are supported"
    )


def digits_of(field: pa.Field, outputs: bool) -> int:
    """Maximum digits of a column of integers, including the sign of an output."""
    if (field.name == SEQUENCE and not outputs) or field.type == pa.int32():
        return 12
    if pa.types.is_timestamp(field.type):
        return 20 if outputs else 16  # an event is due before the year 2286
    return 20


@contextmanager
def naming(field: pa.Field) -> Iterator[None]:
    """Add the name of the column to errors about its values."""
    try:
        yield
    except (CellError, DigitsError, VarintError, pa.ArrowInvalid) as error:
        raise FormatError(f"the column {field.name}: {error}") from error


def as_int64(column: pa.Array, outputs: bool) -> tuple[Ints, Marks | None]:
    """A column as integers, without copying if possible, and which of them are null; None: no number is."""
    require_values(column, outputs)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    numbers: Ints = (column if missing is None else column.fill_null(0)).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64, copy=False), missing


def require_values(column: pa.Array, outputs: bool) -> None:
    """Only outputs may have nulls."""
    if column.null_count and not outputs:
        raise FormatError("a column has no value in some row")


def as_column(numbers: Ints, field: pa.Field, missing: Marks | None = None) -> pa.Array:
    column = pa.array(numbers, mask=missing)
    if pa.types.is_timestamp(field.type):
        return column.view(pa.timestamp("us", field.type.tz)).cast(field.type)
    return column.cast(field.type)
