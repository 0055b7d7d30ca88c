"""Events and outputs as plain data of Avro, many rows at a time. Pure."""

import json
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from streamgauge.transport.kafka.columns import (
    SEQUENCE,
    FormatError,
    FormatName,
    as_column,
    digits_of,
    naming,
    whole_numbers,
)
from streamgauge.transport.kafka.digits import Marks
from streamgauge.transport.kafka.varints import LONGEST, Bytes, Ints, Matrix, VarintError, read_varints, widened

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The names that Avro allows."""
_WIDTHS = {12: 5, 16: 8, 20: 10}
"""Bytes of a varint by the digits of its column."""


class Avro:
    """A plain datum: a record of ints and longs, without a header."""

    name: FormatName = "avro"

    def __init__(self, schema: pa.Schema, outputs: bool = False) -> None:
        self.schema, self._outputs = schema, outputs
        self.widths = tuple(_avro_width(field, outputs) for field in schema)
        """Bytes of each column as written here; others write shorter ones."""
        self.width = sum(self.widths)

    @property
    def text(self) -> str:
        """The schema as Avro writes it."""
        types = [_avro_type(field.type) for field in self.schema]
        held = [["null", kind] for kind in types] if self._outputs else types
        fields = [{"name": name, "type": kind} for name, kind in zip(self.schema.names, held, strict=True)]
        return json.dumps({"type": "record", "name": "row", "fields": fields})

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        if self._outputs:
            return np.hstack([*self._unions(rows)])
        out = np.empty((rows.num_rows, self.width), np.uint8)
        at = 0
        for field, column, width in zip(self.schema, rows.columns, self.widths, strict=True):
            with naming(field):
                out[:, at : at + width] = widened(whole_numbers(column, outputs=False)[0], width)
            at += width
        return out

    def _unions(self, rows: pa.RecordBatch) -> Iterator[Matrix]:
        """The columns of outputs, each with the width that its numbers and nulls need together."""
        for field, column, width in zip(self.schema, rows.columns, self.widths, strict=True):
            with naming(field):
                yield _union(*whole_numbers(column, outputs=True), width)

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows, whatever the widths."""
        _, ends, data = values.buffers()
        cuts = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        whole = np.frombuffer(data or b"", np.uint8)
        at, columns = cuts[:-1], []
        try:
            for field in self.schema:
                missing = None
                if self._outputs:
                    numbers, missing, at = _read_unions(whole, at)
                else:
                    numbers, at = read_varints(whole, at)
                with naming(field):
                    columns.append(as_column(numbers, field, missing))
        except (IndexError, VarintError) as error:
            raise FormatError(f"a value is no datum of {', '.join(self.schema.names)}: {error}") from error
        if values.null_count or np.any(at != cuts[1:]):
            raise FormatError(f"a value is no datum of {', '.join(self.schema.names)}: it ends elsewhere")
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _avro_width(field: pa.Field, outputs: bool) -> int:
    """Bytes of a column: of its number, and before it, in outputs, of its place in the union with null."""
    if outputs:
        return 1 + _WIDTHS[digits_of(field, outputs)]
    return 6 if field.name == SEQUENCE else _WIDTHS[digits_of(field, outputs)]


def _union(numbers: Ints, missing: Marks | None, width: int) -> Matrix:
    """Numbers as unions with null: the place of the type, 0 for null and 1 for a number, and then the number.

    Null has no bytes after its place, so the varint of the place is as wide as place and number of the other rows.
    """
    width = width if missing is None else min(width, LONGEST)
    out = np.hstack([widened(np.ones(len(numbers), np.int64), 1), widened(numbers, width - 1)])
    if missing is not None:
        out[missing] = widened(np.zeros(1, np.int64), width)
    return out


def _read_unions(whole: Bytes, at: Ints) -> tuple[Ints, Marks, Ints]:
    """Unions with null that begin at these places: their numbers, which are null, and the places after them."""
    places, after = read_varints(whole, at)
    missing = places == 0
    if np.any(places[~missing] != 1):
        raise VarintError("a union with null has types at the places 0 and 1 only")
    numbers, present = np.zeros(len(at), np.int64), np.flatnonzero(~missing)
    numbers[present], after[present] = read_varints(whole, after[present])
    return numbers, missing, after


def _avro_type(kind: pa.DataType) -> object:
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    return "int" if kind == pa.int32() else "long"
