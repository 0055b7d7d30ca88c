"""Events and outputs as the values of Kafka's records, and back: ``json``, ``binary`` and ``avro``. Pure.

numpy writes the rows column by column, so all values of one format and schema have the same width. With columns of
text they are as wide as the longest row of their batch.

json    one object; numbers have leading spaces, floats and text have trailing spaces, as JSON allows
binary  the cells one after another. Integers are packed decimal: two digits per byte, the highest first, without a
        sign. A float is text of 25 characters. The cell of a text is its length; the text itself follows the last cell
avro    a plain datum, no registry; numbers are filled up with continuation bytes, which decoders accept. A row that is
        shorter than the longest row of its batch has zeros after it, which decoders do not read

Events have no nulls, and in ``binary`` no numbers below 0. Outputs may have both, because a user's function may return
them: ``output_format`` supports every number of 64 bits, a sign and a mark for null in ``binary``, and a union with
null for every column in ``avro``.

Packed decimal is the binary form that Spark SQL decodes without a Python function: ``hex`` returns the digits, a cast
the number. Spark SQL converts bytes to numbers only through text: ``cast(binary as bigint)`` does not exist, and
big-endian integers by ``conv(hex(…), 16, 10)`` cost more than twice as much (docs/adr/0015).

Times are microseconds since 1970. Each event contains ``due`` and its number in the stream, ``sequence``.
"""

import json
from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from streamgauge.transports.kafka.client.varints import Ints, Matrix
from streamgauge.transports.kafka.formats.avro import NAME, Avro
from streamgauge.transports.kafka.formats.binary import Binary
from streamgauge.transports.kafka.formats.cells import FLOAT_WIDTH, SPACE, json_floats, json_texts, padded
from streamgauge.transports.kafka.formats.columns import (
    SEQUENCE,
    FormatError,
    FormatName,
    as_int64,
    digits_of,
    kind_of,
    naming,
    require_values,
)
from streamgauge.transports.kafka.formats.digits import write_padded

STAMP = pa.timestamp("us", "UTC")


class Format(Protocol):
    """A way to write rows of one schema as bytes."""

    @property
    def name(self) -> FormatName: ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of a row."""

    @property
    def width(self) -> int:
        """Bytes of every value that it writes."""

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows, also those that other writers have written with other widths."""


def open_format(name: FormatName, schema: pa.Schema) -> Format:
    """The format of this name for events of this schema."""
    return _KINDS[name](schema)


def output_format(name: FormatName, schema: pa.Schema) -> Format:
    """The format of this name for outputs of this schema: numbers of any sign, and nulls."""
    return _KINDS[name](schema, outputs=True)


def name_problem(name: FormatName, column: str) -> str:
    """Why a format cannot contain a column of this name; empty if it can."""
    if name == "avro" and not NAME.fullmatch(column):
        return "Avro's names have letters, digits and underscores only, and do not begin with a digit"
    return ""


def with_sequence(schema: pa.Schema) -> pa.Schema:
    """The schema of a workload's events in Kafka."""
    return schema.append(pa.field(SEQUENCE, pa.int64()))


def with_sequence_numbers(rows: pa.RecordBatch, first: int, stride: int = 1) -> pa.RecordBatch:
    """Events with their numbers in the stream: ``first`` and every ``stride``-th after it, as in a partition."""
    numbers = pa.array(np.arange(first, first + stride * rows.num_rows, stride, dtype=np.int64))
    return pa.RecordBatch.from_arrays([*rows.columns, numbers], schema=with_sequence(rows.schema))


def record_keys(rows: pa.RecordBatch, key: str | None) -> Matrix | None:
    """The keys of the records of rows: the values of a column of integers. None if there is no such column."""
    if key is None or key not in rows.schema.names or not pa.types.is_integer(rows.schema.field(key).type):
        return None
    return encode_keys(rows.column(key).to_numpy())


