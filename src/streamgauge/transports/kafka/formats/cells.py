"""Columns of floating-point numbers and of text as bytes, and back, for all formats of Kafka's values. Pure.

All values of a batch must have the same width, because records are built many at a time. A floating-point number has a
fixed width. Text has none: rows with text are as wide as the longest row of the batch, and shorter ones are padded.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.transports.kafka.client.varints import Bytes, Ints, Matrix
from streamgauge.transports.kafka.formats.digits import Marks

FLOAT_WIDTH = 25
"""Characters of the longest float64 as Arrow writes it: -0.0000025368979460987473. Smaller ones have an exponent."""
SPACE = ord(" ")
_FIRST_PRINTABLE, _QUOTE, _BACKSLASH = 0x20, ord('"'), ord("\\")


class CellError(ValueError):
    """Bytes that are not a cell of the column."""


def flat_bytes(values: pa.Array) -> tuple[Ints, Bytes]:
    """The lengths of binary values, 0 for null, and all their bytes, one value after another."""
    column = values.cast(pa.binary()).fill_null(b"") if values.null_count else values.cast(pa.binary())
    _, ends, data = column.buffers()
    cuts = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    whole = np.frombuffer(data or b"", np.uint8)
    return np.diff(cuts), whole[cuts[0] : cuts[-1]] if len(cuts) else whole


def padded(values: pa.Array, fill: int, width: int | None = None) -> tuple[Matrix, Ints]:
    """Binary values as rows of one width, filled up at their ends, and their own lengths."""
    lengths, flat = flat_bytes(values)
    wide = int(lengths.max(initial=0)) if width is None else width
    if width is not None and int(lengths.max(initial=0)) > width:
        raise CellError(f"a value has {int(lengths.max())} bytes; there is room for {width}")
    out = np.full((len(lengths), wide), fill, np.uint8)
    out[np.arange(wide) < lengths[:, None]] = flat
    return out, lengths


def compacted(parts: list[Matrix], lengths: list[Ints]) -> Matrix:
    """Cells side by side without the padding between them: the bytes of each cell, and zeros after the last one."""
    present = [np.arange(part.shape[1]) < length[:, None] for part, length in zip(parts, lengths, strict=True)]
    total = np.sum(lengths, axis=0)
    out = np.zeros((len(total), int(total.max(initial=0))), np.uint8)
    out[np.arange(out.shape[1]) < total[:, None]] = np.hstack(parts)[np.hstack(present)]
    return out


def gathered(whole: Bytes, at: Ints, lengths: Ints) -> pa.Array:
    """The ranges of bytes that begin at these positions, as text. Raises if they are outside, or not UTF-8."""
    if np.any(lengths < 0) or np.any(at + lengths > len(whole)):
        raise CellError("a text ends after its record")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(at - ends[:-1], lengths) + np.arange(int(ends[-1]))
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(whole[places])]
    return pa.Array.from_buffers(pa.binary(), len(at), buffers).cast(pa.string())


def float_texts(column: pa.Array) -> pa.Array:
    """Floating-point numbers as text that can be read back exactly, with Java's names for NaN and infinities."""
    texts = column.cast(pa.string())
    texts = pc.if_else(pc.equal(texts, "-0"), "-0.0", texts)  # parsers read -0 as an integer, without its sign
    for number, name in ((float("inf"), "Infinity"), (float("-inf"), "-Infinity")):
        texts = pc.if_else(pc.equal(column, number), name, texts)
    return pc.if_else(pc.is_nan(column), "NaN", texts)


def write_floats(column: pa.Array) -> Matrix:
    """Floating-point numbers as text with spaces after it; null is all spaces."""
    return padded(float_texts(column), SPACE, FLOAT_WIDTH)[0]


def read_floats(data: Matrix) -> pa.Array:
    """The numbers that ``write_floats``, or Spark, wrote."""
    cells = gathered(np.ascontiguousarray(data).reshape(-1), np.arange(len(data)) * FLOAT_WIDTH, _full(data))
    texts = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.equal(texts, ""), None, texts).cast(pa.float64())


def _full(data: Matrix) -> Ints:
    return np.full(len(data), data.shape[1], np.int64)


def json_floats(column: pa.Array) -> pa.Array:
    """Floating-point numbers as JSON; NaN and infinities are strings, as Spark writes and reads them."""
    texts = float_texts(column)
    quoted = pc.binary_join_element_wise('"', texts, '"', "")
    return pc.if_else(pc.is_finite(column), texts, quoted).fill_null("null")


def json_texts(column: pa.Array) -> pa.Array:
    """Text as JSON strings. Rows are written one by one only if there are characters that need an escape."""
    _, flat = flat_bytes(column)
    if np.any((flat < _FIRST_PRINTABLE) | (flat == _QUOTE) | (flat == _BACKSLASH)):
        written = [json.dumps(text, ensure_ascii=False) for text in column.to_pylist()]
        return pa.array(written, pa.string())
    return pc.binary_join_element_wise('"', column, '"', "").fill_null("null")


def union_indexes(missing: Marks | None, rows: int) -> Matrix:
    """The index of the type in Avro's union with null, as a varint of one byte: 0 is null, 1 is the value."""
    indexes = np.full((rows, 1), 2, np.uint8)  # zigzag of 1
    if missing is not None:
        indexes[missing] = 0
    return indexes


def missing_of(column: pa.Array) -> Marks | None:
    """Which cells are null; None: no cell is."""
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
