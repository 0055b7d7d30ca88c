"""Events and outputs as the values of Kafka's records, and back: ``json``, ``binary`` and ``avro``. Pure.

Rows are made with numpy, a column at a time, so all values of one format and schema have one width.

json    one object; numbers are filled up with spaces before them, which JSON allows
binary  one number after the other as packed decimal: two digits to a byte, the highest first, without a sign
avro    a plain datum, no registry; numbers are filled up with continuation bytes, which decoders take

Packed decimal is the binary form that Spark SQL reads without a user's function: ``hex`` gives the digits, a cast the
number. It has no other way from bytes to a number than text: ``cast(binary as bigint)`` does not exist, and big-endian
integers by ``conv(hex(…), 16, 10)`` cost more than twice as much (docs/adr/0015).

Times are microseconds since 1970. Each event carries ``due`` and its number in the stream, ``sequence``.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from streamgauge.transport.kafka.digits import DigitsError, lay_text, read_packed, write_packed
from streamgauge.transport.kafka.varints import Ints, Matrix, VarintError, read_varints, widened

FormatName = Literal["json", "binary", "avro"]
SEQUENCE = "sequence"
"""The column of an event's number in its stream."""
KEY = "gem_pack_id"
"""The column that is the key of a record, where rows have it."""
STAMP = pa.timestamp("us", "UTC")

_SHOWN = 60
_AVRO_WIDTHS = {12: 5, 16: 8, 20: 10}
"""Bytes of a varint by the digits of its column."""


class FormatError(ValueError):
    """A row that a format cannot hold, or bytes that are no row; the sentence says which and why."""


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
    """The format of this name for rows of this schema."""
    kinds: Mapping[str, type[Json] | type[Binary] | type[Avro]] = {"json": Json, "binary": Binary, "avro": Avro}
    return kinds[name](schema)


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


def _digits(field: pa.Field) -> int:
    """Digits that a column has room for."""
    if field.name == SEQUENCE or field.type == pa.int32():
        return 12
    if pa.types.is_timestamp(field.type):
        return 16  # until the year 2286
    if field.type == pa.int64():
        return 20
    raise FormatError(f"the column {field.name} has the type {field.type}; whole numbers and times can travel")


@contextmanager
def _naming(field: pa.Field) -> Iterator[None]:
    """What a column cannot hold is said with its name."""
    try:
        yield
    except (DigitsError, VarintError, pa.ArrowInvalid) as error:
        raise FormatError(f"the column {field.name}: {error}") from error


def _whole(column: pa.Array) -> Ints:
    """A column as whole numbers, without copying where it can be."""
    if column.null_count:
        raise FormatError("a column has no value in some row")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
    numbers: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


def _as_column(numbers: Ints, field: pa.Field) -> pa.Array:
    if pa.types.is_timestamp(field.type):
        return pa.array(numbers).view(pa.timestamp("us", field.type.tz)).cast(field.type)
    return pa.array(numbers).cast(field.type)


class Json:
    """One object to a value."""

    name: FormatName = "json"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._places = list[tuple[pa.Field, int, int]]()
        text = b""
        for field in schema:
            text += (b"," if text else b"{") + json.dumps(field.name).encode() + b":"
            self._places.append((field, len(text), _digits(field)))
            text += b" " * _digits(field)
        self._template = np.frombuffer(text + b"}", np.uint8)
        self.width = len(self._template)

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        out = np.empty((rows.num_rows, self.width), np.uint8)
        out[:] = self._template
        for (field, at, width), column in zip(self._places, rows.columns, strict=True):
            with _naming(field):
                lay_text(out[:, at : at + width], _whole(column))
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

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.widths = tuple(_digits(field) // 2 for field in schema)
        """Bytes of each column."""
        self.width = sum(self.widths)

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        out = np.empty((rows.num_rows, self.width), np.uint8)
        at = 0
        for field, column, width in zip(self.schema, rows.columns, self.widths, strict=True):
            with _naming(field):
                write_packed(out[:, at : at + width], _whole(column))
            at += width
        return out

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows."""
        data = _matrix(values, self.width)
        columns, at = [], 0
        for field, width in zip(self.schema, self.widths, strict=True):
            with _naming(field):
                columns.append(_as_column(read_packed(data[:, at : at + width]), field))
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


class Avro:
    """A plain datum: a record of ints and longs, without a header."""

    name: FormatName = "avro"

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.widths = tuple(6 if field.name == SEQUENCE else _AVRO_WIDTHS[_digits(field)] for field in schema)
        """Bytes of each column as written here; others write shorter ones."""
        self.width = sum(self.widths)

    @property
    def text(self) -> str:
        """The schema as Avro writes it."""
        fields = [{"name": field.name, "type": _avro_type(field.type)} for field in self.schema]
        return json.dumps({"type": "record", "name": "row", "fields": fields})

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        out = np.empty((rows.num_rows, self.width), np.uint8)
        at = 0
        for field, column, width in zip(self.schema, rows.columns, self.widths, strict=True):
            with _naming(field):
                out[:, at : at + width] = widened(_whole(column), width)
            at += width
        return out

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows, whatever the widths."""
        _, ends, data = values.buffers()
        cuts = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        whole = np.frombuffer(data or b"", np.uint8)
        at, columns = cuts[:-1], []
        try:
            for field in self.schema:
                numbers, at = read_varints(whole, at)
                with _naming(field):
                    columns.append(_as_column(numbers, field))
        except (IndexError, VarintError) as error:
            raise FormatError(f"a value is no datum of {', '.join(self.schema.names)}: {error}") from error
        if values.null_count or np.any(at != cuts[1:]):
            raise FormatError(f"a value is no datum of {', '.join(self.schema.names)}: it ends elsewhere")
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _avro_type(kind: pa.DataType) -> object:
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    return "int" if kind == pa.int32() else "long"
