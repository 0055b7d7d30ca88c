"""The outputs of a user's function against the user's reference: values, types, windows, update mode."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.run.trial.custom_result import CustomResult, UserReferenceError

STAMP = pa.timestamp("us", "UTC")
NAN = float("nan")


def faults(reference: pa.Table, observed: pa.Table, closed: int = 100) -> tuple[int, int, int]:
    """Lost, duplicate and wrong outputs."""
    account = CustomResult(reference, closed).account(observed)
    assert account.checked
    return account.lost, account.duplicate, account.wrong


def windows(*values: tuple[int, int, int]) -> pa.Table:
    ends, keys, counts = (list(column) for column in zip(*values, strict=True)) if values else ([], [], [])
    return pa.table({"window_end": pa.array(ends, STAMP), "user_id": keys, "count": counts})


@pytest.mark.parametrize(
    ("reference", "observed"),
    [
        (pa.array([NAN, 1.0]), pa.array([1.0, NAN])),
        (pa.array([0.1], pa.float64()), pa.array([0.1], pa.float32())),
        (pa.array([0.1], pa.float32()), pa.array([0.1], pa.float64())),
        (pa.array([0.1 + 0.2]), pa.array([0.3])),
        (pa.array([1e15]), pa.array([1e15 * (1 + 5e-10)])),
        (pa.array([float("inf"), -float("inf")]), pa.array([-float("inf"), float("inf")])),
        (pa.array([None, 2.0]), pa.array([2.0, None])),
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([3], pa.uint8()), pa.array([3], pa.int64())),
        (pa.array([2**63 + 5], pa.uint64()), pa.array([Decimal(2**63 + 5)], pa.decimal128(20, 0))),
        (pa.array([3]), pa.array([3.0])),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), pa.array([Decimal("1.500")], pa.decimal128(9, 3))),
        (pa.array([Decimal("0.10")], pa.decimal128(5, 2)), pa.array([0.1])),
        (pa.array([1_000_000], pa.timestamp("ns")), pa.array([1_000], STAMP)),
        (pa.array([1], pa.timestamp("s")), pa.array([1_000_000], STAMP)),
        (pa.array([date(2026, 1, 1)], pa.date64()), pa.array([date(2026, 1, 1)], pa.date32())),
        (pa.array(["a", None]).dictionary_encode(), pa.array([None, "a"], pa.large_string())),
        (pa.array([[1, 2], None, []], pa.list_(pa.int64())), pa.array([[], [1, 2], None], pa.list_(pa.int32()))),
        (pa.array([[0.1]], pa.list_(pa.float64())), pa.array([[0.1]], pa.list_(pa.float32()))),
        (pa.array([{"a": 1, "b": NAN}, None]), pa.array([None, {"b": NAN, "a": 1}])),
        (pa.array([[("a", 1), ("b", 2)]], pa.map_(pa.string(), pa.int64())),) * 2,
        (pa.array([b"x", True and b"y"]), pa.array([b"y", b"x"], pa.large_binary())),
        (pa.array([True, False]), pa.array([False, True])),
        (pa.array([None, None]), pa.array([None, None], pa.int64())),
    ],
)
def test_equal_values_are_equal_whatever_their_type(reference: pa.Array, observed: pa.Array) -> None:
    assert faults(pa.table({"value": reference}), pa.table({"value": observed})) == (0, 0, 0)


@pytest.mark.parametrize(
    ("reference", "observed"),
    [
        (pa.array([0.1]), pa.array([0.1 * (1 + 3e-9)])),
        (pa.array([0.1], pa.float32()), pa.array([0.1 * (1 + 1e-6)])),
        (pa.array([NAN]), pa.array([0.0])),
        (pa.array([NAN]), pa.array([None], pa.float64())),
        (pa.array([float("inf")]), pa.array([1e308])),
        (pa.array([0]), pa.array([None], pa.int64())),
        (pa.array([2**62]), pa.array([2**62 + 1])),
        (pa.array([1_000], pa.timestamp("ns")), pa.array([2], STAMP)),
        (pa.array([[1, 2]]), pa.array([[2, 1]])),
        (pa.array([[0.1]]), pa.array([[0.2]])),
        (pa.array([{"a": 1}]), pa.array([{"a": 2}])),
        (pa.array(["3"]), pa.array([3])),
    ],
)
def test_different_values_are_one_lost_and_one_wrong(reference: pa.Array, observed: pa.Array) -> None:
    assert faults(pa.table({"value": reference}), pa.table({"value": observed})) == (1, 0, 1)


def test_rows_that_differ_by_rounding_are_matched_one_to_one() -> None:
    near = 1.0 + 1e-10
    reference = pa.table({"a": [1.0, near, 1.0], "b": [5.0, 3.0, 3.0]})
    observed = pa.table({"a": [near, 1.0, 1.0 - 1e-10], "b": [5.0, 3.0, 3.0]})
    assert faults(reference, observed) == (0, 0, 0)
    assert faults(reference, pa.concat_tables([observed, observed.slice(0, 1)])) == (0, 1, 0)


def test_ten_thousand_close_floats_hide_no_wrong_one() -> None:
    values = np.linspace(0.0, 1e-6, 10_000)
    moved = values.copy()
    moved[5_000] += 2e-7
    assert faults(pa.table({"v": values}), pa.table({"v": values * (1 + 1e-12)})) == (0, 0, 0)
    assert faults(pa.table({"v": values}), pa.table({"v": moved}))[1:] != (0, 0)


# which rows must be there, and which may be


def test_rows_of_events_that_were_published_and_not_acknowledged_may_come_or_not() -> None:
    published, acknowledged = pa.table({"user_id": [1, 2, 2, 3]}), pa.table({"user_id": [1, 2]})
    answer = CustomResult(published, closed=0, acknowledged=acknowledged)
    for came in ([1, 2], [2, 1, 2], [1, 2, 2, 3]):
        account = answer.account(pa.table({"user_id": came}))
        assert (account.lost, account.duplicate, account.wrong) == (0, 0, 0), came
        assert account.not_reached == 4 - len(came)
    account = answer.account(pa.table({"user_id": [1, 3, 4]}))
    assert (account.lost, account.wrong) == (1, 1)


def test_a_window_beyond_what_was_acknowledged_may_be_out_but_must_be_right() -> None:
    answer = CustomResult(windows((10, 1, 5), (20, 1, 7)), closed=10, complete=25)
    right, wrong = (answer.account(windows((10, 1, 5), (20, 1, n))) for n in (7, 6))
    assert (right.lost, right.wrong, right.not_reached) == (0, 0, 0)
    assert (wrong.lost, wrong.wrong) == (0, 1)


def test_the_last_window_is_not_judged_because_not_all_its_events_were_published() -> None:
    answer = CustomResult(windows((10, 1, 5), (20, 1, 7)), closed=10, complete=15)
    assert answer.account(windows((10, 1, 5), (20, 1, 6))).wrong == 0
    assert answer.account(windows((10, 1, 5), (30, 1, 6))).wrong == 1, "a window of which no event was published"


# update mode


UPDATES = CustomResult(windows((10, 1, 5), (10, 2, 6), (20, 1, 7)), closed=10, last_row_wins=True, keys=("user_id",))


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ([(10, 1, 1), (10, 2, 6), (10, 1, 5)], (0, 0, 0)),
        ([(10, 1, 5), (10, 2, 6), (20, 1, 3)], (0, 0, 0)),
        ([(10, 1, 5), (10, 2, 6), (10, 1, 4)], (0, 0, 1)),
        ([(10, 1, 5), (10, 1, 5), (10, 2, 6)], (0, 0, 0)),
        ([(10, 1, 5)], (1, 0, 0)),
        ([(10, 1, 5), (10, 2, 6), (10, 3, 1)], (0, 0, 1)),
        ([], (2, 0, 0)),
    ],
)
def test_in_update_mode_the_last_row_of_each_key_must_be_right(
    observed: list[tuple[int, int, int]], expected: tuple[int, int, int]
) -> None:
    account = UPDATES.account(windows(*observed))
    assert (account.lost, account.duplicate, account.wrong) == expected


def test_in_update_mode_the_last_row_is_the_one_that_was_emitted_last() -> None:
    observed = windows((10, 1, 5), (10, 1, 2), (10, 2, 6))
    later = observed.append_column("emitted_us", pa.array([9, 8, 8]))
    assert UPDATES.account(later).wrong == 0
    assert UPDATES.account(observed.append_column("emitted_us", pa.array([8, 9, 8]))).wrong == 1


def test_in_update_mode_rows_without_windows_are_judged_once_all_is_acknowledged() -> None:
    final, early = pa.table({"user_id": [1, 2], "n": [9, 4]}), pa.table({"user_id": [1], "n": [5]})
    drained = CustomResult(final, closed=0, last_row_wins=True, keys=("user_id",))
    behind = CustomResult(final, closed=0, acknowledged=early, last_row_wins=True, keys=("user_id",))
    between = pa.table({"user_id": [1, 1], "n": [2, 7]})
    assert (drained.account(between).lost, drained.account(between).wrong) == (1, 1)
    assert (behind.account(between).lost, behind.account(between).wrong) == (0, 0)


def test_a_reference_with_two_rows_of_one_key_is_refused_with_the_option_to_set() -> None:
    answer = CustomResult(windows((10, 1, 5), (10, 1, 6)), closed=10, last_row_wins=True, keys=("user_id",))
    with pytest.raises(UserReferenceError, match=r"two rows with the same window_end and user_id.*engine\.keys"):
        answer.account(windows((10, 1, 5)))


def test_a_key_that_the_reference_does_not_have_is_refused() -> None:
    answer = CustomResult(windows((10, 1, 5)), closed=10, last_row_wins=True, keys=("pack",))
    with pytest.raises(UserReferenceError, match=r"engine\.keys names 'pack'.*window_end, user_id, count"):
        answer.account(windows((10, 1, 5)))


# what a reference may return


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (pa.table({}), "no column that can be compared"),
        (pa.table({"max_due": pa.array([1], STAMP)}), "no column that can be compared"),
        (pa.table([[1], [2]], names=["n", "n"]), "two columns with the name 'n'"),
        (pa.table({"window_end": ["noon"]}), "'window_end' is string.*timestamp"),
        (pa.table({"window_end": pa.array([2**63 + 5], pa.uint64())}), "'window_end' of the type uint64.*timestamp"),
        (
            pa.table({"window_end": pa.array([86_400_001]).cast(pa.date64())}),
            "'window_end' of the type date64.*timestamp",
        ),
    ],
)
def test_a_reference_that_cannot_be_compared_is_an_error_of_the_user(table: pa.Table, said: str) -> None:
    with pytest.raises(UserReferenceError, match=said):
        CustomResult(table, closed=10).account(windows((10, 1, 5)))


def test_windows_that_end_between_microseconds_are_required_once_they_are_closed() -> None:
    reference = pa.table({"window_end": pa.array([9_999, 10_001], pa.timestamp("ns"))})
    assert len(CustomResult(reference, closed=10).rows_due()) == 1
    assert len(CustomResult(reference, closed=11).rows_due()) == 2


def test_a_reference_without_rows_requires_nothing_and_allows_nothing() -> None:
    nothing = CustomResult(windows().cast(windows((1, 1, 1)).schema), closed=10)
    assert nothing.account(None).lost == 0
    assert nothing.account(windows((10, 1, 5))).wrong == 1


def test_a_reference_whose_columns_depend_on_the_events_is_an_error_of_the_user() -> None:
    answer = CustomResult(pa.table({"user_id": [1], "n": [2]}), closed=0, acknowledged=pa.table({"user_id": [1]}))
    with pytest.raises(UserReferenceError, match="other columns for the acknowledged events"):
        answer.account(pa.table({"user_id": [1], "n": [2]}))
