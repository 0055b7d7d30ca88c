"""The outputs of a user's own job against the user's own reference: whole rows, each as often as it should come.

The reference is computed for all events that were published, and required as far as events were acknowledged. Between
the two a row may come or not: a system may be further than it has acknowledged. If it comes, it must be right, unless
it belongs to the last windows, of which not all events were published.

lost       a row of the reference whose window is closed (or that has no window) and that did not come
duplicate  a row that came more often than the reference has it
wrong      a row that the reference does not have: a wrong value is one row lost and one row wrong

In update mode a row may come again with a new value. The last row of each window and key counts, and it must be right
once the window is closed; a wrong one counts as wrong only.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from streamgauge.engines.contract import UserCodeFailed
from streamgauge.judge.comparable_rows import CannotCompareError, comparable_rows, timestamps
from streamgauge.judge.match_rows import Row, as_known_rows, rows_match
from streamgauge.model.seconds import Account
from streamgauge.model.streams import MAX_DUE, MAX_INGESTED, MEAN_PUBLISHED, WINDOW_END

EMITTED = "emitted_us"
_ADDED = (EMITTED, "batch")
_HIDDEN = (MAX_DUE, MAX_INGESTED, MEAN_PUBLISHED, *_ADDED)
"""Columns for latencies and of the collector's: a reference need not have them, and ingestion is never the same."""


