"""Record batches of Kafka (format 2) as bytes: written and read with numpy, many records at a time. Pure.

Written are records of one width: keys and values are matrices of bytes, a row each. Offsets and timestamps are
varints. Those of one width stand in one block of rows, so that a block is filled column by column, over a template
that has everything else; the base of the timestamps is put so far before the first one that all have one width.

Read is what any producer writes, whatever the widths and the compression.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.transport.kafka.inflate import inflate
from streamgauge.transport.kafka.protocol import KafkaFailure
from streamgauge.transport.kafka.varints import (
    Bytes,
    Ints,
    Matrix,
    VarintError,
    first_of,
    read_varints,
    spread,
    varint,
    widened,
    width_of,
)

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset delta, first and last timestamp,
producer id and epoch, base sequence, number of records."""
LOG = pa.schema([("offset", pa.int64()), ("timestamp", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])
"""Records as they are read. Timestamps are milliseconds since 1970: the broker's where it stamps (LogAppendTime)."""

_FRAME = 12  # bytes before those that the batch's length counts
_CHECKED_FROM = 21  # the first byte that the checksum covers
_CHECKSUM = struct.Struct(">I")
_MAGIC = 2
_WIDEST_STAMP = 3
_NOBODY = -1
_CODEC, _APPEND_TIME, _TRANSACTION, _CONTROL = 0x07, 0x08, 0x10, 0x20  # bits of the attributes
_STRIDE_FROM = 64  # records of one width in a row from which on it pays to look for them
_STEPS = 512


class RecordError(KafkaFailure, ValueError):
    """Bytes that are no record batch, or one that cannot be read; the sentence says why."""


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
    HEADER.pack_into(out.data, 0, 0, len(out) - _FRAME, -1, _MAGIC, 0, 0, rows - 1, base, last, *nobody, rows)
    _CHECKSUM.pack_into(out.data, _CHECKED_FROM - _CHECKSUM.size, google_crc32c.value(out[_CHECKED_FROM:]))
    return out


class _Batch(NamedTuple):
    """A batch that is read: its records, undone if they were compressed, and what all of them share."""

    offset: int
    base: int
    appended: int
    """The timestamp of all its records, where the broker stamps; −1: each has its own."""
    rows: int
    data: bytes | memoryview


class Read(NamedTuple):
    """Records, and the offset after them: also after those that only Kafka itself needs."""

    rows: pa.RecordBatch
    next_offset: int


def decode(data: bytes | bytearray | memoryview, start: int = 0) -> Read:
    """The records from offset ``start`` on of batches one after the other, as a broker sends them.

    What is not whole at the end is left out: it comes again with the next answer. Control batches are skipped.
    """
    batches, after = _batches(memoryview(data).toreadonly(), start)
    whole = np.frombuffer(b"".join(batch.data for batch in batches), np.uint8)
    counts = np.array([batch.rows for batch in batches], np.int64)
    shared = np.array([batch[:3] for batch in batches], np.int64).reshape(-1, 3)
    try:
        begins = np.concatenate([_begins(batch) for batch in batches] or [counts])
        begins += np.repeat(np.cumsum([0, *(len(batch.data) for batch in batches)])[:-1], counts)
        steps, offsets, key, value = _fields(whole, begins)
    except (IndexError, VarintError) as error:
        raise RecordError(f"a record reaches beyond its batch ({error})") from error
    base_offset, base, appended = np.repeat(shared, counts, axis=0).T
    offsets += base_offset
    times = np.where(appended >= 0, appended, base + steps)
    strings = (_strings(whole, key), _strings(whole, value))
    rows = pa.RecordBatch.from_arrays([pa.array(offsets), pa.array(times), *strings], schema=LOG)
    early = int(np.searchsorted(offsets, start))  # a broker sends whole batches, also what was not asked for
    return Read(rows.slice(early), max(start, after))


def _batches(data: memoryview, start: int) -> tuple[list[_Batch], int]:
    """The whole batches that hold records, and the offset after the last of all."""
    found, at, after = list[_Batch](), 0, start
    while at + HEADER.size <= len(data):
        header = HEADER.unpack_from(data, at)
        offset, length, _, magic, checksum, attributes, last_delta, base, last, _, _, _, rows = header
        end = at + _FRAME + length
        if magic != _MAGIC:
            raise RecordError(f"batch {offset} has format {magic}; Kafka has written format {_MAGIC} since 0.11")
        if length < HEADER.size - _FRAME:
            raise RecordError(f"batch {offset} has the length {length}, which is shorter than its header")
        if end > len(data):
            break
        body = data[at + _CHECKED_FROM : end]
        if google_crc32c.value(np.frombuffer(body, np.uint8)) != checksum:
            raise RecordError(f"batch {offset} is damaged: its checksum is another")
        at, after = end, offset + last_delta + 1
        if attributes & _CONTROL:
            continue
        if attributes & _TRANSACTION:
            raise RecordError(f"batch {offset} belongs to a transaction, of which it is not known how it ended")
        appended = last if attributes & _APPEND_TIME else -1
        plain = inflate(body[HEADER.size - _CHECKED_FROM :], attributes & _CODEC)
        found.append(_Batch(offset, base, appended, rows, plain))
    return found, after


def _begins(batch: _Batch) -> Ints:
    """Where each record of a batch begins. Its length says where the next one does, so this goes step by step."""
    data = bytes(batch.data)
    parts, at, left = list[Ints](), 0, batch.rows
    while left > 0:
        stride, alike = _alike(np.frombuffer(data, np.uint8, offset=at), left) if left >= _STRIDE_FROM else (0, 0)
        if alike >= _STRIDE_FROM:
            parts.append(at + stride * np.arange(alike))
            at += stride * alike
        else:
            stepped, at = _step(data, at, min(left, _STEPS))
            parts.append(np.array(stepped, np.int64))
        left -= len(parts[-1])
    if at != len(data):
        raise RecordError(f"batch {batch.offset} has {batch.rows} records, but they do not fill it")
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _alike(data: Bytes, most: int) -> tuple[int, int]:
    """The length of the first record, and how many from there on have the same."""
    (length,), (width,) = read_varints(data, np.zeros(1, np.int64))
    stride = int(length + width)
    rows = min(most, len(data) // stride) if length > 0 else 0
    same = np.ones(rows, bool)
    for place in range(int(width)):
        same &= data[place : place + rows * stride : stride][:rows] == data[place]
    return stride, rows if same.all() else int(same.argmin())


def _step(data: bytes, at: int, rows: int) -> tuple[list[int], int]:
    """Where the next records begin, and where the last of them ends."""
    begins = []
    for _ in range(rows):
        begins.append(at)
        byte = data[at]
        length, shift = byte & 0x7F, 7
        at += 1
        while byte > 0x7F:
            byte = data[at]
            length |= (byte & 0x7F) << shift
            shift += 7
            at += 1
        if length & 1:
            raise RecordError(f"a record has the length {-(length >> 1) - 1}")
        at += length >> 1
    return begins, at


Places = tuple[Ints, Ints]
"""Where strings begin, and how long they are; −1: there is none."""


def _fields(whole: Bytes, begins: Ints) -> tuple[Ints, Ints, Places, Places]:
    """Of each record the differences of timestamp and offset, the key and the value. Headers are passed over."""
    _, at = read_varints(whole, begins)
    timestamps, at = read_varints(whole, at + 1)
    offsets, at = read_varints(whole, at)
    key_length, key = read_varints(whole, at)
    value_length, value = read_varints(whole, key + np.maximum(key_length, 0))
    return timestamps, offsets, (key, key_length), (value, value_length)


def _strings(whole: Bytes, places: Places) -> pa.BinaryArray:
    """Strings that stand in the bytes, as Arrow has them: every second one of those that cut the bytes into pieces."""
    begin, length = places
    cuts = np.zeros(2 * len(begin) + 1, np.int32)
    cuts[1::2], cuts[2::2] = begin, begin + np.maximum(length, 0)
    if len(begin) and (int(cuts[-1]) > len(whole) or np.any(cuts[1:] < cuts[:-1])):
        raise RecordError("a key or value reaches beyond its record")
    pieces = pa.Array.from_buffers(pa.binary(), 2 * len(begin), [None, pa.py_buffer(cuts), pa.py_buffer(whole)])
    wanted = pa.array(np.arange(1, 2 * len(begin), 2), mask=length < 0)
    return pieces.take(wanted)
