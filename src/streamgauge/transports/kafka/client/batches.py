"""Record batches of Kafka (format 2) as bytes, written with numpy, many records at a time. Pure.

Records have one width: keys and values are matrices of bytes, a row each. Offsets and timestamps are varints. Those
of one width stand in one block of rows, so that a block is filled column by column, over a template that has
everything else; the base of the timestamps is put so far before the first one that all have one width.
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
    first_of,
    spread,
    varint,
    widened,
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
_WIDEST_STAMP = 3
_NOBODY = -1


def _blocks(rows: int) -> Iterator[tuple[int, int]]:
    """The stretches of offsets whose varints have one width."""
    start, width = 0, 1
    while start < rows:
        stop = min(rows, first_of(width + 1))
        yield start, stop
        start, width = stop, width + 1


def _base(first: int, last: int) -> tuple[int, int]:
    """Base timestamp and the width that every difference from it has."""
    width = 1
    while last - first + first_of(width) >= first_of(width + 1):
        width += 1
    return first - first_of(width), width


class _Row(NamedTuple):
    """Where things stand in a record whose offset has a certain width."""

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
    middle, before_value = varint(_NOBODY if key is None else key), varint(value)
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

    Timestamps are taken to have at most three bytes: those of a batch lie within a quarter of an hour.
    """
    shortest = _row(1, _WIDEST_STAMP, key, value).size
    counts = range(1, size // shortest + 2)
    return max(1, bisect_right(counts, size, key=lambda rows: batch_size(rows, key, value, _WIDEST_STAMP)))


@lru_cache(maxsize=32)
def _template(rows: int, key: int | None, value: int, stamp: int) -> Bytes:
    """A batch with all that does not differ from one to the next; a shorter one is the beginning of a longer one."""
    out = np.zeros(batch_size(rows, key, value, stamp), np.uint8)
    at = HEADER.size
    for start, stop in _blocks(rows):
        width = width_of(start)
        row = _row(width, stamp, key, value)
        block = out[at : at + row.size * (stop - start)].reshape(stop - start, row.size)
        before_key = row.key - len(row.middle)
        before_value = row.value - len(row.before_value)
        block[:, : row.stamp] = np.frombuffer(row.front, np.uint8)
        block[:, row.offset : row.offset + width] = widened(np.arange(start, stop), width)
        block[:, before_key : row.key] = np.frombuffer(row.middle, np.uint8)
        block[:, before_value : row.value] = np.frombuffer(row.before_value, np.uint8)
        at += block.size
    return out


Wholes = npt.NDArray[np.void]
"""Rows of bytes, each taken as one thing: numpy's loop over single bytes takes several times as long."""


class _Block(NamedTuple):
    """The records of a batch whose offsets have one width, and the columns in them that are filled each time."""

    start: int
    stop: int
    columns: tuple[Wholes, ...]


class Room:
    """Memory for one batch after the other: what is the same in all of them is written into it once."""

    def __init__(self, size: int) -> None:
        self._data = np.empty(size, np.uint8)
        self._like: tuple[int | None, int, int] | None = None
        self._filled = self._rows = 0
        self._blocks = list[_Block]()

    def prepared(self, rows: int, key: int | None, value: int, stamp: int) -> tuple[Bytes, list[_Block]]:
        """Room for a batch of these widths, with all in it that does not differ, and the places for what does."""
        like, size = (key, value, stamp), batch_size(rows, key, value, stamp)
        if size > len(self._data) or like != self._like:
            self._data = self._data if size <= len(self._data) else np.empty(size, np.uint8)
            self._like, self._filled, self._rows = like, 0, 0
        if size > self._filled:
            template = _template(max(64, 1 << (rows - 1).bit_length()), *like)
            self._data[self._filled : size] = template[self._filled : size]
            self._filled = size
        if rows != self._rows:
            self._rows, self._blocks = rows, _places(self._data, rows, *like)
        return self._data[:size], self._blocks


def _places(data: Bytes, rows: int, key: int | None, value: int, stamp: int) -> list[_Block]:
    """Where timestamps, keys and values go in a batch of so many records."""
    found, at = [], HEADER.size
    for start, stop in _blocks(rows):
        row = _row(width_of(start), stamp, key, value)
        block = data[at : at + row.size * (stop - start)].reshape(stop - start, row.size)
        columns = ((row.stamp, stamp), (row.key, key), (row.value, value))
        places = tuple(block[:, begin : begin + width].view(_whole(width))[:, 0] for begin, width in columns if width)
        found.append(_Block(start, stop, places))
        at += block.size
    return found


@lru_cache(maxsize=256)
def _whole(width: int) -> np.dtype[np.void]:
    return np.dtype((np.void, width))


def encode(keys: Matrix | None, values: Matrix, timestamps: Ints, room: Room | None = None) -> Bytes:
    """One batch of at least one record, without compression. Timestamps are milliseconds since 1970.

    It is written into ``room`` if there is one, and stays there until that is used for the next.
    """
    rows, value = values.shape
    key = None if keys is None else keys.shape[1]
    first, last = int(np.minimum.reduce(timestamps)), int(np.maximum.reduce(timestamps))
    base, stamp = _base(first, last)
    stamps = spread(((timestamps - base) << 1).view(np.uint64), stamp)
    out, blocks = (room or Room(0)).prepared(rows, key, value, stamp)
    filled = [each for each in (stamps, keys, values) if each is not None and each.shape[1]]
    columns = [np.ascontiguousarray(each).view(_whole(each.shape[1]))[:, 0] for each in filled]
    for block in blocks:
        for place, column in zip(block.columns, columns, strict=True):
            place[:] = column[block.start : block.stop]
    nobody = (_NOBODY, _NOBODY, _NOBODY)
    HEADER.pack_into(out.data, 0, 0, len(out) - FRAME, -1, MAGIC, 0, 0, rows - 1, base, last, *nobody, rows)
    _CHECKSUM.pack_into(out.data, CHECKED_FROM - _CHECKSUM.size, google_crc32c.value(out[CHECKED_FROM:]))
    return out
