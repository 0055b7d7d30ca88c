"""Events and outputs as plain Avro datums, many rows at a time. Pure."""

import json
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.transports.kafka.client.varints import (
    MAX_WIDTH,
    Bytes,
    Ints,
    Matrix,
    VarintError,
    fixed_width,
    read_varints,
)
from streamgauge.transports.kafka.formats.cells import compacted, gathered, missing_of, padded, union_indexes
from streamgauge.transports.kafka.formats.columns import (
    SEQUENCE,
    FormatError,
    FormatName,
    as_column,
    as_int64,
    digits_of,
    kind_of,
    naming,
    require_values,
)
from streamgauge.transports.kafka.formats.digits import Marks

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names that Avro allows."""
_WIDTHS = {12: 5, 16: 8, 20: 10}
"""Bytes of a varint, by the digits of its column."""
_DOUBLE, _LENGTH = 8, 5
"""Bytes of a float, and of the length of a text."""


class Avro:
    """A plain datum: a record of ints, longs, doubles and strings, without a header."""

    name: FormatName = "avro"

    def __init__(self, schema: pa.Schema, outputs: bool = False) -> None:
        self.schema, self._outputs = schema, outputs
        self._kinds = tuple(kind_of(field) for field in schema)
        self.widths = tuple(_avro_width(field, outputs) for field in schema)
        """Bytes of each column as written here; other writers use fewer bytes."""
        self.width = sum(self.widths)

    @property
    def text(self) -> str:
        """The schema as Avro JSON."""
        types = [_avro_type(field.type) for field in self.schema]
        unions = [["null", kind] for kind in types] if self._outputs else types
        fields = [{"name": name, "type": kind} for name, kind in zip(self.schema.names, unions, strict=True)]
        return json.dumps({"type": "record", "name": "row", "fields": fields})

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        if "text" in self._kinds:
            return self._with_texts(rows)
        if self._outputs:
            return np.hstack([*self._unions(rows)])
        out = np.empty((rows.num_rows, self.width), np.uint8)
        at = 0
        for field, column, width in zip(self.schema, rows.columns, self.widths, strict=True):
            with naming(field):
                require_values(column, outputs=False)
                out[:, at : at + width] = _cells(column, width)
            at += width
        return out

    def _unions(self, rows: pa.RecordBatch) -> Iterator[Matrix]:
        """The columns of outputs, each as wide as its values and nulls need."""
        for field, column, width, kind in zip(self.schema, rows.columns, self.widths, self._kinds, strict=True):
            with naming(field):
                if kind == "float":
                    yield _float_union(column)
                else:
                    yield _union(*as_int64(column, outputs=True), width)

    def _with_texts(self, rows: pa.RecordBatch) -> Matrix:
        """Rows with columns of text: cells of different lengths one after another, and zeros after the shorter rows."""
        parts, lengths = list[Matrix](), list[Ints]()
        for field, column, width in zip(self.schema, rows.columns, self.widths, strict=True):
            with naming(field):
                require_values(column, self._outputs)
                missing = missing_of(column)
                present = np.ones(len(column), np.int64) if missing is None else (~missing).astype(np.int64)
                if self._outputs:
                    parts.append(union_indexes(missing, len(column)))
                    lengths.append(np.ones(len(column), np.int64))
                if kind_of(field) == "text":
                    text, long = padded(column, 0)
                    parts += [fixed_width(long, _LENGTH), text]
                    lengths += [present * _LENGTH, long]
                else:
                    parts.append(_cells(column, width - (1 if self._outputs else 0)))
                    lengths.append(present * parts[-1].shape[1])
        return compacted(parts, lengths)

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows, also if other writers used other widths."""
        _, ends, data = values.buffers()
        cuts = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        whole = np.frombuffer(data or b"", np.uint8)
        at, columns = cuts[:-1].copy(), []
        try:
            for field in self.schema:
                column, at = self._read(field, whole, at)
                columns.append(column)
        except (IndexError, VarintError) as error:
            raise FormatError(f"a value is not an Avro datum of {', '.join(self.schema.names)}: {error}") from error
        if values.null_count or self._wrong_ends(whole, at, cuts[1:]):
            raise FormatError(f"a value is not an Avro datum of {', '.join(self.schema.names)}: its length is wrong")
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _read(self, field: pa.Field, whole: Bytes, at: Ints) -> tuple[pa.Array, Ints]:
        """The cells of a column that begin at these positions, and the positions after them."""
        kind = kind_of(field)
        if kind == "number" and not self._outputs:  # fast: no row can be null
            numbers, at = read_varints(whole, at)
            return _named(numbers, field), at
        missing = np.zeros(len(at), bool)
        if self._outputs:
            missing, at = _read_union_indexes(whole, at)
        present = np.flatnonzero(~missing)
        if kind == "number":
            numbers = np.zeros(len(at), np.int64)
            numbers[present], at[present] = read_varints(whole, at[present])
            return _named(numbers, field, missing), at
        if kind == "float":
            floats = np.zeros(len(at))
            floats[present] = whole[at[present, None] + np.arange(_DOUBLE)].view("<f8")[:, 0]
            at[present] += _DOUBLE
            return pa.array(floats, mask=missing), at
        lengths = np.zeros(len(at), np.int64)
        lengths[present], at[present] = read_varints(whole, at[present])
        with naming(field):
            texts = gathered(whole, at, lengths)
        return pc.if_else(pa.array(missing), None, texts), at + lengths

    def _wrong_ends(self, whole: Bytes, at: Ints, ends: Ints) -> bool:
        """Whether a record is shorter than its datum, or is followed by more than the zeros after rows with text."""
        if "text" not in self._kinds or np.any(at > ends):
            return bool(np.any(at != ends))
        left = ends - at
        places = np.repeat(at - np.cumsum(left) + left, left) + np.arange(int(left.sum()))
        return bool(np.any(whole[places]))


