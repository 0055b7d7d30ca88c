"""Events and outputs as values of Kafka's records: they read back, and other programs understand them."""

import json
import math
import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.run.driver.send_schedule import open_source
from streamgauge.transports.kafka.client.varints import varint
from streamgauge.transports.kafka.formats.avro import Avro
from streamgauge.transports.kafka.formats.columns import FormatError, FormatName
from streamgauge.transports.kafka.formats.formats import (
    Format,
    encode_keys,
    name_problem,
    open_format,
    output_format,
    with_sequence,
    with_sequence_numbers,
)
from streamgauge.workloads.contract import Inputs
from streamgauge.workloads.data.shopping import PURCHASE_STREAM
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams, windowed_aggregation

STAMP = pa.timestamp("us", "UTC")
NAMES: tuple[FormatName, ...] = ("json", "binary", "avro")
OUTPUT = pa.schema(
    [
        *(("gem_pack_id", pa.int32()), ("window_start", STAMP), ("window_end", STAMP), ("sum", pa.int64())),
        *(("count", pa.int64()), ("max_due", STAMP), ("max_ingested", STAMP)),
    ]
)

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
"""Times too: microseconds since 1970."""
Row = tuple[int | None, ...]


def rows_of(ints: st.SearchStrategy[int | None], longs: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[Row]]:
    """Rows of the columns of OUTPUT."""
    return st.lists(st.tuples(ints, *[longs] * 6), max_size=40)


outputs = rows_of(ints, longs)
positive = rows_of(st.integers(0, 2**31 - 1), st.integers(0, 10**16 - 1))
"""What events have too."""
edges = (-(2**63), 1 - 2**63, -1, 0, 1, 2**63 - 1)
extreme = rows_of(st.sampled_from((-(2**31), -1, 0, 2**31 - 1)), st.sampled_from(edges))


