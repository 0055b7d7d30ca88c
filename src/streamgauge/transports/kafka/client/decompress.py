"""The compressions of record batches, undone. Pure."""

import struct

import pyarrow as pa

from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.client.varints import VarintError

_STREAMED = {1: "gzip", 3: "lz4", 4: "zstd"}
_SNAPPY = 2
_XERIAL = b"\x82SNAPPY\0"
"""Java's producers put raw blocks of snappy, each after its length, behind a header of 16 bytes."""
_XERIAL_HEADER = 16
_LENGTH = struct.Struct(">i")


class InflateError(KafkaFailure, ValueError):
    """Compressed records that cannot be read; the sentence says why."""


def inflate(data: memoryview, codec: int) -> bytes | memoryview:
    """The records as they were before. ``codec`` is Kafka's number; 0 is none."""
    if codec == 0:
        return data
    if codec != _SNAPPY and codec not in _STREAMED:
        raise InflateError(f"records are compressed by a codec with the number {codec}, which nobody knows")
    try:
        if codec == _SNAPPY:
            return _snappy(data)
        with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), _STREAMED[codec]) as stream:
            plain: bytes = stream.read()
        return plain
    except (pa.ArrowException, OSError, struct.error, VarintError) as error:
        name = _STREAMED.get(codec, "snappy")
        raise InflateError(f"records that are said to be compressed by {name} cannot be read: {error}") from error


def _snappy(data: memoryview) -> bytes:
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        return _block(data)
    blocks, at = [], _XERIAL_HEADER
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        blocks.append(_block(data[at : at + length]))
        at += length
    return b"".join(blocks)


def _block(data: memoryview) -> bytes:
    """A raw block begins with its length when it is undone, seven bits to a byte."""
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            plain: bytes = pa.Codec("snappy").decompress(pa.py_buffer(data), size, asbytes=True)
            return plain
    raise VarintError("a block of snappy does not say its length")
