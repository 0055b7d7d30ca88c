"""Compares outputs with the reference result, row by row: which are lost, duplicate, wrong or late.

Both sides are columns of numbers or texts (``judge/compare_columns.py``). The output contract
of the workload names the columns that identify a row: the start of its window and its key, or the number of its event.
Every other column that both sides have is compared, for example ``count`` and ``max_due`` of an output that has them.

lost         the window is closed (all its events are acknowledged and the watermark is past its end), and no row came
not reached  no row came, and the window is not closed, because an overloaded system did not acknowledge its events
duplicate    a row that comes after another one with the same window and key, whatever its value is
wrong        a row whose value differs from the expected one, or whose window and key are not expected
late         a row that was emitted more than the allowed lateness after the end of its window plus the watermark

A row can be of several kinds: a second row with another value is both duplicate and wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.judge.compare_columns import Values, differing, shared_codes
from streamgauge.model.profile import Plan
from streamgauge.model.seconds import Account

Rows = npt.NDArray[np.int64]
Table = Mapping[str, Values]

EMITTED = "emitted"
"""Column of observed rows: their arrival in microseconds since the epoch. It is never compared."""


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """The counts and the row numbers: ``lost`` and ``absent`` are expected rows, the others observed rows."""

    account: Account
    lost: Rows
    duplicate: Rows
    wrong: Rows
    late: Rows
    absent: Rows
    """Expected rows that did not come, whether they were due or not."""


def closed_until(plan: Plan, origin: int, acknowledged: int, watermark: int) -> int:
    """The end of the last window whose outputs are due after ``acknowledged`` events, in microseconds.

    It is the watermark: the due time of the last acknowledged event minus the allowed delay. All events of a window
    that ends there are due before it, so they are acknowledged.
    """
    if acknowledged <= 0:
        return (origin - watermark) // 1_000
    return (origin + int(plan.due(acknowledged - 1))) // 1_000 - -(-watermark // 1_000)


def compare_outputs(
    expected: Table,
    observed: Table,
    *,
    window: int,
    closed: int | Rows,
    watermark: int = 0,
    lateness: int | None = None,
    last_row_wins: bool = False,
    all_acknowledged: bool = False,
    identity: Sequence[str],
    tolerance: float = 0.0,
) -> Comparison:
    """Compare the observed rows, in the order of their arrival, with the expected ones. Times are microseconds.

    ``closed`` comes from ``closed_until``, for all expected rows or for each. ``last_row_wins`` is update mode: earlier
    rows of a window and key are updates, not duplicates. The last one must be right when the window is closed, or when
    all events are acknowledged (``all_acknowledged``), even if the window is not closed. Floats may differ by the share
    ``tolerance``.
    """
    place, first = _match_rows(expected, observed, identity)
    answers = len(expected[identity[0]])
    due = _as_int64(expected[identity[0]]) + window <= closed
    if last_row_wins and all_acknowledged:
        due[:] = True
    arrived = np.zeros(answers, bool)
    arrived[place[place >= 0]] = True
    wrong = _mismatches(expected, observed, place, identity, tolerance)
    duplicate = ~first
    if last_row_wins:
        wrong &= _last_of_answer(place, answers) & np.append(due, True)[place]  # place −1: it has no expected row
        duplicate = np.zeros(len(place), bool)
    lost = np.flatnonzero(due & ~arrived)
    late = _late_rows(observed, identity[0], window + watermark, lateness)
    kinds = (np.flatnonzero(duplicate), np.flatnonzero(wrong), np.flatnonzero(late), np.flatnonzero(~arrived))
    return Comparison(
        Account(
            expected=answers,
            observed=len(place),
            lost=len(lost),
            duplicate=len(kinds[0]),
            wrong=len(kinds[1]),
            late=len(kinds[2]),
            not_reached=int(np.count_nonzero(~due & ~arrived)),
            checked=True,
            compared=int(np.count_nonzero(due if last_row_wins else due | arrived)),
        ),
        lost,
        *kinds,
    )


def _match_rows(expected: Table, observed: Table, identity: Sequence[str]) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """For each observed row the expected row with its identity (−1: none), and whether it is the first such row."""
    answers = len(expected[identity[0]])
    codes, *rest = (shared_codes(expected[name], observed[name]) for name in identity)
    for column in rest:
        both = codes * (int(column.max(initial=0)) + 1) + column
        codes = shared_codes(both[:answers], both[answers:])
    size = int(codes.max(initial=0)) + 1
    answer_of = np.full(size, -1, np.int64)
    answer_of[codes[:answers]] = np.arange(answers)
    if np.count_nonzero(answer_of >= 0) < answers:
        raise ValueError("the reference result has two rows of one window and key")
    observed_codes = codes[answers:]
    earliest = np.zeros(size, np.int64)
    # the last write of equal codes stays, so the rows are written in reverse
    earliest[observed_codes[::-1]] = np.arange(len(observed_codes))[::-1]
    return answer_of[observed_codes], earliest[observed_codes] == np.arange(len(observed_codes))


def _as_int64(column: Values) -> Rows:
    return np.asarray(column, np.int64)


def _mismatches(
    expected: Table, observed: Table, place: Rows, identity: Sequence[str], tolerance: float
) -> npt.NDArray[np.bool_]:
    """Observed rows with another value than the expected one, or without an expected row."""
    result: npt.NDArray[np.bool_] = place < 0
    for name, column in expected.items():
        if name in observed and name not in identity and name != EMITTED and len(column):
            result |= differing(column[place], observed[name], tolerance)
    return result


def _last_of_answer(place: Rows, answers: int) -> npt.NDArray[np.bool_]:
    """The last observed row of each expected row, and all rows without an expected row."""
    last = np.full(answers + 1, -1, np.int64)
    last[place] = np.arange(len(place))
    final: npt.NDArray[np.bool_] = last[place] == np.arange(len(place))
    return final | (place < 0)


def _late_rows(observed: Table, window_start: str, wait: int, lateness: int | None) -> npt.NDArray[np.bool_]:
    """Rows emitted more than ``lateness`` after their window could close; none if one of both is unknown."""
    if lateness is None or EMITTED not in observed:
        return np.zeros(len(observed[window_start]), bool)
    return _as_int64(observed[EMITTED]) - _as_int64(observed[window_start]) > wait + lateness
