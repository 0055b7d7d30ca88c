"""Rows of plain values, matched one to one: floats may differ by a rounding error, everything else must be equal.

A value is None, a number, a text, bytes, a date, or a tuple of such values. Every NaN is the one object ``NAN``, so
that rows with it compare equal and can be counted.
"""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

Row = tuple[object, ...]
NAN = math.nan


def alike(left: Row, right: Row, tolerances: Sequence[float]) -> bool:
    """Whether two rows are equal; ``tolerances`` are relative, one per column, 0 where values must be the same."""
    return all(_near(*values) for values in zip(left, right, tolerances, strict=True))


def _near(left: object, right: object, tolerance: float) -> bool:
    if left is right or left == right:
        return True
    if isinstance(left, tuple) and isinstance(right, tuple):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(_near(a, b, tolerance) for a, b in pairs)
    floats = isinstance(left, float) and isinstance(right, float)
    return floats and tolerance > 0 and math.isclose(left, right, rel_tol=tolerance)  # type: ignore[arg-type]


def renamed(came: Sequence[Row], known: Iterable[Row], tolerances: Sequence[float]) -> list[Row]:
    """The rows that came, each as the known row that it equals up to rounding; rows without such a one as they are.

    A known row is taken as often as it is known, before any is taken more often.
    """
    free = Counter(known)
    if not any(tolerances):
        return list(came)
    for row in came:
        if row in free:
            free[row] -= 1
    index = _Index(free, tolerances)
    return [row if row in free else index.take(row) for row in came]


class _Index:
    """Known rows by everything but their floats, then in the order of their first float."""

    def __init__(self, free: Counter[Row], tolerances: Sequence[float]) -> None:
        self._free, self._tolerances = free, tolerances
        self._widest = 2 * max(tolerances)
        self._groups: dict[Row, list[tuple[float, Row]]] = {}
        for row in free:
            self._groups.setdefault(self._exact(row), []).append((self._lead(row), row))
        for rows in self._groups.values():
            rows.sort(key=lambda entry: entry[0])

    def take(self, row: Row) -> Row:
        """The nearest known row that is alike, one that is still free if there is any; else the row itself."""
        rows, lead = self._groups.get(self._exact(row), []), self._lead(row)
        room = abs(lead) * self._widest
        low = bisect_left(rows, lead - room, key=lambda entry: entry[0])
        high = bisect_right(rows, lead + room, key=lambda entry: entry[0])
        near = [known for _, known in rows[low:high] if alike(row, known, self._tolerances)]
        if not near:
            return row
        found = min(near, key=lambda known: (self._free[known] <= 0, abs(self._lead(known) - lead)))
        self._free[found] -= 1
        return found

    def _exact(self, row: Row) -> Row:
        return tuple(
            _marked(value) if tolerance else value for value, tolerance in zip(row, self._tolerances, strict=True)
        )

    def _lead(self, row: Row) -> float:
        tolerant = (value for value, tolerance in zip(row, self._tolerances, strict=True) if tolerance)
        return next(_floats(tuple(tolerant)), 0.0)


def _marked(value: object) -> object:
    """A value without what a rounding error can change."""
    if isinstance(value, tuple):
        return tuple(map(_marked, value))
    return float if isinstance(value, float) and math.isfinite(value) else value


def _floats(value: object) -> Iterator[float]:
    if isinstance(value, tuple):
        for each in value:
            yield from _floats(each)
    elif isinstance(value, float) and math.isfinite(value):
        yield value
