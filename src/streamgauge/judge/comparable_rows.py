"""Arrow tables as rows of plain values that can be compared across types.

Whole numbers compare in any width, timestamps in any unit, floats in the wider type. Nested values are tuples.
"""

import math
from collections.abc import Sequence
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from streamgauge.judge.match_rows import NAN, Row
from streamgauge.judge.narrow_floats import rounded, tolerance_of

_TOLERANCE = 1e-9
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""The names of Arrow's floats in numpy."""


class CannotCompareError(ValueError):
    """A column has values that cannot be compared; the message names it and its type."""


def comparable_rows(tables: Sequence[pa.Table], names: Sequence[str]) -> tuple[list[list[Row]], tuple[float, ...]]:
    """The rows of each table with these columns, and the relative tolerance of each column (0: exact)."""
    columns, tolerances = [], []
    for name in names:
        kinds = [table.schema.field(name).type for table in tables]
        as_float = any(map(types.is_floating, kinds)) and all(map(_numeric, kinds))
        tolerances.append(_tolerance(kinds))
        columns.append([_column(table, name, kinds if as_float else ()) for table in tables])
    rows = [list(zip(*(column[n] for column in columns), strict=True)) for n in range(len(tables))]
    return rows, tuple(tolerances)


def timestamps(table: pa.Table, name: str) -> list[int | None]:
    """A column of timestamps in nanoseconds since 1970; whole numbers are microseconds."""
    kind = table.schema.field(name).type
    try:
        if types.is_date(kind):
            column = table[name].cast(pa.timestamp("s"))
        elif types.is_integer(kind):
            column = table[name].cast(pa.int64()).cast(pa.timestamp("us"))
        elif types.is_timestamp(kind):
            column = table[name]
        else:
            raise CannotCompareError(f"the column {name!r} is {kind}: it must be a timestamp")
    except pa.ArrowInvalid as error:
        sentence = f"the column {name!r} of the type {kind} has values that are not timestamps"
        raise CannotCompareError(f"{sentence}: {error}") from error
    return [value for chunk in column.chunks for value in _values(chunk)]  # type: ignore[misc]


def _numeric(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind))


def _leaves(kind: pa.DataType) -> set[str]:
    """Names of the simple types that a type contains."""
    if types.is_dictionary(kind):
        return _leaves(kind.value_type)
    inner = [kind.field(n).type for n in range(kind.num_fields)]
    return set().union(*map(_leaves, inner)) if inner else {str(kind)}


def _tolerance(kinds: Sequence[pa.DataType]) -> float:
    found = [_FLOATS[leaf] for leaf in set().union(*map(_leaves, kinds)) if leaf in _FLOATS]
    return tolerance_of(found, _TOLERANCE) if found else 0.0


def _column(table: pa.Table, name: str, floats: Sequence[pa.DataType]) -> list[object]:
    """The values of a column; ``floats`` are the types in all tables if it is compared as floats, otherwise empty."""
    kind = table.schema.field(name).type
    try:
        values = [value for chunk in table[name].chunks for value in _values(chunk)]
        if floats:
            return _as_floats(values, floats)
        hash(tuple(values))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise CannotCompareError(f"the column {name!r} of the type {kind} cannot be compared: {error}") from error
    return values


def _as_floats(values: Sequence[object], kinds: Sequence[pa.DataType]) -> list[object]:
    """Numbers as floats, rounded to the narrowest type, so that equal numbers stay equal."""
    numbers = np.array([NAN if value is None else value for value in values], np.float64)
    pairs = zip(values, rounded(numbers, [_FLOATS.get(str(kind), "") for kind in kinds]).tolist(), strict=True)
    return [None if value is None else _one_nan(number) for value, number in pairs]


def _values(array: pa.Array) -> list[object]:
    """The values of an array: timestamps and durations in nanoseconds, nested values as tuples, one object for NaN."""
    kind = array.type
    if types.is_dictionary(kind):
        return _values(array.dictionary_decode())
    if types.is_timestamp(kind) or types.is_duration(kind) or types.is_time(kind):
        whole = array.cast(pa.int32()) if types.is_time32(kind) else array
        numbers, factor = whole.cast(pa.int64()).to_pylist(), _UNITS[kind.unit]
        return [None if number is None else number * factor for number in numbers]
    if types.is_map(kind):
        return [None if pairs is None else _pairs(pairs) for pairs in array.to_pylist()]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner, lengths = iter(_values(pc.list_flatten(array))), pc.list_value_length(array).to_pylist()
        valid = zip(lengths, array.is_valid().to_pylist(), strict=True)
        return [tuple(islice(inner, length)) if present else None for length, present in valid]
    if types.is_struct(kind):
        return _structs(array)
    found = array.to_pylist()
    return [_one_nan(value) for value in found] if types.is_floating(kind) else found


def _one_nan(value: object) -> object:
    """The value; the same object for every NaN."""
    return NAN if isinstance(value, float) and math.isnan(value) else value


def _pairs(pairs: Sequence[tuple[object, object]]) -> Row:
    ordered = sorted(((key, _one_nan(value)) for key, value in pairs), key=repr)
    return tuple(ordered)


def _structs(array: pa.StructArray) -> list[object]:
    names = sorted(field.name for field in array.type)
    fields = [_values(pc.struct_field(array, [array.type.get_field_index(name)])) for name in names]
    rows = zip(*fields, strict=True) if fields else [()] * len(array)
    named = (tuple(zip(names, row, strict=True)) for row in rows)
    return [row if present else None for row, present in zip(named, array.is_valid().to_pylist(), strict=True)]
