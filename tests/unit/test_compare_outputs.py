"""Outputs against the reference result: every difference is found, counted once, and called by its name."""

from collections.abc import Iterable
from functools import partial
from itertools import cycle

import numpy as np
import numpy.typing as npt
import pytest

from streamgauge.judge.outputs import closed_until, compare_outputs
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Account
from streamgauge.model.units import SECOND

Table = dict[str, npt.NDArray[np.int64]]

compare = partial(compare_outputs, identity=("window_start", "gem_pack_id"))

WINDOW = 8_000_000
FOREVER = 1 << 62


def answer(windows: int, keys: int) -> Table:
    """A reference result with one row for each window and key."""
    start = np.repeat(np.arange(windows, dtype=np.int64) * 4_000_000 + 1_700_000_000_000_000, keys)
    key = np.tile(np.arange(keys, dtype=np.int64), windows)
    total = np.arange(windows * keys, dtype=np.int64) * 7 + 99
    return {"window_start": start, "gem_pack_id": key, "sum": total, "count": total % 1000 + 1, "max_due": start + key}


def rows(table: Table, which: Iterable[int]) -> Table:
    """A copy of some rows, in the order asked for."""
    places = np.array(list(which), np.int64)
    return {name: column[places] for name, column in table.items()}


def check(
    expected: Table, observed: Table, closed: int = FOREVER, watermark: int = 0, lateness: int | None = None
) -> Account:
    return compare(expected, observed, window=WINDOW, closed=closed, watermark=watermark, lateness=lateness).account


def test_the_expected_rows_in_any_order_are_right() -> None:
    expected = answer(5, 10)
    shuffled = rows(expected, np.random.default_rng(1).permutation(50))
    assert check(expected, shuffled) == Account(expected=50, observed=50, checked=True)


def test_nothing_against_nothing_is_checked_and_empty() -> None:
    assert check(answer(0, 0), answer(0, 0)) == Account(checked=True)


def test_no_output_at_all_is_all_lost() -> None:
    assert check(answer(5, 10), answer(0, 0)) == Account(expected=50, lost=50, checked=True)


def test_output_where_none_is_expected_is_wrong() -> None:
    assert check(answer(0, 0), answer(1, 2)) == Account(observed=2, wrong=2, checked=True)
    assert compare(answer(0, 0), answer(1, 2), window=WINDOW, closed=0, last_row_wins=True).account.wrong == 2


@pytest.mark.parametrize("column", ["sum", "count", "max_due"])
def test_every_column_that_both_sides_have_is_compared(column: str) -> None:
    expected = answer(5, 10)
    observed = rows(expected, range(50))
    observed[column][17] += 1
    result = compare(expected, observed, window=WINDOW, closed=FOREVER)
    assert result.account == Account(expected=50, observed=50, wrong=1, checked=True)
    assert result.wrong.tolist() == [17]


def test_an_output_without_counts_is_judged_by_its_sums() -> None:
    expected = answer(5, 10)
    observed = {name: expected[name] for name in ("window_start", "gem_pack_id", "sum")}
    assert check(expected, observed) == Account(expected=50, observed=50, checked=True)


def test_an_output_of_32_bit_columns_is_the_same_output() -> None:
    expected = answer(5, 10)
    observed: dict[str, npt.NDArray[np.signedinteger]] = {
        **expected,
        "gem_pack_id": expected["gem_pack_id"].astype("i4"),
    }
    assert compare(expected, observed, window=WINDOW, closed=FOREVER).account.wrong == 0


@pytest.mark.parametrize(
    "stranger",
    [
        (1_700_000_000_000_001, 3),
        (1_700_000_000_000_000, 10),
        (1_600_000_000_000_000, 3),
        (-(1 << 63), -1),
        ((1 << 63) - 1, 3),
    ],
)
def test_a_window_or_key_that_never_existed_is_wrong(stranger: tuple[int, int]) -> None:
    expected = answer(5, 10)
    extra = {name: np.append(column, column[0]) for name, column in expected.items()}
    extra["window_start"][-1], extra["gem_pack_id"][-1] = stranger
    result = compare(expected, extra, window=WINDOW, closed=FOREVER)
    assert result.account == Account(expected=50, observed=51, wrong=1, checked=True)
    assert result.wrong.tolist() == [50]


def test_a_second_row_is_a_duplicate_and_with_another_value_also_wrong() -> None:
    expected = answer(5, 10)
    twice = rows(expected, [*range(50), 7])
    assert check(expected, twice) == Account(expected=50, observed=51, duplicate=1, checked=True)
    twice["sum"][-1] += 1
    result = compare(expected, twice, window=WINDOW, closed=FOREVER)
    assert result.account == Account(expected=50, observed=51, duplicate=1, wrong=1, checked=True)
    assert (result.duplicate.tolist(), result.wrong.tolist()) == ([50], [50])


def test_three_rows_for_one_are_two_duplicates() -> None:
    expected = answer(5, 10)
    assert check(expected, rows(expected, [*range(50), 7, 7])).duplicate == 2


