"""Record batches of Kafka (format 2) as bytes, written with numpy, many records at a time. Pure.

All records of a batch have the same widths: keys and values are matrices of bytes with one row per record. Offsets and
timestamps are varints. Records whose offsets have the same width form one block of rows, which is filled column by
column over a template that contains everything else. The base of the timestamps is so far before the first timestamp
that all of them have the same width.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt

from streamgauge.transports.kafka.client.varints import (
    Bytes,
    Ints,
    Matrix,
    encode_fixed,
    fixed_width,
    smallest_of_width,
    varint,
    width_of,
)

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, first and last timestamp,
producer id and epoch, base sequence, number of records."""

FRAME = 12
"""Bytes before those that the batch's length counts."""
CHECKED_FROM = 21
"""The first byte that the checksum covers."""
MAGIC = 2
"""The number of the format."""

_CHECKSUM = struct.Struct(">I")
_MAX_STAMP_WIDTH = 3
_NONE = -1


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    """The ranges of offsets whose varints have the same width."""
    start, width = 0, 1
    while start < rows:
        stop = min(rows, smallest_of_width(width + 1))
        yield start, stop
        start, width = stop, width + 1


def _base(first: int, last: int) -> tuple[int, int]:
    """The base timestamp, and the width of the varint of every difference from it."""
    width = 1
    while last - first + smallest_of_width(width) >= smallest_of_width(width + 1):
        width += 1
    return first - smallest_of_width(width), width


class _Row(NamedTuple):
    """The positions of the fields in a record whose offset has a certain width."""

    front: bytes
    stamp: int
    offset: int
    middle: bytes
    key: int
    before_value: bytes
    value: int
    size: int


@lru_cache(maxsize=256)
def _row(width: int, stamp: int, key: int | None, value: int) -> _Row:
    middle, before_value = varint(_NONE if key is None else key), varint(value)
    body = 1 + stamp + width + len(middle) + (key or 0) + len(before_value) + value + 1
    front = varint(body) + b"\0"
    offset = len(front) + stamp
    at_key = offset + width + len(middle)
    at_value = at_key + (key or 0) + len(before_value)
    return _Row(front, len(front), offset, middle, at_key, before_value, at_value, at_value + value + 1)


@lru_cache(maxsize=256)
def batch_size(rows: int, key: int | None, value: int, stamp: int) -> int:
    """Bytes of a batch of so many records with keys, values and timestamps of these widths."""
    blocks = ((stop - start) * _row(width_of(start), stamp, key, value).size for start, stop in _blocks(rows))
    return HEADER.size + sum(blocks)