def batch_of(rows: Sequence[Row], schema: pa.Schema = OUTPUT) -> pa.RecordBatch:
    """Rows of numbers and nulls as columns."""
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(len(schema))]
    arrays = [c.view(f.type) if f.type == STAMP else c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def values_of(form: Format, rows: pa.RecordBatch) -> pa.BinaryArray:
    """Values as they are read from a log."""
    return pa.array([row.tobytes() for row in form.encode(rows)], pa.binary())


def purchases(rows: int = 1000) -> pa.RecordBatch:
    """Events as the generator makes them, of the second of three partitions."""
    plan = constant(100_000).plan(SECOND)
    inputs = Inputs({PURCHASE_STREAM.name: plan}, seed=3, origin_ns=1_800_000_000 * SECOND)
    source = open_source(windowed_aggregation, WindowedAggregationParams(), PURCHASE_STREAM, inputs, partitions=3)
    return source.batch(1, 5, 5 + rows)


@pytest.mark.parametrize("name", NAMES)
@given(rows=outputs | extreme)
@settings(max_examples=60, deadline=None)
def test_outputs_of_any_sign_read_back_in_every_format(name: FormatName, rows: list[Row]) -> None:
    form, batch = output_format(name, OUTPUT), batch_of(rows)
    assert form.encode(batch).shape == (len(rows), form.width)
    assert form.decode(values_of(form, batch)).equals(batch)


@pytest.mark.parametrize("name", NAMES)
@given(rows=rows_of(ints | st.none(), st.integers(-(2**61), 2**61) | st.none()))
@settings(max_examples=60, deadline=None)
def test_nulls_read_back_in_every_format(name: FormatName, rows: list[Row]) -> None:
    form, batch = output_format(name, OUTPUT), batch_of(rows)
    assert form.decode(values_of(form, batch)).equals(batch)


@given(rows=rows_of(ints | st.none(), st.sampled_from(edges) | st.none()))
@settings(max_examples=60, deadline=None)
def test_avro_of_the_shortest_form_is_read_with_nulls_beside_the_longest_numbers(rows: list[Row]) -> None:
    cells = [[varint(0) if n is None else varint(1) + varint(n) for n in row] for row in rows]
    values = pa.array([b"".join(row) for row in cells], pa.binary())
    assert output_format("avro", OUTPUT).decode(values).equals(batch_of(rows))


@given(rows=rows_of(ints | st.none(), st.sampled_from(edges) | st.none()))
@settings(max_examples=60, deadline=None)
def test_json_of_outputs_may_have_null_or_omit_the_key(rows: list[Row]) -> None:
    form, batch = output_format("json", OUTPUT), batch_of(rows)
    objects = [dict(zip(OUTPUT.names, row, strict=True)) for row in rows]
    assert [json.loads(value) for value in values_of(form, batch).to_pylist()] == objects
    short = [json.dumps({name: n for name, n in one.items() if n is not None}).encode() for one in objects]
    assert form.decode(pa.array(short, pa.binary())).equals(batch)


def test_events_in_packed_decimal_have_no_sign_and_no_format_of_events_has_nulls() -> None:
    with pytest.raises(FormatError, match="the column sum: -5 is below 0"):
        open_format("binary", OUTPUT).encode(batch_of([(1, 2, 3, -5, 5, 6, 7)]))
    for name in NAMES:
        with pytest.raises(FormatError, match="a column has no value"):
            open_format(name, OUTPUT).encode(batch_of([(1, 2, 3, None, 5, 6, 7)]))


@pytest.mark.parametrize("name", NAMES)
@given(rows=positive)
@settings(max_examples=40, deadline=None)
def test_events_read_back_in_every_format(name: FormatName, rows: list[Row]) -> None:
    form, batch = open_format(name, OUTPUT), batch_of(rows)
    assert form.encode(batch).shape == (len(rows), form.width)
    assert form.decode(values_of(form, batch)).equals(batch)


@pytest.mark.parametrize("name", NAMES)
def test_events_travel_with_their_due_time_and_their_number(name: FormatName) -> None:
    batch = with_sequence_numbers(purchases(), 5 * 3 + 1, 3)
    form = open_format(name, with_sequence(purchases(1).schema))
    back = form.decode(values_of(form, batch))
    assert back.equals(batch)
    assert back.column("sequence")[:3].to_pylist() == [16, 19, 22]
    assert back.column("due").equals(purchases().column("due"))


@given(rows=positive)
@settings(max_examples=30, deadline=None)
def test_json_is_what_any_parser_reads(rows: list[Row]) -> None:
    values = values_of(open_format("json", OUTPUT), batch_of(rows))
    assert [json.loads(value) for value in values.to_pylist()] == [
        dict(zip(OUTPUT.names, row, strict=True)) for row in rows
    ]


@given(rows=positive)
@settings(max_examples=30, deadline=None)
def test_binary_shows_its_digits_in_hexadecimal(rows: list[Row]) -> None:
    values = values_of(open_format("binary", OUTPUT), batch_of(rows))
    widths = (12, 16, 16, 20, 20, 16, 16)
    assert [value.hex() for value in values.to_pylist()] == [
        "".join(f"{number:0{width}d}" for number, width in zip(row, widths, strict=True)) for row in rows
    ]


@given(rows=rows_of(st.integers(0, 2**31 - 1), longs))
@settings(max_examples=30, deadline=None)
def test_avro_of_the_shortest_form_is_read_too(rows: list[Row]) -> None:
    values = pa.array([b"".join(varint(n or 0) for n in row) for row in rows], pa.binary())
    assert open_format("avro", OUTPUT).decode(values).equals(batch_of(rows))


def test_binary_outputs_show_their_digits_a_sign_and_a_mark_for_null_in_hexadecimal() -> None:
    form = output_format("binary", pa.schema([("number", pa.int32()), ("moment", STAMP), ("sum", pa.int64())]))
    assert [
        row.tobytes().hex() for row in form.encode(batch_of([(-7, 7, None), (None, -7, -(2**63))], form.schema))
    ] == [
        "d00000000007" + "00000000000000000007" + "f0000000000000000000",
        "f00000000000" + "d0000000000000000007" + "d9223372036854775808",
    ]


@pytest.mark.parametrize("number", [b"\xd9" + b"\x99" * 9, b"\x09" + b"\x99" * 9, b"\xa0" + b"\0" * 9])
def test_digits_that_are_no_number_of_64_bits_are_refused(number: bytes) -> None:
    with pytest.raises(FormatError, match=r"the column sum: there (is a number that does not fit|are bytes that)"):
        output_format("binary", pa.schema([("sum", pa.int64())])).decode(pa.array([number], pa.binary()))


def test_avro_contains_its_schema() -> None:
    said = json.loads(Avro(OUTPUT).text)
    assert [field["name"] for field in said["fields"]] == OUTPUT.names
    assert said["fields"][0]["type"] == "int"
    assert said["fields"][1]["type"] == {"type": "long", "logicalType": "timestamp-micros"}
    said = json.loads(Avro(OUTPUT, outputs=True).text)
    assert [field["type"][0] for field in said["fields"]] == ["null"] * len(OUTPUT)


@pytest.mark.parametrize("column", ["count(1)", "1st", "sum of prices", "prix-été", ""])
def test_a_name_that_avro_does_not_support_is_refused(column: str) -> None:
    assert "letters, digits and underscores" in name_problem("avro", column)
    assert (name_problem("json", column), name_problem("binary", column)) == ("", "")
    assert name_problem("avro", "window_end2") == ""


def test_json_of_others_may_have_its_keys_in_any_order_and_more_of_them() -> None:
    schema = pa.schema([("gem_pack_id", pa.int32()), ("window_start", STAMP)])
    values = pa.array([b'{"more":[1],"window_start": 7,"gem_pack_id":3}', b'{"gem_pack_id":4,"window_start":8}'])
    back = open_format("json", schema).decode(values)
    assert back.column("gem_pack_id").to_pylist() == [3, 4]
    assert back.column("window_start").view(pa.int64()).to_pylist() == [7, 8]


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("json", [b"[1]"], "no JSON object"),
        ("json", [b'{"gem_pack_id": "three"}'], "no JSON object"),
        ("json", [b'{"gem_pack_id": 1}\n{"gem_pack_id": 2}'], "1 values hold 2 JSON objects"),
        ("json", [None], "no JSON object"),
        ("binary", [b"\x12" * 54], "should have 58 bytes"),
        ("binary", [None], "should have 58 bytes"),
        ("binary", [b"\xaa" * 58], "the column gem_pack_id: .* not decimal digits"),
        ("avro", [b"\0" * 6], "is not an Avro datum"),
        ("avro", [b"\0" * 8], "its length is wrong"),
        ("avro", [b"\xff" * 30], "is not an Avro datum"),
        ("avro", [varint(2**40) + b"\0" * 6], "the column gem_pack_id"),
    ],
)
def test_bytes_that_are_no_row_are_refused(name: FormatName, values: list[bytes | None], sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        open_format(name, OUTPUT).decode(pa.array(values, pa.binary()))


def test_a_number_that_is_too_long_is_refused_with_its_column() -> None:
    schema = pa.schema([("sequence", pa.int64())])
    batch = pa.record_batch([pa.array([7, 10**12])], schema=schema)
    for name in ("json", "binary"):
        with pytest.raises(FormatError, match="the column sequence: 1000000000000 has more than 12 digits"):
            open_format(name, schema).encode(batch)
    with pytest.raises(FormatError, match="the column sequence: 4398046511104 does not fit"):
        open_format("avro", schema).encode(pa.record_batch([pa.array([2**42])], schema=schema))


MIXED = pa.schema(
    [
        *(("name", pa.string()), ("number", pa.int32()), ("share", pa.float64()), ("comment", pa.string())),
        *(("moment", STAMP), ("mean", pa.float64())),
    ]
)
texts = st.text(max_size=30) | st.sampled_from(("", '"', "a\\b", "line\nbreak", "NaN", "naïve 🙂", "\0"))
longest = -2.2250738585072014e-308
floats = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from((longest, 5e-324, -0.0, 1e22))
Mixed = tuple[str | int | float | None, ...]


def mixed(nulls: bool) -> st.SearchStrategy[list[Mixed]]:
    """Rows of the columns of MIXED."""
    none = st.none() if nulls else st.nothing()
    cells = (texts, st.integers(0, 2**31 - 1), floats, texts, st.integers(0, 10**16 - 1), floats)
    return st.lists(st.tuples(*(cell | none for cell in cells)), max_size=30)


def mixed_batch(rows: Sequence[Mixed]) -> pa.RecordBatch:
    columns = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(MIXED)]
    return pa.RecordBatch.from_arrays(columns, schema=MIXED)


