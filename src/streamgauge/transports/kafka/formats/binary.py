"""The format ``binary``: the cells of a row one after another, as packed decimal and text. Pure."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.transports.kafka.client.varints import Bytes, Ints, Matrix
from streamgauge.transports.kafka.formats.cells import (
    FLOAT_WIDTH,
    compacted,
    flat_bytes,
    gathered,
    missing_of,
    padded,
    read_floats,
    write_floats,
)
from streamgauge.transports.kafka.formats.columns import (
    FormatError,
    FormatName,
    as_column,
    as_int64,
    digits_of,
    kind_of,
    naming,
    require_values,
)
from streamgauge.transports.kafka.formats.digits import Marks, read_packed, read_signed, write_packed, write_signed

TEXT_LENGTH = 6
"""Bytes of the length of a text, as packed decimal."""
_SHOWN = 60


class Binary:
    """The cells one after another, and after the last one the texts."""

    name: FormatName = "binary"

    def __init__(self, schema: pa.Schema, outputs: bool = False) -> None:
        self.schema, self._outputs = schema, outputs
        self._kinds = tuple(kind_of(field) for field in schema)
        rooms = {"float": FLOAT_WIDTH, "text": TEXT_LENGTH}
        self.widths = tuple(
            rooms[kind] if kind in rooms else digits_of(field, outputs) // 2
            for field, kind in zip(schema, self._kinds, strict=True)
        )
        """Bytes of the cell of each column; the cell of a text contains its length."""
        self.width = sum(self.widths)

    def encode(self, rows: pa.RecordBatch) -> Matrix:
        """Rows as values."""
        out = np.empty((rows.num_rows, self.width), np.uint8)
        at, texts = 0, list[tuple[Matrix, Ints]]()
        for field, column, width, kind in zip(self.schema, rows.columns, self.widths, self._kinds, strict=True):
            cells = out[:, at : at + width]
            with naming(field):
                require_values(column, self._outputs)
                if kind == "float":
                    cells[:] = write_floats(column)
                elif kind == "text":
                    texts.append(padded(column, 0))
                    self._write(cells, texts[-1][1], missing_of(column))
                else:
                    self._write(cells, *as_int64(column, self._outputs))
            at += width
        if not texts:
            return out
        full = np.full(len(out), self.width, np.int64)
        return compacted([out, *(cells for cells, _ in texts)], [full, *(lengths for _, lengths in texts)])

    def _write(self, out: Matrix, numbers: Ints, missing: Marks | None) -> None:
        if self._outputs:
            write_signed(out, numbers, missing)
        else:
            write_packed(out, numbers)

    def decode(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """Values as rows."""
        lengths, whole = flat_bytes(values)
        starts = np.cumsum(lengths) - lengths
        _check_lengths(values, lengths, self.width, longer="text" in self._kinds)
        data = _heads(whole, starts, self.width) if "text" in self._kinds else whole.reshape(-1, self.width)
        columns, at, after = [], 0, starts + self.width
        for field, width, kind in zip(self.schema, self.widths, self._kinds, strict=True):
            part = data[:, at : at + width]
            with naming(field):
                if kind == "float":
                    columns.append(read_floats(part))
                else:
                    numbers, missing = read_signed(part) if self._outputs else (read_packed(part), None)
                    if kind == "text":
                        columns.append(_masked(gathered(whole, after, numbers), missing))
                        after = after + numbers
                    else:
                        columns.append(as_column(numbers, field, missing))
            at += width
        if np.any(after > starts + lengths):
            raise FormatError("a text ends after its record")
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _masked(column: pa.Array, missing: Marks | None) -> pa.Array:
    return column if missing is None else pc.if_else(pa.array(missing), None, column)


def _heads(whole: Bytes, starts: Ints, width: int) -> Matrix:
    """The first bytes of values that may be longer."""
    heads: Matrix = whole[starts[:, None] + np.arange(width)]
    return heads


def _check_lengths(values: pa.BinaryArray, lengths: Ints, width: int, longer: bool) -> None:
    """Raise unless values are as wide as their cells; with text they may be longer."""
    wrong = np.flatnonzero(lengths < width if longer else lengths != width)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    if not len(wrong) and not missing.any():
        return
    first = values[int(wrong[0]) if len(wrong) else int(missing.argmax())].as_py()
    more = " or more" if longer else ""
    raise FormatError(f"a value is {first[:_SHOWN] if first else first!r}; it should have {width} bytes{more}")