@lru_cache(maxsize=256)
def rows_within(size: int, key: int | None, value: int) -> int:
    """How many records of these widths a batch of at most ``size`` bytes has; at least one.

    Timestamps are assumed to have at most three bytes: those of a batch are within a quarter of an hour.
    """
    shortest = _row(1, _MAX_STAMP_WIDTH, key, value).size
    counts = range(1, size // shortest + 2)
    return max(1, bisect_right(counts, size, key=lambda rows: batch_size(rows, key, value, _MAX_STAMP_WIDTH)))


@lru_cache(maxsize=32)
def _template(rows: int, key: int | None, value: int, stamp: int) -> Bytes:
    """A batch with everything that is the same in all of them; a shorter one is the beginning of a longer one."""
    out = np.zeros(batch_size(rows, key, value, stamp), np.uint8)
    at = HEADER.size
    for start, stop in _blocks(rows):
        width = width_of(start)
        row = _row(width, stamp, key, value)
        block = out[at : at + row.size * (stop - start)].reshape(stop - start, row.size)
        before_key = row.key - len(row.middle)
        before_value = row.value - len(row.before_value)
        block[:, : row.stamp] = np.frombuffer(row.front, np.uint8)
        block[:, row.offset : row.offset + width] = fixed_width(np.arange(start, stop), width)
        block[:, before_key : row.key] = np.frombuffer(row.middle, np.uint8)
        block[:, before_value : row.value] = np.frombuffer(row.before_value, np.uint8)
        at += block.size
    return out


Rows = npt.NDArray[np.void]
"""Rows of bytes, each of them one item: numpy's loop over single bytes takes several times as long."""


class _Block(NamedTuple):
    """The records of a batch whose offsets have the same width, and views of the columns that are filled each time."""

    start: int
    stop: int
    columns: tuple[Rows, ...]


class BatchBuffer:
    """Memory for one batch after another: what is the same in all of them is written only once."""

    def __init__(self, size: int) -> None:
        self._data = np.empty(size, np.uint8)
        self._widths: tuple[int | None, int, int] | None = None
        self._filled = self._rows = 0
        self._blocks = list[_Block]()

    def prepare(self, rows: int, key: int | None, value: int, stamp: int) -> tuple[Bytes, list[_Block]]:
        """The bytes of a batch of these widths, filled with everything constant, and the views of its columns."""
        widths, size = (key, value, stamp), batch_size(rows, key, value, stamp)
        if size > len(self._data) or widths != self._widths:
            self._data = self._data if size <= len(self._data) else np.empty(size, np.uint8)
            self._widths, self._filled, self._rows = widths, 0, 0
        if size > self._filled:
            template = _template(max(64, 1 << (rows - 1).bit_length()), *widths)
            self._data[self._filled : size] = template[self._filled : size]
            self._filled = size
        if rows != self._rows:
            self._rows, self._blocks = rows, _column_views(self._data, rows, *widths)
        return self._data[:size], self._blocks


def _column_views(data: Bytes, rows: int, key: int | None, value: int, stamp: int) -> list[_Block]:
    """Views of the timestamps, keys and values in a batch of so many records."""
    found, at = [], HEADER.size
    for start, stop in _blocks(rows):
        row = _row(width_of(start), stamp, key, value)
        block = data[at : at + row.size * (stop - start)].reshape(stop - start, row.size)
        columns = ((row.stamp, stamp), (row.key, key), (row.value, value))
        views = tuple(block[:, begin : begin + width].view(_row_type(width))[:, 0] for begin, width in columns if width)
        found.append(_Block(start, stop, views))
        at += block.size
    return found


@lru_cache(maxsize=256)
def _row_type(width: int) -> np.dtype[np.void]:
    return np.dtype((np.void, width))


def encode(keys: Matrix | None, values: Matrix, timestamps: Ints, buffer: BatchBuffer | None = None) -> Bytes:
    """One batch of at least one record, without compression. Timestamps are milliseconds since 1970.

    It is written into ``buffer`` if there is one, and is valid until that is used for the next batch.
    """
    rows, value = values.shape
    key = None if keys is None else keys.shape[1]
    first, last = int(np.minimum.reduce(timestamps)), int(np.maximum.reduce(timestamps))
    base, stamp = _base(first, last)
    stamps = encode_fixed(((timestamps - base) << 1).view(np.uint64), stamp)
    out, blocks = (buffer or BatchBuffer(0)).prepare(rows, key, value, stamp)
    filled = [each for each in (stamps, keys, values) if each is not None and each.shape[1]]
    columns = [np.ascontiguousarray(each).view(_row_type(each.shape[1]))[:, 0] for each in filled]
    for block in blocks:
        for view, column in zip(block.columns, columns, strict=True):
            view[:] = column[block.start : block.stop]
    none = (_NONE, _NONE, _NONE)
    HEADER.pack_into(out.data, 0, 0, len(out) - FRAME, -1, MAGIC, 0, 0, rows - 1, base, last, *none, rows)
    _CHECKSUM.pack_into(out.data, CHECKED_FROM - _CHECKSUM.size, google_crc32c.value(out[CHECKED_FROM:]))
    return out