def _named(numbers: Ints, field: pa.Field, missing: Marks | None = None) -> pa.Array:
    """A column of numbers; an error about a number that does not fit names the column."""
    with naming(field):
        return as_column(numbers, field, missing)


def _avro_width(field: pa.Field, outputs: bool) -> int:
    """Bytes of a column: of its value and, in outputs, of the index of its type in the union with null."""
    kind = kind_of(field)
    if kind != "number":
        return (_DOUBLE if kind == "float" else _LENGTH) + outputs
    if outputs:
        return 1 + _WIDTHS[digits_of(field, outputs)]
    return 6 if field.name == SEQUENCE else _WIDTHS[digits_of(field, outputs)]


def _cells(column: pa.Array, width: int) -> Matrix:
    """Numbers in so many bytes; 0 for null."""
    if column.type == pa.float64():
        return _doubles(column)
    return fixed_width(as_int64(column, outputs=True)[0], width)


def _doubles(column: pa.Array) -> Matrix:
    numbers = column.fill_null(0.0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(numbers, "<f8").view(np.uint8).reshape(-1, _DOUBLE)


def _float_union(column: pa.Array) -> Matrix:
    """Floats as unions with null. Null is as wide as the others, because the varint of its index is wider."""
    out = np.hstack([union_indexes(None, len(column)), _doubles(column)])
    missing = missing_of(column)
    if missing is not None:
        out[missing] = fixed_width(np.zeros(1, np.int64), 1 + _DOUBLE)
    return out


def _union(numbers: Ints, missing: Marks | None, width: int) -> Matrix:
    """Numbers as unions with null: the index of the type, 0 for null and 1 for a number, and then the number.

    Null has no bytes after its index, so the varint of the index is as wide as index and number of the other rows.
    """
    width = width if missing is None else min(width, MAX_WIDTH)
    out = np.hstack([fixed_width(np.ones(len(numbers), np.int64), 1), fixed_width(numbers, width - 1)])
    if missing is not None:
        out[missing] = fixed_width(np.zeros(1, np.int64), width)
    return out


def _read_union_indexes(whole: Bytes, at: Ints) -> tuple[Marks, Ints]:
    """The indexes of the types in unions with null at these positions: which are null, and the positions after them."""
    indexes, after = read_varints(whole, at)
    missing = indexes == 0
    if np.any(indexes[~missing] != 1):
        raise VarintError("a union with null has only the types 0 and 1")
    return missing, after


def _avro_type(kind: pa.DataType) -> object:
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    return {pa.int32(): "int", pa.float64(): "double", pa.string(): "string"}.get(kind, "long")