def same(left: pa.RecordBatch, right: pa.RecordBatch) -> bool:
    """Equal to the last bit, −0.0 is not 0.0; but one NaN is as good as another."""

    def bits(column: pa.Array) -> pa.Array:
        if column.type != pa.float64():
            return column
        return pc.if_else(pc.is_nan(column), math.nan, column).view(pa.int64())

    return all(bits(one).equals(bits(other)) for one, other in zip(left.columns, right.columns, strict=True))


@pytest.mark.parametrize("name", NAMES)
@given(rows=mixed(nulls=True))
@example(rows=[(None, None, None, None, None, -1.6414988776744616e-06)])
@settings(max_examples=150, deadline=None)
def test_outputs_with_floats_text_and_nulls_read_back_in_every_format(name: FormatName, rows: list[Mixed]) -> None:
    form, batch = output_format(name, MIXED), mixed_batch(rows)
    values = values_of(form, batch)
    assert len({len(value) for value in values.to_pylist()}) <= 1, "records are built many at a time, of one width"
    assert same(form.decode(values), batch)


@pytest.mark.parametrize("name", NAMES)
@given(rows=mixed(nulls=False))
@settings(max_examples=150, deadline=None)
def test_events_with_floats_and_text_read_back_in_every_format(name: FormatName, rows: list[Mixed]) -> None:
    form, batch = open_format(name, MIXED), mixed_batch(rows)
    assert same(form.decode(values_of(form, batch)), batch)


