"""Outputs against the reference answer, record by record and exactly: what is lost, double, wrong or late.

Both sides are columns of integers. A row is known by its window's start and its key; every other column that
both sides have is compared, so an output that also carries ``count`` and ``max_due`` is checked on them too.

lost         the window is closed (all its events are acknowledged and the watermark is past its end), and no row came
not reached  no row came, and the window is not closed: it lies beyond what an overloaded system has acknowledged
duplicate    a row that comes after another one of the same window and key, whether its value is the same or not
wrong        a row whose value differs from the answer, or whose window and key have no answer at all
late         a row that was emitted more than the allowed lateness after its window's end plus the watermark

Kinds do not exclude each other: a second row with another value is both duplicate and wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.model.seconds import Account

Rows = npt.NDArray[np.int64]
Table = Mapping[str, npt.NDArray[np.signedinteger]]

EMITTED = "emitted"
"""Column of observed rows: arrival in microseconds since the epoch. Never compared with the answer."""

IDENTITY = ("window_start", "gem_pack_id")
"""What tells rows apart: the window's start, then its key or keys."""


@dataclass(frozen=True, eq=False, slots=True)
class Comparison:
    """The account, and where to look: ``lost`` are rows of the answer, the others rows of what was observed."""

    account: Account
    lost: Rows
    duplicate: Rows
    wrong: Rows
    late: Rows
    absent: Rows
    """Rows of the answer that did not come, whether they had to or not."""


def closed_until(plan: Plan, origin: int, acknowledged: int, watermark: int) -> int:
    """End of the last window that must be out, in microseconds, once the first ``acknowledged`` events are done.

    It is the watermark itself: the due time of the last of those events less the delay that was allowed.
    An event of a window that ends there is due before it, so it is one of those events.
    """
    if acknowledged <= 0:
        return (origin - watermark) // 1_000
    return (origin + int(plan.due(acknowledged - 1))) // 1_000 - -(-watermark // 1_000)


def account(
    expected: Table,
    observed: Table,
    *,
    window: int,
    closed: int,
    watermark: int = 0,
    lateness: int | None = None,
    last_row_wins: bool = False,
    settled: bool = False,
    identity: Sequence[str] = IDENTITY,
) -> Account:
    """The counts of ``compare``."""
    return compare(
        expected,
        observed,
        window=window,
        closed=closed,
        watermark=watermark,
        lateness=lateness,
        last_row_wins=last_row_wins,
        settled=settled,
        identity=identity,
    ).account


def compare(
    expected: Table,
    observed: Table,
    *,
    window: int,
    closed: int,
    watermark: int = 0,
    lateness: int | None = None,
    last_row_wins: bool = False,
    settled: bool = False,
    identity: Sequence[str] = IDENTITY,
) -> Comparison:
    """Compare the observed rows, in the order of their arrival, with the answer. Times are microseconds.

    ``closed`` comes from ``closed_until``. ``last_row_wins`` is update mode: earlier rows of a window and key
    are updates, not duplicates, and the last one must be right once the window is closed, or once all events are
    acknowledged (``settled``): then no window has to close.
    """
    place, first = _places(expected, observed, identity)
    answers = len(expected[identity[0]])
    must = _whole(expected[identity[0]]) + window <= closed
    if last_row_wins and settled:
        must[:] = True
    came = np.zeros(answers, bool)
    came[place[place >= 0]] = True
    wrong = _differs(expected, observed, place, identity)
    duplicate = ~first
    if last_row_wins:
        wrong &= _is_last(place, answers) & np.append(must, True)[place]  # place −1: there is no such answer
        duplicate = np.zeros(len(place), bool)
    lost = np.flatnonzero(must & ~came)
    late = _late(observed, identity[0], window + watermark, lateness)
    kinds = (np.flatnonzero(duplicate), np.flatnonzero(wrong), np.flatnonzero(late), np.flatnonzero(~came))
    return Comparison(
        Account(
            expected=answers,
            observed=len(place),
            lost=len(lost),
            duplicate=len(kinds[0]),
            wrong=len(kinds[1]),
            late=len(kinds[2]),
            not_reached=int(np.count_nonzero(~must & ~came)),
            checked=True,
            compared=int(np.count_nonzero(must if last_row_wins else must | came)),
        ),
        lost,
        *kinds,
    )


def _places(expected: Table, observed: Table, identity: Sequence[str]) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """For each observed row its row of the answer (−1: none), and whether it is the first of its identity."""
    answers = len(expected[identity[0]])
    codes, *rest = (_small(np.concatenate([_whole(expected[name]), _whole(observed[name])])) for name in identity)
    for column in rest:
        codes = _small(codes * (int(column.max(initial=0)) + 1) + column)
    room = int(codes.max(initial=0)) + 1
    answer_of = np.full(room, -1, np.int64)
    answer_of[codes[:answers]] = np.arange(answers)
    if np.count_nonzero(answer_of >= 0) < answers:
        raise ValueError("the reference answer has two rows of one window and key")
    seen = codes[answers:]
    earliest = np.zeros(room, np.int64)
    earliest[seen[::-1]] = np.arange(len(seen))[::-1]  # of equal codes the last one written stays: the first row
    return answer_of[seen], earliest[seen] == np.arange(len(seen))


def _whole(column: npt.NDArray[np.signedinteger]) -> Rows:
    return np.asarray(column, np.int64)


def _small(values: Rows) -> Rows:
    """Equal numbers for equal values, none of them above four times their count."""
    if len(values) == 0:
        return values
    steps = values - values.min() if int(values.max()) - int(values.min()) < 1 << 63 else values
    steps = steps // max(1, int(np.gcd.reduce(steps)))  # windows begin at multiples of the slide
    if int(steps.min()) >= 0 and int(steps.max()) <= 4 * len(values):
        return steps
    ranks: Rows = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return ranks


def _differs(expected: Table, observed: Table, place: Rows, identity: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Rows whose value is not the answer's, or that have no answer."""
    result: npt.NDArray[np.bool_] = place < 0
    for name in expected:
        if name in observed and name not in identity and name != EMITTED and len(expected[name]):
            result |= np.asarray(expected[name])[place] != np.asarray(observed[name])
    return result


def _is_last(place: Rows, answers: int) -> npt.NDArray[np.bool_]:
    """Rows after which none of the same answer comes; rows without an answer all count."""
    last = np.full(answers + 1, -1, np.int64)
    last[place] = np.arange(len(place))
    final: npt.NDArray[np.bool_] = last[place] == np.arange(len(place))
    return final | (place < 0)


def _late(observed: Table, window_start: str, wait: int, lateness: int | None) -> npt.NDArray[np.bool_]:
    """Rows emitted more than ``lateness`` after their window could close; none where nobody asks or knows."""
    if lateness is None or EMITTED not in observed:
        return np.zeros(len(observed[window_start]), bool)
    return _whole(observed[EMITTED]) - _whole(observed[window_start]) > wait + lateness