def test_in_update_mode_the_last_row_counts() -> None:
    expected = answer(5, 10)
    updates = rows(expected, [*range(50), *range(50)])
    updates["sum"][:50] //= 2
    result = compare(expected, updates, window=WINDOW, closed=FOREVER, last_row_wins=True)
    assert result.account == Account(expected=50, observed=100, checked=True)
    updates["sum"][70] += 1
    assert compare(expected, updates, window=WINDOW, closed=FOREVER, last_row_wins=True).wrong.tolist() == [70]


def test_in_update_mode_an_open_window_may_still_be_growing() -> None:
    expected = answer(5, 10)
    growing = rows(expected, range(50))
    growing["sum"] = growing["sum"] - 1
    closed = int(expected["window_start"][0]) + WINDOW
    result = compare(expected, growing, window=WINDOW, closed=closed, last_row_wins=True)
    assert result.wrong.tolist() == list(range(10))


def test_in_update_mode_no_window_has_to_close_once_all_events_are_acknowledged() -> None:
    """Windows of three days run this way: none closes, and the last row of each window and key is checked."""
    expected = answer(5, 10)
    updates = rows(expected, [*range(50), *range(49)])
    updates["sum"][:49] //= 2
    settled = compare(expected, updates, window=WINDOW, closed=0, last_row_wins=True, all_acknowledged=True)
    assert settled.account == Account(expected=50, observed=99, checked=True, compared=50)
    updates["sum"][70] += 1
    kept = rows(updates, [n for n in range(99) if n not in (3, 53)])
    found = compare(expected, kept, window=WINDOW, closed=0, last_row_wins=True, all_acknowledged=True)
    assert (found.lost.tolist(), found.wrong.tolist()) == ([3], [68])
    running = compare(expected, kept, window=WINDOW, closed=0, last_row_wins=True)
    assert (running.account.lost, running.account.wrong, running.account.compared) == (0, 0, 0), "nothing is final yet"


def test_windows_beyond_the_acknowledged_position_are_not_reached_rather_than_lost() -> None:
    expected = answer(5, 10)
    third_end = int(expected["window_start"][20]) + WINDOW
    observed = rows(expected, range(19))  # all of the first, all but one of the second
    assert check(expected, observed, closed=third_end) == Account(
        expected=50, observed=19, lost=11, not_reached=20, checked=True
    )
    assert check(expected, observed, closed=third_end - 1).lost == 1


def test_a_row_is_late_once_its_window_could_have_closed_and_the_lateness_is_over() -> None:
    expected = answer(5, 10)
    observed = rows(expected, range(50))
    observed["emitted"] = observed["window_start"] + WINDOW + 500_000 + 100_000
    assert check(expected, observed, watermark=500_000, lateness=100_000).late == 0
    observed["emitted"][3] += 1
    result = compare(expected, observed, window=WINDOW, closed=FOREVER, watermark=500_000, lateness=100_000)
    assert result.late.tolist() == [3]
    assert check(expected, observed, watermark=500_000).late == 0


def test_a_window_is_closed_when_the_watermark_of_what_was_acknowledged_passes_it() -> None:
    plan = constant(1000).plan(20 * SECOND)
    origin = 1_700_000_000 * SECOND
    begin = origin // 1000
    assert closed_until(plan, origin, 8_001, 0) == begin + 8_000_000
    assert closed_until(plan, origin, 8_000, 0) == begin + 7_999_000
    assert closed_until(plan, origin, 8_001, 2 * SECOND) == begin + 6_000_000
    assert closed_until(plan, origin, 0, 0) == begin


def test_a_reference_result_with_two_rows_of_one_window_and_key_is_refused() -> None:
    with pytest.raises(ValueError, match="two rows"):
        check(rows(answer(5, 10), [*range(50), 0]), answer(5, 10))


def test_one_record_among_a_million_is_found_wherever_it_is() -> None:
    expected = answer(1000, 1000)
    random = np.random.default_rng(20180416)
    order = random.permuted(np.arange(1_000_000).reshape(1000, 1000), axis=1).ravel()  # window by window, any key first
    shuffled = {name: expected[name][order] for name in ("window_start", "gem_pack_id", "sum")}
    for place, kind in zip(random.integers(0, 1_000_000, 100).tolist(), cycle(("wrong", "lost", "duplicate"))):
        if kind == "wrong":
            observed = dict(shuffled, sum=shuffled["sum"].copy())
            observed["sum"][place] ^= 1 << int(random.integers(0, 40))
        elif kind == "lost":
            observed = {name: np.delete(column, place) for name, column in shuffled.items()}
        else:
            to = int(random.integers(0, 1_000_001))
            observed = {name: np.insert(column, to, column[place]) for name, column in shuffled.items()}
        counts = {"wrong": 0, "lost": 0, "duplicate": 0} | {kind: 1}
        rows_seen = len(observed["sum"])
        assert check(expected, observed) == Account(expected=1_000_000, observed=rows_seen, checked=True, **counts)
