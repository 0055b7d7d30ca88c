"""Matches rows of plain values one to one: floats may differ by a rounding error, other values must be equal.

A value is None, a number, a text, bytes, a date, or a tuple of such values. Every NaN is the one object ``NAN``, so
that rows with it compare equal and can be counted.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

Row = tuple[object, ...]
NAN = math.nan


def rows_match(left: Row, right: Row, tolerances: Sequence[float]) -> bool:
    """Whether two rows are equal; ``tolerances`` are relative, one per column; 0: values must be the same."""
    return all(_values_match(*values) for values in zip(left, right, tolerances, strict=True))


def _values_match(left: object, right: object, tolerance: float) -> bool:
    if left is right or left == right:
        return True
    if isinstance(left, tuple) and isinstance(right, tuple):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(_values_match(a, b, tolerance) for a, b in pairs)
    floats = isinstance(left, float) and isinstance(right, float)
    return floats and tolerance > 0 and math.isclose(left, right, rel_tol=tolerance)  # type: ignore[arg-type]


def as_known_rows(observed: Sequence[Row], known: Iterable[Row], tolerances: Sequence[float]) -> list[Row]:
    """The observed rows, each replaced by the known row that it equals up to rounding, if there is one.

    Each known row is used as often as it occurs, before any is used more often.
    """
    unused = Counter(known)
    if not any(tolerances):
        return list(observed)
    for row in observed:
        if row in unused:
            unused[row] -= 1
    index = _Index(unused, tolerances)
    return [row if row in unused else index.take(row) for row in observed]


class _Index:
    """Known rows by all their values except floats, sorted by their first float."""

    def __init__(self, unused: Counter[Row], tolerances: Sequence[float]) -> None:
        self._unused, self._tolerances = unused, tolerances
        self._max_distance = 2 * max(tolerances)
        self._groups: dict[Row, list[tuple[float, Row]]] = {}
        for row in unused:
            self._groups.setdefault(self._exact(row), []).append((self._lead(row), row))
        for rows in self._groups.values():
            rows.sort(key=lambda entry: entry[0])

    def take(self, row: Row) -> Row:
        """The nearest matching known row, preferably an unused one; the row itself if none matches."""
        rows, lead = self._groups.get(self._exact(row), []), self._lead(row)
        reach = abs(lead) * self._max_distance
        low = bisect_left(rows, lead - reach, key=lambda entry: entry[0])
        high = bisect_right(rows, lead + reach, key=lambda entry: entry[0])
        near = [known for _, known in rows[low:high] if rows_match(row, known, self._tolerances)]
        if not near:
            return row
        found = min(near, key=lambda known: (self._unused[known] <= 0, abs(self._lead(known) - lead)))
        self._unused[found] -= 1
        return found

    def _exact(self, row: Row) -> Row:
        return tuple(
            _without_floats(value) if tolerance else value
            for value, tolerance in zip(row, self._tolerances, strict=True)
        )

    def _lead(self, row: Row) -> float:
        tolerant = (value for value, tolerance in zip(row, self._tolerances, strict=True) if tolerance)
        return next(_floats(tuple(tolerant)), 0.0)


def _without_floats(value: object) -> object:
    """A value with every float replaced by its type."""
    if isinstance(value, tuple):
        return tuple(map(_without_floats, value))
    return float if isinstance(value, float) and math.isfinite(value) else value


def _floats(value: object) -> Iterator[float]:
    if isinstance(value, tuple):
        for each in value:
            yield from _floats(each)
    elif isinstance(value, float) and math.isfinite(value):
        yield value