class UserReferenceError(UserCodeFailed):
    """The user's reference cannot be used; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class CustomResult:
    """What the user's reference returns for all published events, and up to which event-time (µs) it must be out."""

    rows: pa.Table
    closed: int
    acknowledged: pa.Table | None = None
    """What it returns for the acknowledged events, if these are fewer and rows have no window."""
    complete: int | None = None
    """Event-time (µs) up to which all events were published; None: everything was."""
    last_row_wins: bool = False
    keys: tuple[str, ...] = ()
    """The columns that distinguish the rows of one window, where the last row wins."""

    def rows_due(self) -> pa.Table:
        """The rows that must be out by now: those of closed windows, or of acknowledged events without windows."""
        if WINDOW_END not in self._names():
            return self.rows if self.acknowledged is None else self.acknowledged
        return self.rows.filter(pa.array(self._closed(), pa.bool_()))

    def first_window(self) -> int | None:
        """Nanoseconds since 1970 at which the first window ends; None where rows have no window."""
        if WINDOW_END not in self._names():
            return None
        return min((end for end in timestamps(self.rows, WINDOW_END) if end is not None), default=None)

    def account(self, observed: pa.Table | None) -> Account:
        """Count what is lost, double or wrong, on the columns that the reference has."""
        names = self._names()
        if observed is None:
            must = len(self.rows_due())
            missed = len(self.rows) - must
            return Account(expected=len(self.rows), lost=must, not_reached=missed, checked=True, compared=must)
        absent = [name for name in names if name not in observed.column_names]
        if absent:
            raise UserReferenceError(
                f"your reference has the column {absent[0]!r}, which your function does not output; "
                f"it outputs {', '.join(name for name in observed.column_names if name not in _ADDED)}"
            )
        try:
            return self._updates(observed, names) if self.last_row_wins else self._whole(observed, names)
        except CannotCompareError as error:
            raise UserReferenceError(f"your reference cannot be checked: {error}") from error
        except KeyError as error:
            sentence = "your reference returned other columns for the acknowledged events than for all published ones"
            raise UserReferenceError(f"{sentence}: {error}") from error

    def absent(self, observed: pa.Table | None) -> list[int]:
        """Places of the reference's rows that did not come, whether they had to or not.

        None of them where rows without a window change as more events come: which row was due is then unknown.
        """
        names = self._names()
        came = self.rows.slice(0, 0) if observed is None else observed
        if self.last_row_wins:
            (seen, known), _ = comparable_rows([came, self.rows], self._keys(names))
            there = set(seen)
            return [place for place, row in enumerate(known) if row not in there]
        early = self.rows if self.acknowledged is None else self.acknowledged
        (seen, known, before), tolerances = comparable_rows([came, self.rows, early], names)
        if Counter(as_known_rows(before, known, tolerances)) - Counter(known):
            return []
        left, places = Counter(as_known_rows(seen, known, tolerances)), []
        for place, row in enumerate(known):
            if left[row] > 0:
                left[row] -= 1
            else:
                places.append(place)
        return places

    def _names(self) -> list[str]:
        """The columns that are compared."""
        names = self.rows.column_names
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise UserReferenceError(
                f"your reference returned two columns with the name {twice[0]!r}; rename one of them"
            )
        compared = [name for name in names if name not in _HIDDEN]
        if not compared:
            has = f"it has only {', '.join(names)}" if names else "it has no columns"
            raise UserReferenceError(
                f"your reference returned no column that can be compared ({has}); return the columns of your "
                "function's outputs that must be checked"
            )
        return compared

    def _closed(self) -> list[bool]:
        """Of each row of the reference whether its window is closed."""
        try:
            ends = timestamps(self.rows, WINDOW_END)
        except CannotCompareError as error:
            raise UserReferenceError(f"your reference cannot be checked: {error}") from error
        return [end is not None and end <= self.closed * 1_000 for end in ends]

    def _whole(self, observed: pa.Table, names: list[str]) -> Account:
        """Append mode: every row as often as the reference has it."""
        closed = self.rows_due()
        (came, known, *rest), tolerances = comparable_rows(
            [observed, self.rows, *([] if closed is self.rows else [closed])], names
        )
        came = as_known_rows(came, known, tolerances)
        counted, right = Counter(came), Counter(known)
        due = Counter(as_known_rows(rest[0], known, tolerances)) if rest else right
        lost = sum((due - counted).values())
        extra = counted - right
        # a row that only the acknowledged events explain is not wrong either
        wrong = {row: n for row, n in extra.items() if row not in right and row not in due}
        excused = self._unfinished(observed, came, wrong)
        return Account(
            expected=len(known),
            observed=len(came),
            lost=lost,
            duplicate=sum(n for row, n in extra.items() if row in right),
            wrong=sum(wrong.values()) - excused,
            not_reached=max(0, sum((right - counted).values()) - lost),
            checked=True,
            compared=len(came) + lost,
        )

    def _unfinished(self, observed: pa.Table, came: Sequence[Row], wrong: dict[Row, int]) -> int:
        """How many of the wrong rows cannot be judged: not all events of their window were published."""
        if not wrong or self.complete is None or WINDOW_END not in self.rows.column_names:
            return 0
        known = {end for end in timestamps(self.rows, WINDOW_END) if end is not None and end > self.complete * 1_000}
        return sum(
            row in wrong and end in known for row, end in zip(came, timestamps(observed, WINDOW_END), strict=True)
        )

    def _updates(self, observed: pa.Table, names: list[str]) -> Account:
        """Update mode: the last row of each window and key."""
        keys = self._keys(names)
        (came, known, must), tolerances = comparable_rows([observed, self.rows, self.rows_due()], names)
        places = [names.index(name) for name in keys]
        right = {_at(row, places): row for row in known}
        if len(right) < len(known):
            raise UserReferenceError(
                f"your reference returned two rows with the same {' and '.join(keys)}: "
                "name all columns that distinguish its rows in engine.keys"
            )
        last = _last(came, places, observed)
        due = {_at(row, places): row for row in must}
        judged = WINDOW_END in names or self.acknowledged is None
        wrong = sum(
            judged and not any(rows_match(row, right.get(key, due[key]), tolerances) for row in last[key])
            for key in due
            if key in last
        )
        unknown = sum(_at(row, places) not in right and _at(row, places) not in due for row in came)
        return Account(
            expected=len(known),
            observed=len(came),
            lost=sum(key not in last for key in due),
            wrong=wrong + unknown,
            not_reached=sum(key not in last and key not in due for key in right),
            checked=True,
            compared=len(due) if judged else 0,
        )

    def check_keys(self, early: pa.Table) -> None:
        """Refuse default key columns that are no keys: what the reference returns for the first half of the events has
        rows whose keys are missing later."""
        names = self._names()
        keys = self._keys(names)
        try:
            (before, after), _ = comparable_rows([early, self.rows], keys)
        except (KeyError, CannotCompareError) as error:
            raise UserReferenceError(f"your reference cannot be checked: {error}") from error
        if {*before} - {*after}:
            raise UserReferenceError(
                f"the rows of your reference cannot be distinguished by {' and '.join(keys) or 'any column'}: the "
                "values change as more events come. Name the columns that your function groups by in engine.keys"
            )

    def _keys(self, names: list[str]) -> list[str]:
        absent = [name for name in self.keys if name not in names]
        if absent:
            raise UserReferenceError(
                f"engine.keys names {absent[0]!r}, which is no column of your reference; it has {', '.join(names)}"
            )
        return [name for name in names if name == WINDOW_END or name in self.keys]


def _at(row: Row, places: Sequence[int]) -> Row:
    return tuple(row[place] for place in places)


def _last(came: Sequence[Row], places: Sequence[int], observed: pa.Table) -> dict[Row, list[Row]]:
    """The rows that were emitted last of each key: one, or several of one moment if nothing shows their order.

    Rows of one key may be in several partitions of a topic, so the moment goes before the order of reading.
    """
    if EMITTED not in observed.column_names:
        return {_at(row, places): [row] for row in came}
    newest: dict[Row, tuple[int, list[Row]]] = {}
    for row, emitted in zip(came, observed[EMITTED].to_pylist(), strict=True):
        key = _at(row, places)
        before, rows = newest.get(key, (-1, []))
        if emitted > before:
            newest[key] = emitted, [row]
        elif emitted == before:
            rows.append(row)
    return {key: rows for key, (_, rows) in newest.items()}
