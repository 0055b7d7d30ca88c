"""Record batches of Kafka (format 2) as they are read: what any producer writes, whatever widths and compression. Pure.

Many records are read at a time: where they begin is found batch by batch, their fields with numpy for all of them.
"""

from typing import NamedTuple

import google_crc32c
import numpy as np
import pyarrow as pa

from streamgauge.transports.kafka.client.batches import CHECKED_FROM, FRAME, HEADER, MAGIC
from streamgauge.transports.kafka.client.decompress import inflate
from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.client.varints import Bytes, Ints, VarintError, read_varints

LOG = pa.schema([("offset", pa.int64()), ("timestamp", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])
"""Records as they are read. Timestamps are milliseconds since 1970: the broker's where it stamps (LogAppendTime)."""

_CODEC, _APPEND_TIME, _TRANSACTION, _CONTROL = 0x07, 0x08, 0x10, 0x20  # bits of the attributes
_STRIDE_FROM = 64  # records of one width in a row from which on it pays to look for them
_STEPS = 512


class RecordError(KafkaFailure, ValueError):
    """Bytes that are no record batch, or one that cannot be read; the sentence says why."""


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
        end = at + FRAME + length
        if magic != MAGIC:
            raise RecordError(f"batch {offset} has format {magic}; Kafka has written format {MAGIC} since 0.11")
        if length < HEADER.size - FRAME:
            raise RecordError(f"batch {offset} has the length {length}, which is shorter than its header")
        if end > len(data):
            break
        body = data[at + CHECKED_FROM : end]
        if google_crc32c.value(np.frombuffer(body, np.uint8)) != checksum:
            raise RecordError(f"batch {offset} is damaged: its checksum is another")
        at, after = end, offset + last_delta + 1
        if attributes & _CONTROL:
            continue
        if attributes & _TRANSACTION:
            raise RecordError(f"batch {offset} belongs to a transaction, of which it is not known how it ended")
        appended = last if attributes & _APPEND_TIME else -1
        plain = inflate(body[HEADER.size - CHECKED_FROM :], attributes & _CODEC)
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
