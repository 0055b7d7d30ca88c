"""Values of outputs against those of the reference result: whole numbers, floats, texts, moments and nulls."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.judge.compare_columns import Values, columns_of, differing, shared_codes
from streamgauge.judge.outputs import compare_outputs
from streamgauge.model.seconds import Account

NAN, INF = math.nan, math.inf
TOLERANCE = 1e-9


def column(values: list[Any], kind: pa.DataType | None = None) -> Values:
    """The values as they are read from a table of outputs."""
    return columns_of(pa.table({"x": pa.array(values, kind)}), ["x"])["x"]


def differ(expected: Any, observed: Any, kind: pa.DataType | None = None) -> bool:  # noqa: ANN401
    (found,) = differing(column([expected]), column([observed], kind), TOLERANCE)
    return bool(found)


@pytest.mark.parametrize(
    ("expected", "observed"),
    [
        (1.0, 1.0),
        (1.0, 1.0 + 0.9e-9),
        (-3e300, -3e300 * (1 + 0.9e-9)),
        (0.0, -0.0),
        (NAN, NAN),
        (INF, INF),
        (5e-324, 5e-324),
        (2.0, 2),
        (7, 7),
        (7, 7.0),
        ("M1", "M1"),
        ("", ""),
        ("né", "né"),
        (None, None),
    ],
)
def test_these_values_are_equal(expected: object, observed: object) -> None:
    assert not differ(expected, observed)


@pytest.mark.parametrize(
    ("expected", "observed"),
    [
        (1.0, 1.0 + 1.1e-9),
        (0.0, 5e-324),
        (1.0, -1.0),
        (NAN, 0.0),
        (0.0, NAN),
        (INF, -INF),
        (INF, 1e308),
        (1e308, INF),
        (1e308, -1e308),
        (7, 8),
        (7, 7.0000000001),
        ((1 << 53) + 1, float(1 << 53)),
        (0, NAN),
        (7, INF),
        (7, "7"),
        ("7", 7),
        (7.5, "7.5"),
        ("M1", "m1"),
        ("M1", "M1 "),
        (None, 0),
        (0, None),
        (None, NAN),
        (NAN, None),
        (None, ""),
        ("", None),
        (7, [7]),
        ("a", b"a"),
    ],
)
def test_these_values_differ(expected: object, observed: object) -> None:
    assert differ(expected, observed)


def test_whole_numbers_are_compared_exactly_up_to_63_bits() -> None:
    most = (1 << 63) - 1
    assert not differ(most, most)
    assert differ(most, most - 1)
    assert differ(most, float(most)), "the float is 2^63"
    assert not differ(-(1 << 63), -float(1 << 63))


def test_a_number_is_the_same_in_any_type() -> None:
    assert not differ(5, 5, pa.int8())
    assert not differ(0.5, 0.5, pa.float32())
    assert not differ(0.1, 0.1, pa.float32()), "0.1 of 32 bits is 1.5e-8 from that of 64"
    assert differ(0.1, 0.1 + 3e-8, pa.float32()), "these are two values of 32 bits"
    assert not differ(0.1, np.float16(0.1), pa.float16())
    assert differ(0.1, 0.1001, pa.float32())
    assert not differ(5, 5, pa.decimal128(38, 0))
    assert not differ(0.25, Decimal("0.25"), pa.decimal128(10, 2))
    assert differ(0.25, Decimal("0.26"), pa.decimal128(10, 2))
    assert not differ(1, True)
    assert differ(1, False)


def test_a_text_is_the_same_in_any_type() -> None:
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        assert not differ("M1", "M1", kind)
        assert differ("M1", "M2", kind)
        assert not differ(None, None, kind)


def test_a_moment_is_microseconds_since_1970() -> None:
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        read = columns_of(pa.table({"x": pa.array([3 * factor, None], pa.timestamp(unit, "UTC"))}), ["x"])["x"]
        assert differing(np.ma.array([3_000_000, 0], mask=[False, True]), read, 0.0).tolist() == [False, False]
        assert differing(np.array([3_000_001, 0]), read, 0.0).tolist() == [True, True]


def test_what_is_below_a_mask_is_never_read() -> None:
    expected = np.ma.array([1.5, NAN, 7.0], mask=[False, True, True])
    assert differing(expected, column([1.5, None, None]), TOLERANCE).tolist() == [False, False, False]
    assert differing(expected, column([None, NAN, 7.0]), TOLERANCE).tolist() == [True, True, True]


def test_empty_columns_do_not_differ() -> None:
    for kind in (pa.int64(), pa.float64(), pa.string(), pa.null()):
        empty = column([], kind)
        assert differing(np.zeros(0, np.int64), empty, TOLERANCE).tolist() == []
        assert shared_codes(np.zeros(0, np.int64), empty).tolist() == []


def test_only_the_named_columns_that_are_there_are_read() -> None:
    table = pa.table({"a": [1], "b": [[2]]})
    assert set(columns_of(table, ["a", "c"])) == {"a"}


@pytest.mark.parametrize(
    ("expected", "observed"),
    [
        ([5, 7, 5], [7, 9, 5]),
        ([0, 4_000_000], [4_000_000, 0]),
        ([-(1 << 63), (1 << 63) - 1], [0]),
        (["a", "b"], ["b", "", "a"]),
        ([None, 3], [3, None, 0]),
        ([None, "x"], ["x", None, ""]),
        ([], [3, 3]),
        (["a"], []),
    ],
)
def test_equal_values_have_equal_codes_and_others_have_not(expected: list[Any], observed: list[Any]) -> None:
    codes = shared_codes(column(expected), column(observed)).tolist()
    values = [*expected, *observed]
    assert len(codes) == len(values)
    for one, a in zip(codes, values, strict=True):
        for other, b in zip(codes, values, strict=True):
            assert (one == other) == (a == b)
    assert min(codes, default=0) >= 0
    assert max(codes, default=0) <= 4 * len(values)


def test_a_whole_number_and_a_text_never_have_the_same_code() -> None:
    codes = shared_codes(column([1, 2]), column(["1", "2"]))
    assert not {*codes[:2].tolist()} & {*codes[2:].tolist()}


# whole rows

ORDER = np.arange(6, dtype=np.int64)
ANSWER = {
    "window_start": ORDER // 2 * 1_000,
    "location": np.array(["north", "south"] * 3, object),
    "cars": ORDER * 11,
    "speed": ORDER / 7,
    "change": np.ma.array([0.5, 0.0, -0.25, NAN, 0.0, 3.0], mask=[False, True, False, False, True, False]),
}


def account(change: dict[str, list[Any]]) -> Account:
    rows = {name: (np.ma.array(values) if name == "change" else values).tolist() for name, values in ANSWER.items()}
    table = pa.table(rows | change)
    return compare_outputs(
        ANSWER,
        columns_of(table, ANSWER),
        window=1_000,
        closed=1 << 62,
        identity=("window_start", "location"),
        tolerance=TOLERANCE,
    ).account


def test_rows_with_texts_floats_and_nulls_are_compared() -> None:
    assert account({}) == Account(expected=6, observed=6, checked=True)
    assert account({"speed": [n / 7 * (1 + 5e-10) for n in range(6)]}).wrong == 0
    assert account({"speed": [n / 7 * (1 + 5e-9) for n in range(6)]}).wrong == 5, "0 is 0"
    assert account({"change": [0.5, 0.0, -0.25, NAN, None, 3.0]}).wrong == 1
    assert account({"change": [None, None, -0.25, NAN, None, 3.0]}).wrong == 1
    assert account({"change": [0.5, None, -0.25, None, None, 3.0]}).wrong == 1
    assert account({"cars": [0, 11, 22, 33, 44, None]}).wrong == 1
    assert account({"location": ["north", "south"] * 2 + ["north", "east"]}) == Account(
        expected=6, observed=6, lost=1, wrong=1, checked=True
    )
    assert account({"location": ["north", "south"] * 2 + ["north", None]}) == Account(
        expected=6, observed=6, lost=1, wrong=1, checked=True
    )
    assert account({"location": ["north", "north", *["north", "south"] * 2]}) == Account(
        expected=6, observed=6, lost=1, duplicate=1, wrong=1, checked=True
    )