def encode_keys(numbers: Ints) -> Matrix:
    """Keys as Kafka's IntegerSerializer writes them: four bytes, the highest first."""
    return np.ascontiguousarray(numbers, ">i4").view(np.uint8).reshape(-1, 4)


class Json:
    """One JSON object per value."""

    name: FormatName = "json"

    def __init__(self, schema: pa.Schema, outputs: bool = False) -> None:
        self.schema, self._outputs = schema, outputs
        self._texts = [kind_of(field) == "text" for field in schema]
        self._places = list[tuple[pa.Field, int, int]]()
        text = b""
        for field in schema:
            text += (b"," if text else b"{") + json.dumps(field.name).encode() + b":"
            room = _json_room(field, outputs)
            self._places.append((field, len(text), room))
            text += b" " * room
        self._template = np.frombuffer(text + b"}", np.uint8)
        self.width = len(self._template)

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        out = np.empty((rows.num_rows, self.width), np.uint8)
        out[:] = self._template
        parts, done = list[Matrix](), 0
        for (field, at, width), column, text in zip(self._places, rows.columns, self._texts, strict=True):
            with naming(field):
                if text:
                    require_values(column, self._outputs)
                    parts += [out[:, done:at], padded(json_texts(column), SPACE)[0]]
                    done = at
                else:
                    self._write(out[:, at : at + width], column)
        return np.hstack([*parts, out[:, done:]]) if parts else out

    def _write(self, out: Matrix, column: pa.Array) -> None:
        """Write a column of numbers into its cells."""
        if column.type == pa.float64():
            require_values(column, self._outputs)
            out[:] = padded(json_floats(column), SPACE, out.shape[1])[0]
            return
        numbers, missing = as_int64(column, self._outputs)
        write_padded(out, numbers)
        if missing is not None:
            out[missing] = np.frombuffer(b"null".rjust(out.shape[1]), np.uint8)

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows: each value is one object on one line."""
        if not len(values):
            return pa.RecordBatch.from_pylist([], self.schema)
        times = pa.types.is_timestamp
        fields = [pa.field(field.name, pa.int64()) if times(field.type) else field for field in self.schema]
        try:
            lines = b"\n".join(values.to_pylist())
            if pa.float64() in self.schema.types and (b'"NaN"' in lines or b'Infinity"' in lines):
                table = _with_special_floats(lines, pa.schema(fields))
            else:
                options = arrow_json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
                table = arrow_json.read_json(pa.BufferReader(lines), parse_options=options)
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise FormatError(f"a value is no JSON object of these columns: {error}") from error
        if len(table) != len(values):
            raise FormatError(f"{len(values)} values hold {len(table)} JSON objects; each must hold one")
        columns = [table.column(field.name).combine_chunks() for field in self.schema]
        return pa.RecordBatch.from_arrays(
            [_view(column, field.type) for column, field in zip(columns, self.schema, strict=True)], schema=self.schema
        )


def _json_room(field: pa.Field, outputs: bool) -> int:
    """Characters of a column: text is as wide as its batch needs, a float may be a name in quotes."""
    rooms = {"text": 0, "float": FLOAT_WIDTH}
    kind = kind_of(field)
    return rooms[kind] if kind in rooms else digits_of(field, outputs)


def _with_special_floats(lines: bytes, schema: pa.Schema) -> pa.Table:
    """JSON objects, some of which contain NaN or an infinity, as a string, in a column of floats."""
    rows = [json.loads(line) for line in lines.split(b"\n")]
    floats = [field.name for field in schema if field.type == pa.float64()]
    for row in rows:
        row |= {name: float(row[name]) for name in floats if isinstance(row.get(name), str)}
    return pa.Table.from_pylist(rows, schema)


def _view(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column.view(STAMP).cast(kind) if pa.types.is_timestamp(kind) else column


_KINDS: Mapping[FormatName, type[Json] | type[Binary] | type[Avro]] = {"json": Json, "binary": Binary, "avro": Avro}
