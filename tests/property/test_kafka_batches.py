"""Record batches of Kafka: what is written reads back, and what any producer writes is understood."""

import struct
from dataclasses import dataclass

import google_crc32c
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.transports.kafka.client.batches import HEADER, BatchBuffer, batch_size, encode, rows_within
from streamgauge.transports.kafka.client.decode import RecordError, decode
from streamgauge.transports.kafka.client.varints import VarintError, fixed_width, read_varints, varint

NOW = 1_800_000_000_000


@dataclass(frozen=True)
class Record:
    """A record as a foreign producer has it."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes], ...] = ()


def written(record: Record, delta: int, base: int) -> bytes:
    """A record byte by byte, as Kafka's manual says."""
    body = b"\0" + varint(record.timestamp - base) + varint(delta)
    for text in (record.key, record.value):
        body += varint(-1) if text is None else varint(len(text)) + text
    body += varint(len(record.headers))
    for name, text in record.headers:
        body += varint(len(name)) + name + varint(len(text)) + text
    return varint(len(body)) + body


def foreign(
    records: list[Record], offset: int = 0, attributes: int = 0, appended: int = 0, packed: bytes | None = None
) -> bytes:
    """A batch as another producer writes it, with or without compression."""
    base = records[0].timestamp
    plain = b"".join(written(record, delta, base) for delta, record in enumerate(records))
    body = plain if packed is None else packed
    last = appended or max(record.timestamp for record in records)
    fixed = struct.pack(">hiqqqhii", attributes, len(records) - 1, base, last, -1, -1, -1, len(records)) + body
    return struct.pack(">qiibI", offset, len(fixed) + 9, 0, 2, google_crc32c.value(fixed)) + fixed


