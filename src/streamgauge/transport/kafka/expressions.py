"""The formats as expressions of Spark SQL: text for the engine to select, with no user's function in it. Pure.

What one row of five numbers costs on PySpark 4.3, beyond handing the bytes on: packed decimal by ``hex`` 0.6 µs,
``from_avro`` 0.4 µs, ``from_json`` 2.6 µs. Big-endian integers by ``conv(hex(…), 16, 10)`` would be 1.4 µs; Spark
casts no bytes to a number.
"""

from dataclasses import dataclass

import pyarrow as pa

from streamgauge.transport.kafka.avro import Avro
from streamgauge.transport.kafka.binary import Binary
from streamgauge.transport.kafka.cells import FLOAT_WIDTH
from streamgauge.transport.kafka.columns import FormatName, kind_of

_JSON_TYPES = {pa.int32(): "INT", pa.float64(): "DOUBLE", pa.string(): "STRING"}
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
    types = ", ".join(f"`{field.name}` {_JSON_TYPES.get(field.type, 'BIGINT')}" for field in schema)
    parsed = f"from_json(CAST(value AS STRING), '{types}')"
    return Reading(parsed, tuple(f"{_time(field, f'{ROW}.`{field.name}`')} AS `{field.name}`" for field in schema))


def _time(field: pa.Field, number: str) -> str:
    return f"timestamp_micros({number})" if pa.types.is_timestamp(field.type) else number


def _unpacked(schema: pa.Schema) -> list[str]:
    """Digits out of bytes: ``hex`` writes each byte of packed decimal as its two digits. Texts follow the last cell."""
    layout = Binary(schema)
    found, at, texts = [], 1, f"{layout.width + 1}"
    for field, width in zip(schema, layout.widths, strict=True):
        cell, kind = f"substring({ROW}, {at}, {width})", kind_of(field)
        if kind == "text":
            length = f"CAST(hex({cell}) AS INT)"
            value = f"CAST(substring({ROW}, {texts}, {length}) AS STRING)"
            texts += f" + {length}"
        elif kind == "float":
            value = f"CAST(CAST({cell} AS STRING) AS DOUBLE)"
        else:
            value = _time(field, f"CAST(hex({cell}) AS {'INT' if field.type == pa.int32() else 'BIGINT'})")
        found.append(f"{value} AS `{field.name}`")
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
    cells = [_cell(*column) for column in zip(schema, numbers, widths, strict=True)]
    texts = [f"coalesce(hex({_quoted(field)}), '')" for field in schema if kind_of(field) == "text"]
    return f"unhex(concat({', '.join([*cells, *texts])}))"


def _cell(field: pa.Field, number: str, width: int) -> str:
    """The cell of a column in hexadecimal: a number, the characters of a float, or the length of a text."""
    kind = kind_of(field)
    if kind == "float":
        return f"hex(rpad(coalesce(CAST({number} AS STRING), ''), {FLOAT_WIDTH}, ' '))"
    return _packed(f"octet_length({number})" if kind == "text" else number, 2 * width)


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
