"""Events and outputs as the values of Kafka's records, and back: ``json``, ``binary`` and ``avro``. Pure.

Rows are made with numpy, a column at a time, so all values of one format and schema have one width.

json    one object; numbers are filled up with spaces before them, which JSON allows
binary  one number after the other as packed decimal: two digits to a byte, the highest first, without a sign
avro    a plain datum, no registry; numbers are filled up with continuation bytes, which decoders take

Events have no nulls, and in ``binary`` no numbers below 0. Outputs may have both, since a user's function may:
``output_format`` has room for every number of 64 bits, a sign and a mark for null in ``binary``, and a union with null
for every column in ``avro``.

Packed decimal is the binary form that Spark SQL reads without a user's function: ``hex`` gives the digits, a cast the
number. It has no other way from bytes to a number than text: ``cast(binary as bigint)`` does not exist, and big-endian
integers by ``conv(hex(…), 16, 10)`` cost more than twice as much (docs/adr/0015).

Times are microseconds since 1970. Each event carries ``due`` and its number in the stream, ``sequence``.
"""

import json
from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from streamgauge.transport.kafka.avro import NAME, Avro
from streamgauge.transport.kafka.columns import (
    SEQUENCE,
    FormatError,
    FormatName,
    as_column,
    digits_of,
    naming,
    whole_numbers,
)
from streamgauge.transport.kafka.digits import lay_text, read_packed, read_signed, write_packed, write_signed
from streamgauge.transport.kafka.varints import Ints, Matrix

KEY = "gem_pack_id"
"""The column that is the key of a record, where rows have it."""
STAMP = pa.timestamp("us", "UTC")

_SHOWN = 60


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
        """Values as rows, also those that others have written with other widths."""


def open_format(name: FormatName, schema: pa.Schema) -> Format:
    """The format of this name for events of this schema."""
    return _KINDS[name](schema)


def output_format(name: FormatName, schema: pa.Schema) -> Format:
    """The format of this name for outputs of this schema: numbers of any sign, and nulls."""
    return _KINDS[name](schema, outputs=True)


def name_problem(name: FormatName, column: str) -> str:
    """Why a format cannot hold a column of this name; empty if it can."""
    if name == "avro" and not NAME.fullmatch(column):
        return "Avro's names have letters, digits and underscores only, and do not begin with a digit"
    return ""


def with_sequence(schema: pa.Schema) -> pa.Schema:
    """The schema of a workload's events as they travel."""
    return schema.append(pa.field(SEQUENCE, pa.int64()))


def numbered(rows: pa.RecordBatch, first: int, stride: int = 1) -> pa.RecordBatch:
    """Events with their numbers in the stream: ``first`` and every ``stride``-th after it, as partitions have them."""
    numbers = pa.array(np.arange(first, first + stride * rows.num_rows, stride, dtype=np.int64))
    return pa.RecordBatch.from_arrays([*rows.columns, numbers], schema=with_sequence(rows.schema))


def record_keys(rows: pa.RecordBatch) -> Matrix | None:
    """The keys of the records of rows; None where they have none."""
    return keys_of(rows.column(KEY).to_numpy()) if KEY in rows.schema.names else None


def keys_of(numbers: Ints) -> Matrix:
    """Keys as Kafka's own IntegerSerializer writes them: four bytes, the highest first."""
    return np.ascontiguousarray(numbers, ">i4").view(np.uint8).reshape(-1, 4)


class Json:
    """One object to a value."""

    name: FormatName = "json"

    def __init__(self, schema: pa.Schema, outputs: bool = False) -> None:
        self.schema, self._outputs = schema, outputs
        self._places = list[tuple[pa.Field, int, int]]()
        text = b""
        for field in schema:
            text += (b"," if text else b"{") + json.dumps(field.name).encode() + b":"
            self._places.append((field, len(text), digits_of(field, outputs)))
            text += b" " * digits_of(field, outputs)
        self._template = np.frombuffer(text + b"}", np.uint8)
        self.width = len(self._template)

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        out = np.empty((rows.num_rows, self.width), np.uint8)
        out[:] = self._template
        for (field, at, width), column in zip(self._places, rows.columns, strict=True):
            with naming(field):
                numbers, missing = whole_numbers(column, self._outputs)
                lay_text(out[:, at : at + width], numbers)
            if missing is not None:
                out[missing, at : at + width] = np.frombuffer(b"null".rjust(width), np.uint8)
        return out

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows: each value is one object on one line."""
        if not len(values):
            return pa.RecordBatch.from_pylist([], self.schema)
        fields = [field if field.type == pa.int32() else pa.field(field.name, pa.int64()) for field in self.schema]
        try:
            lines = b"\n".join(values.to_pylist())
            options = arrow_json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
            table = arrow_json.read_json(pa.BufferReader(lines), parse_options=options)
        except (TypeError, pa.ArrowException) as error:
            raise FormatError(f"a value is no JSON object of whole numbers: {error}") from error
        if len(table) != len(values):
            raise FormatError(f"{len(values)} values hold {len(table)} JSON objects; each must hold one")
        columns = [table.column(field.name).combine_chunks() for field in self.schema]
        return pa.RecordBatch.from_arrays(
            [_view(column, field.type) for column, field in zip(columns, self.schema, strict=True)], schema=self.schema
        )


def _view(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column.view(STAMP).cast(kind) if pa.types.is_timestamp(kind) else column


class Binary:
    """One number after the other, as packed decimal."""

    name: FormatName = "binary"

    def __init__(self, schema: pa.Schema, outputs: bool = False) -> None:
        self.schema, self._outputs = schema, outputs
        self.widths = tuple(digits_of(field, outputs) // 2 for field in schema)
        """Bytes of each column."""
        self.width = sum(self.widths)

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        out = np.empty((rows.num_rows, self.width), np.uint8)
        at = 0
        for field, column, width in zip(self.schema, rows.columns, self.widths, strict=True):
            with naming(field):
                numbers, missing = whole_numbers(column, self._outputs)
                if self._outputs:
                    write_signed(out[:, at : at + width], numbers, missing)
                else:
                    write_packed(out[:, at : at + width], numbers)
            at += width
        return out

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows."""
        data = _matrix(values, self.width)
        columns, at = [], 0
        for field, width in zip(self.schema, self.widths, strict=True):
            with naming(field):
                part = data[:, at : at + width]
                numbers, missing = read_signed(part) if self._outputs else (read_packed(part), None)
                columns.append(as_column(numbers, field, missing))
            at += width
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _matrix(values: pa.BinaryArray, width: int) -> Matrix:
    """Values of one width as rows of bytes."""
    _, ends, data = values.buffers()
    cuts = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    if values.null_count or np.any(np.diff(cuts) != width):
        wrong = next(v for v in values.to_pylist() if v is None or len(v) != width)
        raise FormatError(f"a value is {wrong[:_SHOWN] if wrong else wrong!r}; it should have {width} bytes")
    whole = np.frombuffer(data or b"", np.uint8)
    return whole[cuts[0] : cuts[-1]].reshape(-1, width) if len(values) else np.zeros((0, width), np.uint8)


_KINDS: Mapping[FormatName, type[Json] | type[Binary] | type[Avro]] = {"json": Json, "binary": Binary, "avro": Avro}
