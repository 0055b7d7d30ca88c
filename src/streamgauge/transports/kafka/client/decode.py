"""Record batches of Kafka (format 2), decoded with numpy: uncompressed and not part of a transaction. Pure.

That is what the producers of streamgauge and most others write. Many records are decoded at a time: their positions
are found batch by batch, their fields with numpy for all of them. Decoding stops before the first batch that is
compressed or belongs to a transaction: librdkafka decompresses it, and reads which transactions were aborted.
"""

from typing import NamedTuple

import google_crc32c
import numpy as np
import pyarrow as pa

from streamgauge.transports.contract import TransportError
from streamgauge.transports.kafka.client.batches import CHECKED_FROM, FRAME, HEADER, MAGIC
from streamgauge.transports.kafka.client.varints import Bytes, Ints, VarintError, read_varints

LOG = pa.schema([("offset", pa.int64()), ("timestamp", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])
"""Records as they are read. Timestamps are milliseconds since 1970: the broker's if it stamps (LogAppendTime)."""

_APPEND_TIME = 0x08
_CODEC, _TRANSACTION, _CONTROL = 0x07, 0x10, 0x20
_ONLY_LIBRDKAFKA = _CODEC | _TRANSACTION | _CONTROL
"""Bits of the attributes of a batch."""
_MIN_RUN = 64  # records of the same length in a row for which vectorised code is faster
_MAX_STEPS = 512


class RecordError(TransportError, ValueError):
    """Bytes that are no record batch, or one that cannot be read; the message gives the reason."""


class _Batch(NamedTuple):
    """A batch: the bytes of its records, and the values that all of them share."""

    offset: int
    base: int
    appended: int
    """The timestamp of all its records, if the broker stamps them; −1: each has its own."""
    rows: int
    data: memoryview


class Decoded(NamedTuple):
    """Records, and the offset after them."""

    rows: pa.RecordBatch
    next_offset: int
    needs_librdkafka: bool
    """Whether decoding stopped before a batch that is compressed or belongs to a transaction."""


def decode(data: bytes | bytearray | memoryview, start: int = 0) -> Decoded:
    """The records from offset ``start`` on, of consecutive batches as a broker sends them.

    A batch that is cut off at the end is ignored: the next response contains it again.
    """
    batches, after, stopped = _batches(memoryview(data).toreadonly(), start)
    joined = np.frombuffer(b"".join(batch.data for batch in batches), np.uint8)
    counts = np.array([batch.rows for batch in batches], np.int64)
    shared = np.array([batch[:3] for batch in batches], np.int64).reshape(-1, 3)
    try:
        starts = np.concatenate([_record_starts(batch) for batch in batches] or [counts])
        starts += np.repeat(np.cumsum([0, *(len(batch.data) for batch in batches)])[:-1], counts)
        steps, offsets, key, value = _fields(joined, starts)
    except (IndexError, VarintError) as error:
        raise RecordError(f"a record reaches beyond its batch ({error})") from error
    base_offset, base, appended = np.repeat(shared, counts, axis=0).T
    offsets += base_offset
    times = np.where(appended >= 0, appended, base + steps)
    strings = (_strings(joined, key), _strings(joined, value))
    rows = pa.RecordBatch.from_arrays([pa.array(offsets), pa.array(times), *strings], schema=LOG)
    early = int(np.searchsorted(offsets, start))  # a broker sends whole batches, which may begin before ``start``
    return Decoded(rows.slice(early), max(start, after), stopped)


def _batches(data: memoryview, start: int) -> tuple[list[_Batch], int, bool]:
    """The whole batches that can be decoded here, the offset after them, and whether another one follows."""
    found, at, after = list[_Batch](), 0, start
    while at + HEADER.size <= len(data):
        header = HEADER.unpack_from(data, at)
        offset, length, _, magic, checksum, attributes, last_delta, base, last, _, _, _, rows = header
        end = at + FRAME + length
        if magic != MAGIC:
            raise RecordError(f"batch {offset} has format {magic}; Kafka has written format {MAGIC} since 0.11")
        if length < HEADER.size - FRAME:
            raise RecordError(f"batch {offset} has the length {length}, which is shorter than its header")
        if end > len(data):
            break
        body = data[at + CHECKED_FROM : end]
        if google_crc32c.value(np.frombuffer(body, np.uint8)) != checksum:
            raise RecordError(f"batch {offset} is damaged: its checksum is wrong")
        if attributes & _ONLY_LIBRDKAFKA:
            return found, after, True
        at, after = end, offset + last_delta + 1
        appended = last if attributes & _APPEND_TIME else -1
        found.append(_Batch(offset, base, appended, rows, body[HEADER.size - CHECKED_FROM :]))
    return found, after, False


def _record_starts(batch: _Batch) -> Ints:
    """The position of each record of a batch. It follows from the lengths of the records before it."""
    data = bytes(batch.data)
    parts, at, left = list[Ints](), 0, batch.rows
    while left > 0:
        stride, run = _same_length_run(np.frombuffer(data, np.uint8, offset=at), left) if left >= _MIN_RUN else (0, 0)
        if run >= _MIN_RUN:
            parts.append(at + stride * np.arange(run))
            at += stride * run
        else:
            walked, at = _walk(data, at, min(left, _MAX_STEPS))
            parts.append(np.array(walked, np.int64))
        left -= len(parts[-1])
    if at != len(data):
        raise RecordError(f"batch {batch.offset} has {batch.rows} records, but they do not fill it")
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _same_length_run(data: Bytes, max_rows: int) -> tuple[int, int]:
    """The length of the first record, and how many records from there on have the same length."""
    (length,), (width,) = read_varints(data, np.zeros(1, np.int64))
    stride = int(length + width)
    rows = min(max_rows, len(data) // stride) if length > 0 else 0
    same = np.ones(rows, bool)
    for place in range(int(width)):
        same &= data[place : place + rows * stride : stride][:rows] == data[place]
    return stride, rows if same.all() else int(same.argmin())


def _walk(data: bytes, at: int, rows: int) -> tuple[list[int], int]:
    """The positions of the next records, and the end of the last one."""
    starts = []
    for _ in range(rows):
        starts.append(at)
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
    return starts, at


Spans = tuple[Ints, Ints]
"""The positions and the lengths of strings; −1: null."""


def _fields(joined: Bytes, starts: Ints) -> tuple[Ints, Ints, Spans, Spans]:
    """Of each record the differences of timestamp and offset, the key and the value. Headers are skipped."""
    _, at = read_varints(joined, starts)
    timestamps, at = read_varints(joined, at + 1)
    offsets, at = read_varints(joined, at)
    key_length, key = read_varints(joined, at)
    value_length, value = read_varints(joined, key + np.maximum(key_length, 0))
    return timestamps, offsets, (key, key_length), (value, value_length)


def _strings(joined: Bytes, spans: Spans) -> pa.BinaryArray:
    """Strings of the bytes as an Arrow array: the bytes are cut at both ends of each, and every second piece is one."""
    begin, length = spans
    cuts = np.zeros(2 * len(begin) + 1, np.int32)
    cuts[1::2], cuts[2::2] = begin, begin + np.maximum(length, 0)
    if len(begin) and (int(cuts[-1]) > len(joined) or np.any(cuts[1:] < cuts[:-1])):
        raise RecordError("a key or value reaches beyond its record")
    pieces = pa.Array.from_buffers(pa.binary(), 2 * len(begin), [None, pa.py_buffer(cuts), pa.py_buffer(joined)])
    wanted = pa.array(np.arange(1, 2 * len(begin), 2), mask=length < 0)
    return pieces.take(wanted)
