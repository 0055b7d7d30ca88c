"""Compares columns of outputs with those of the reference result, value by value. Pure.

A column is a numpy array of whole numbers, floats or texts. If it has nulls, it is a masked array: a masked value is a
null, and what is below the mask is never read. Whole numbers and texts are equal or not, floats are equal up to a
relative tolerance that is larger for floats of 32 bits, NaN equals NaN, and a null equals only a null.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamgauge.judge.narrow_floats import rounded, tolerance_of
from streamgauge.stats.digests import ragged_digests

Values = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]


def columns_of(table: pa.Table, names: Iterable[str], digested: Iterable[str] = ()) -> dict[str, Values]:
    """Those of the named columns that a table of outputs has. Moments are microseconds since 1970.

    Of the texts in the columns ``digested``, only the digests are returned.
    """
    found = {name: table.column(name) for name in names if name in table.schema.names}
    texts = {name for name in digested if name in found and pa.types.is_string(found[name].type)}
    return {name: _digests(column) if name in texts else _values(column) for name, column in found.items()}


def _digests(column: pa.ChunkedArray) -> Values:
    """The digests of texts; nulls are masked."""
    parts = [_digests_of(chunk) for chunk in column.chunks] or [np.zeros(0, np.int64)]
    values = np.concatenate(parts)
    return np.ma.array(values, mask=column.is_null().to_numpy()) if column.null_count else values


def _digests_of(texts: pa.Array) -> Codes:
    _, ends, data = texts.buffers()
    cuts = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    return ragged_digests(np.frombuffer(data or b"", np.uint8), cuts)


def differing(expected: Values, observed: Values, tolerance: float) -> Flags:
    """Which values of two columns of the same length differ. ``tolerance`` is a share of the larger of two floats."""
    found = _values_differ(np.ma.getdata(expected), np.ma.getdata(observed), tolerance)
    nulls = np.ma.getmask(expected), np.ma.getmask(observed)
    if nulls[0] is np.ma.nomask and nulls[1] is np.ma.nomask:
        return found
    one, other = np.broadcast_arrays(*nulls, np.empty(len(found)))[:2]
    return np.where(one | other, one != other, found)


def shared_codes(expected: Values, observed: Values) -> Codes:
    """Whole numbers from 0 on for the values of both columns, one after the other: equal ones for equal values.

    The largest is at most four times the number of values.
    """
    nulls = np.concatenate([np.ma.getmaskarray(expected), np.ma.getmaskarray(observed)])
    parts = [np.ma.getdata(expected), np.ma.getdata(observed)]
    kinds = [_kind(part) for part in parts if len(part)]
    if all(kind == "whole" for kind in kinds):
        codes = _dense_codes(np.concatenate([part.astype(np.int64) for part in parts]))
    elif all(kind == "text" for kind in kinds):
        codes = _text_codes(np.concatenate([part.astype(object) for part in parts]))
    else:  # no value of one type equals one of the other
        codes = np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts])
    return np.where(nulls, 0, codes + 1) if nulls.any() else codes


def _values_differ(expected: Values, observed: Values, tolerance: float) -> Flags:
    kinds = _kind(expected), _kind(observed)
    if kinds in (("whole", "whole"), ("text", "text")):
        return np.asarray(expected != observed, bool)
    if kinds == ("whole", "float"):
        return _no_such_whole(expected, observed)
    if "text" in kinds:
        return np.ones(len(expected), bool)
    types = [values.dtype.name for values in (expected, observed)] if tolerance else []
    one, other = (rounded(values.astype(np.float64), types) for values in (expected, observed))
    tolerance = tolerance_of(types, tolerance)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(one - other) <= tolerance * np.maximum(np.abs(one), np.abs(other))
    # the distance of two infinities is no number, and that of a number to infinity is infinite, as the limit is
    near &= np.isfinite(one) & np.isfinite(other)
    differ: Flags = ~(near | (one == other) | (np.isnan(one) & np.isnan(other)))
    return differ


def _no_such_whole(expected: Values, observed: Values) -> Flags:
    """Whether floats are not exactly the whole numbers that are expected."""
    floats = observed.astype(np.float64)
    inside = (floats >= -(2.0**63)) & (floats < 2.0**63)  # NaN is not
    whole = np.where(inside, floats, 0.0).astype(np.int64)
    differ: Flags = ~inside | (whole != expected) | (whole != floats)
    return differ


def _kind(values: Values) -> str:
    if values.dtype.kind in "iub":
        return "whole"
    return "float" if values.dtype.kind == "f" else "text"


def _dense_codes(values: Codes) -> Codes:
    """Numbers from 0 on for whole numbers."""
    if len(values) == 0:
        return values
    steps = values - values.min() if int(values.max()) - int(values.min()) < 1 << 63 else values
    steps = steps // max(1, int(np.gcd.reduce(steps)))  # windows begin at multiples of the slide
    if int(steps.min()) >= 0 and int(steps.max()) <= 4 * len(values):
        return steps
    ranks: Codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return ranks


def _text_codes(values: Values) -> Codes:
    codes: Codes = pa.array(values).dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64) + 1
    return codes


def _values(column: pa.ChunkedArray) -> Values:
    """A column of Arrow as numbers or texts; values of any other type as Python objects, which equal no number."""
    array = column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    values = _filled(array)
    return values if nulls is None else np.ma.array(values, mask=nulls)


def _filled(array: pa.Array) -> Values:
    """The values of an array, with anything in place of its nulls."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        array = array.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    elif pa.types.is_decimal(kind):
        array = _without_decimals(array)
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return _objects(array)
    values: Values = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    return values


def _objects(array: pa.Array) -> Values:
    """Values as Python objects. Equal texts are one object: names come many times, and each would be seventy bytes."""
    if pa.types.is_string(array.type):
        encoded = array.dictionary_encode()
        texts = np.array([*encoded.dictionary.to_pylist(), None], object)
        shared: Values = texts[encoded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)]
        return shared
    objects = np.empty(len(array), object)
    objects[:] = array.to_pylist()
    return objects


def _without_decimals(array: pa.Array) -> pa.Array:
    """Decimals as whole numbers if they are, otherwise as floats."""
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        return array.cast(pa.float64())
