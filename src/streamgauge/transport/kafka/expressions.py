"""The formats as expressions of Spark SQL: text for the engine to select, with no user's function in it. Pure.

What one row of five numbers costs on PySpark 4.3, beyond handing the bytes on: packed decimal by ``hex`` 0.6 µs,
``from_avro`` 0.4 µs, ``from_json`` 2.6 µs. Big-endian integers by ``conv(hex(…), 16, 10)`` would be 1.4 µs; Spark
casts no bytes to a number.
"""

from dataclasses import dataclass

import pyarrow as pa

from streamgauge.transport.kafka.avro import Avro
from streamgauge.transport.kafka.columns import FormatName
from streamgauge.transport.kafka.formats import Binary

ROW = "row"
"""The column that a parsed value stands in between the two steps of reading."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How values become columns, in two steps, so that a value is parsed once however many columns it has."""

    parsed: str
    """Selected first, from ``value``, as ``row``."""
    columns: tuple[str, ...]
    """Selected then, each with its name."""


def reading(name: FormatName, schema: pa.Schema) -> Reading:
    """From the column ``value`` to those of the schema; times are timestamps."""
    if name == "binary":
        return Reading("value", tuple(_unpacked(schema)))
    if name == "avro":
        parsed = f"from_avro(value, '{Avro(schema).text}')"
        return Reading(parsed, tuple(f"{ROW}.`{field.name}`" for field in schema))
    types = ", ".join(f"`{field.name}` {'INT' if field.type == pa.int32() else 'BIGINT'}" for field in schema)
    parsed = f"from_json(CAST(value AS STRING), '{types}')"
    return Reading(parsed, tuple(f"{_time(field, f'{ROW}.`{field.name}`')} AS `{field.name}`" for field in schema))


def _time(field: pa.Field, number: str) -> str:
    return f"timestamp_micros({number})" if pa.types.is_timestamp(field.type) else number


def _unpacked(schema: pa.Schema) -> list[str]:
    """Digits out of bytes: ``hex`` writes each byte of packed decimal as its two digits."""
    found, at = [], 1
    for field, width in zip(schema, Binary(schema).widths, strict=True):
        digits = f"hex(substring({ROW}, {at}, {width}))"
        number = f"CAST({digits} AS {'INT' if field.type == pa.int32() else 'BIGINT'})"
        found.append(f"{_time(field, number)} AS `{field.name}`")
        at += width
    return found


def writing(name: FormatName, schema: pa.Schema) -> str:
    """From the columns of the schema, which may hold numbers of any sign and nulls, to the value of an output."""
    if name == "avro":
        columns = ", ".join(_quoted(field) for field in schema)
        return f"to_avro(struct({columns}), '{Avro(schema, outputs=True).text}')"
    numbers = [_number(field) for field in schema]
    if name == "json":
        held = ", ".join(f"{number} AS {_quoted(field)}" for number, field in zip(numbers, schema, strict=True))
        return f"to_json(struct({held}))"
    widths = Binary(schema, outputs=True).widths
    digits = [_packed(number, 2 * width) for number, width in zip(numbers, widths, strict=True)]
    return f"unhex(concat({', '.join(digits)}))"


def _packed(number: str, digits: int) -> str:
    """A number as ``digits.write_signed`` writes it, in hexadecimal."""
    below = f"concat('D', lpad(substring(CAST({number} AS STRING), 2), {digits - 1}, '0'))"
    return f"coalesce(if({number} < 0, {below}, lpad({number}, {digits}, '0')), '{'F'.ljust(digits, '0')}')"


def _number(field: pa.Field) -> str:
    return f"unix_micros({_quoted(field)})" if pa.types.is_timestamp(field.type) else _quoted(field)


def _quoted(field: pa.Field) -> str:
    """The name of a column in SQL, whatever characters it has."""
    name = field.name.replace("`", "``")
    return f"`{name}`"