@pytest.mark.parametrize("name", NAMES)
@given(rows=st.lists(st.tuples(floats | st.none()), max_size=20))
@settings(max_examples=60, deadline=None)
def test_floats_without_text_have_a_fixed_width(name: FormatName, rows: list[tuple[float | None]]) -> None:
    schema = pa.schema([("mean", pa.float64())])
    form = output_format(name, schema)
    batch = pa.RecordBatch.from_arrays([pa.array([row[0] for row in rows], pa.float64())], schema=schema)
    assert form.encode(batch).shape == (len(rows), form.width)
    assert same(form.decode(values_of(form, batch)), batch)


@given(rows=mixed(nulls=True))
@settings(max_examples=60, deadline=None)
def test_json_with_floats_and_text_is_what_any_parser_reads(rows: list[Mixed]) -> None:
    values = values_of(output_format("json", MIXED), mixed_batch(rows)).to_pylist()
    for value, row in zip(values, rows, strict=True):
        for cell, wanted in zip(json.loads(value).values(), row, strict=True):
            if isinstance(wanted, float) and not math.isfinite(wanted):
                assert repr(float(cell)) == repr(wanted)
            else:
                assert cell == wanted


@given(rows=mixed(nulls=False))
@settings(max_examples=60, deadline=None)
def test_avro_with_text_of_the_shortest_form_is_read_too(rows: list[Mixed]) -> None:
    def cell(value: str | float | None) -> bytes:
        if isinstance(value, str):
            return varint(len(value.encode())) + value.encode()
        return struct.pack("<d", value) if isinstance(value, float) else varint(value or 0)

    values = pa.array([b"".join(map(cell, row)) for row in rows], pa.binary())
    assert same(open_format("avro", MIXED).decode(values), mixed_batch(rows))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("binary", b"\0\0\0\0\0\x09" + b"ab", "a text ends after its record"),
        ("binary", b"\0\0\0", "should have 6 bytes or more"),
        ("avro", varint(9) + b"ab", "the column name: a text ends after its record"),
        ("avro", varint(2) + b"ab" + b"\1", "its length is wrong"),
        ("avro", varint(2) + b"\xff\xff", "the column name: .*UTF8"),
        ("json", b'{"name": 7}', "no JSON object"),
    ],
)
def test_bytes_that_are_no_text_are_refused(name: FormatName, value: bytes, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        open_format(name, pa.schema([("name", pa.string())])).decode(pa.array([value], pa.binary()))


@pytest.mark.parametrize("name", NAMES)
def test_a_type_that_cannot_travel_is_refused_with_its_column(name: FormatName) -> None:
    with pytest.raises(FormatError, match=r"the column flag has the type bool; int32, int64, float64, text and"):
        open_format(name, pa.schema([("flag", pa.bool_())]))


def test_keys_are_what_kafka_writes_for_an_integer() -> None:
    assert encode_keys(np.array([0, 1, 258, -1])).tobytes() == bytes.fromhex("00000000 00000001 00000102 ffffffff")