def told(rows: pa.RecordBatch) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Records as plain Python has them."""
    return list(zip(*(rows.column(name).to_pylist() for name in rows.schema.names), strict=True))


def bytes_of(rows: int, width: int, seed: int) -> npt.NDArray[np.uint8]:
    """Random rows of bytes."""
    return np.random.default_rng(seed).integers(0, 256, (rows, width), np.uint8)


@given(
    rows=st.sampled_from([1, 2, 63, 64, 65, 300, 8191, 8192, 8193, 9000]),
    key=st.none() | st.integers(0, 70),
    value=st.integers(0, 140),
    spread=st.sampled_from([0, 1, 63, 64, 8000, 8200, 10**6, 10**8]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_a_batch_reads_back_as_it_was_written(rows: int, key: int | None, value: int, spread: int, seed: int) -> None:
    keys = None if key is None else bytes_of(rows, key, seed)
    values = bytes_of(rows, value, seed + 1)
    times = NOW + np.random.default_rng(seed).integers(0, spread + 1, rows)
    batch = encode(keys, values, times)
    read = decode(batch.tobytes())
    assert read.next_offset == rows
    expected_keys = [None] * rows if keys is None else [row.tobytes() for row in keys]
    assert told(read.rows) == list(
        zip(range(rows), times.tolist(), expected_keys, [row.tobytes() for row in values], strict=True)
    )


def test_memory_that_is_used_again_leaves_nothing_of_the_batch_before() -> None:
    room, rng = BatchBuffer(1000), np.random.default_rng(4)
    for rows in (3, 900, 20, 901, 20, 100, 1):
        for key, value, spread in ((4, 30, 3), (None, 30, 3), (4, 31, 100), (4, 30, 0)):
            keys = None if key is None else bytes_of(rows, key, rows)
            values, times = bytes_of(rows, value, rows + 1), NOW + rng.integers(0, spread + 1, rows)
            assert encode(keys, values, times, room).tobytes() == encode(keys, values, times).tobytes()


records = st.builds(
    Record,
    timestamp=st.integers(NOW, NOW + 10_000),
    key=st.none() | st.binary(max_size=70),
    value=st.none() | st.binary(max_size=200),
    headers=st.lists(st.tuples(st.binary(max_size=5), st.binary(max_size=90)), max_size=2).map(tuple),
)


@given(batches=st.lists(st.lists(records, min_size=1, max_size=12), max_size=4), data=st.data())
@settings(max_examples=80, deadline=None)
def test_batches_of_other_producers_read_back_from_any_offset(batches: list[list[Record]], data: st.DataObject) -> None:
    log, offset, expected = b"", 40, []
    for batch in batches:
        log += foreign(batch, offset)
        expected += [(offset + n, r.timestamp, r.key, r.value) for n, r in enumerate(batch)]
        offset += len(batch)
    start = data.draw(st.integers(40, offset))
    read = decode(log, start)
    assert told(read.rows) == [row for row in expected if row[0] >= start]
    assert read.next_offset == offset


@given(widths=st.lists(st.integers(0, 80), min_size=100, max_size=900), seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_long_batches_read_back_whether_their_records_are_alike_or_not(widths: list[int], seed: int) -> None:
    middle = len(widths) // 2
    lengths = widths[:middle] + [33] * 200 + widths[middle:]
    batch = [Record(NOW + n, bytes([n % 251]), b"x" * length) for n, length in enumerate(lengths)]
    assert told(decode(foreign(batch)).rows) == [(n, r.timestamp, r.key, r.value) for n, r in enumerate(batch)]


@given(rows=st.integers(1, 200), cut=st.integers(0, 4000), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_a_batch_that_is_cut_off_is_left_for_the_next_response(rows: int, cut: int, seed: int) -> None:
    batch = encode(None, bytes_of(rows, 9, seed), np.full(rows, NOW)).tobytes()
    second = bytearray(batch)
    struct.pack_into(">q", second, 0, rows)
    read = decode(batch + bytes(second)[: min(cut, len(batch) - 1)])
    assert (read.rows.num_rows, read.next_offset) == (rows, rows)


@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(max_examples=80, deadline=None)
def test_a_flipped_bit_is_found_or_changes_no_record(place: int, bit: int) -> None:
    batch = encode(bytes_of(80, 4, 1), bytes_of(80, 20, 2), NOW + np.arange(80))
    whole = told(decode(batch.tobytes()).rows)
    batch[place % len(batch)] ^= 1 << bit
    try:
        read = decode(batch.tobytes())
    except RecordError:
        return
    # the base offset, the length and the leader's epoch are not in the checksum: the broker writes them
    assert place % len(batch) < 16
    assert [row[1:] for row in told(read.rows)] in ([row[1:] for row in whole], [])


def test_a_broker_that_stamps_states_one_time_for_the_whole_batch() -> None:
    batch = [Record(NOW + n, None, b"v") for n in range(3)]
    read = decode(foreign(batch, attributes=8, appended=NOW + 99))
    assert read.rows.column("timestamp").to_pylist() == [NOW + 99] * 3


@pytest.mark.parametrize("attributes", [0x01, 0x02, 0x03, 0x04, 0x06, 0x10, 0x30])
def test_decoding_stops_before_a_batch_that_is_compressed_or_part_of_a_transaction(attributes: int) -> None:
    batch = [Record(NOW, b"k", b"v")]
    log = foreign(batch, 0) + foreign(batch, 1, attributes=attributes) + foreign(batch, 2)
    read = decode(log)
    assert read.rows.column("offset").to_pylist() == [0]
    assert (read.next_offset, read.needs_librdkafka) == (1, True)
    read = decode(log[len(log) // 3 :], 1)
    assert (read.rows.num_rows, read.next_offset, read.needs_librdkafka) == (0, 1, True)
    read = decode(foreign(batch, 0) + foreign(batch, 1))
    assert (read.rows.num_rows, read.next_offset, read.needs_librdkafka) == (2, 2, False)


def damaged(count: int, body: bytes) -> bytes:
    """A batch that says it has so many records and holds these bytes."""
    return foreign([Record(NOW, None, None)] * count, packed=body)


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        (damaged(2, written(Record(NOW, b"k", b"v"), 0, NOW)), "reaches beyond its batch"),
        (damaged(1, written(Record(NOW, b"k", b"v"), 0, NOW) * 2), "they do not fill it"),
        (damaged(1, b"\x01" + b"\0" * 20), "has the length -1"),
        (damaged(1, varint(6) + b"\0\0\0" + varint(50) + b"ab"), "beyond its"),
        (struct.pack(">qiib", 3, 40, 0, 1) + b"\0" * 60, "batch 3 has format 1"),
        (struct.pack(">qiib", 3, 40, 0, 2) + b"\0" * 60, "shorter than its header"),
    ],
)
def test_bytes_that_are_no_batch_are_refused(batch: bytes, sentence: str) -> None:
    with pytest.raises(RecordError, match=sentence):
        decode(batch)


def test_nothing_reads_as_nothing() -> None:
    read = decode(b"", 12)
    assert (read.rows.num_rows, read.next_offset) == (0, 12)


@pytest.mark.parametrize("key", [None, 4, 100])
@pytest.mark.parametrize("value", [1, 40, 119, 9000])
@pytest.mark.parametrize("size", [16_384, 131_072, 1_000_000])
def test_as_many_records_are_put_into_a_batch_as_fit(key: int | None, value: int, size: int) -> None:
    rows = rows_within(size, key, value)
    assert all(batch_size(rows, key, value, stamp) <= size for stamp in (1, 2, 3)) or rows == 1
    assert batch_size(rows + 1, key, value, 3) > size


def test_a_batch_states_its_own_size() -> None:
    for rows in (1, 64, 9000):
        assert len(encode(None, bytes_of(rows, 7, 3), np.full(rows, NOW))) == batch_size(rows, None, 7, 1)
    assert HEADER.size == 61


@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=50), width=st.integers(1, 10))
@settings(max_examples=80, deadline=None)
def test_varints_of_any_width_read_back(numbers: list[int], width: int) -> None:
    column = np.array(numbers, np.int64)
    shortest = np.frombuffer(b"".join(map(varint, numbers)), np.uint8)
    at = np.cumsum([0, *(len(varint(number)) for number in numbers)])
    read, after = read_varints(shortest, at[:-1])
    assert (read.tolist(), after.tolist()) == (numbers, at[1:].tolist())
    if all(len(varint(number)) <= width for number in numbers):
        wide = fixed_width(column, width)
        read, after = read_varints(wide.ravel(), np.arange(len(numbers)) * width)
        assert (read.tolist(), after.tolist()) == (numbers, (np.arange(1, len(numbers) + 1) * width).tolist())
    else:
        with pytest.raises(VarintError, match="does not fit"):
            fixed_width(column, width)


def test_a_varint_without_an_end_is_refused() -> None:
    with pytest.raises(VarintError, match="more than 10 bytes"):
        read_varints(np.full(20, 0xFF, np.uint8), np.zeros(1, np.int64))
