"""A user's function and its reference: how they are loaded, and how outputs are compared."""

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.engines.contract import UserCodeFailed
from streamgauge.engines.spark.user_code import FunctionNotFound, find_problem, load_function, load_reference
from streamgauge.run.trial.custom_result import CustomResult, UserReferenceError
from streamgauge.run.trial.reference_function import call_reference

STAMP = pa.timestamp("us", "UTC")


def rows(*values: tuple[int, int, int]) -> pa.Table:
    ends, keys, counts = (list(column) for column in zip(*values, strict=True)) if values else ([], [], [])
    return pa.table({"window_end": pa.array(ends, STAMP), "user_id": keys, "count": counts})


ANSWER = CustomResult(rows((10, 1, 5), (10, 2, 6), (20, 1, 7)), closed=10)


def test_outputs_that_equal_the_reference_are_neither_lost_nor_duplicate_nor_wrong() -> None:
    account = ANSWER.account(rows((10, 1, 5), (10, 2, 6)))
    assert (account.lost, account.duplicate, account.wrong, account.not_reached) == (0, 0, 0, 1)
    assert account.checked


def test_a_window_that_is_not_closed_may_be_out_or_not() -> None:
    account = ANSWER.account(rows((10, 1, 5), (10, 2, 6), (20, 1, 7)))
    assert (account.lost, account.wrong) == (0, 0)


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ([(10, 1, 5)], (1, 0, 0)),
        ([(10, 1, 5), (10, 2, 6), (10, 2, 6)], (0, 1, 0)),
        ([(10, 1, 5), (10, 2, 9)], (1, 0, 1)),
        ([], (2, 0, 0)),
    ],
)
def test_a_row_is_lost_duplicate_or_wrong(observed: list[tuple[int, int, int]], expected: tuple[int, int, int]) -> None:
    account = ANSWER.account(rows(*observed))
    assert (account.lost, account.duplicate, account.wrong) == expected


def test_no_output_at_all_is_all_lost() -> None:
    assert ANSWER.account(None).lost == 2


def test_without_windows_every_row_must_be_out() -> None:
    answer = CustomResult(pa.table({"user_id": [1, 2, 2]}), closed=0)
    assert answer.account(pa.table({"user_id": pa.array([2, 1, 2], pa.int32())})).lost == 0
    assert answer.account(pa.table({"user_id": [2, 1]})).lost == 1


def test_a_reference_with_a_column_that_is_never_output_is_refused() -> None:
    with pytest.raises(UserReferenceError, match="'count', which your function does not output"):
        ANSWER.account(rows((10, 1, 5)).drop_columns(["count"]))


def test_what_a_reference_raises_is_an_error_of_the_user() -> None:
    def broken(events: pa.Table, params: dict[str, Any]) -> pa.Table:
        raise KeyError("no such pack")

    with pytest.raises(UserReferenceError, match="your reference failed: KeyError: 'no such pack'"):
        call_reference(broken, rows(), {})


def test_a_function_is_loaded_from_its_file_and_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("TWO = 2\n")
    (tmp_path / "my_job.py").write_text("from beside import TWO\n\ndef orders(x):\n    return TWO * x\n")
    assert find_problem(f"{tmp_path}/my_job.py:orders", "pipeline") == ""
    assert load_function(f"{tmp_path}/my_job.py:orders")(21) == 42


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("orders", "is not a function; write it like my_job.py:orders"),
        ("nowhere.py:orders", "there is no file nowhere.py"),
        ("{}/broken.py:orders", "line 1: "),
        ("{}/other.py:orders", "defines no orders"),
    ],
)
def test_a_wrong_name_is_found_before_the_first_trial(tmp_path: Path, named: str, said: str) -> None:
    (tmp_path / "broken.py").write_text("def orders(:\n")
    (tmp_path / "other.py").write_text("def payments(x):\n    return x\n")
    assert said in find_problem(named.format(tmp_path), "pipeline")


def test_a_file_without_the_function_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "my_job.py").write_text("orders = 3\n")
    with pytest.raises(FunctionNotFound, match="has no function orders"):
        load_function(f"{tmp_path}/my_job.py:orders")


def test_a_dataclass_with_annotations_as_texts_can_be_loaded(tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n\n"
    text += "@dataclass\nclass Order:\n    price: int\n\n\ndef orders(x):\n    return Order(x).price\n"
    (tmp_path / "dataclass_job.py").write_text(text)
    assert load_function(f"{tmp_path}/dataclass_job.py:orders")(7) == 7


def test_a_function_can_import_its_neighbours_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "late_neighbour.py").write_text("TWO = 2\n")
    (tmp_path / "late_job.py").write_text("def orders(x):\n    from late_neighbour import TWO\n    return TWO * x\n")
    before = list(sys.path)
    assert load_function(f"{tmp_path}/late_job.py:orders")(21) == 42
    assert sys.path == before


def test_a_file_that_is_named_like_a_loaded_module_takes_nothing_away_from_it(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("def orders(x):\n    return x\n")
    assert load_function(f"{tmp_path}/json.py:orders")(3) == 3
    assert sys.modules["json"].dumps({}) == "{}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_module_at_all\n", r"cannot be loaded: ModuleNotFoundError at .*job\.py:1: No module named"),
        ("import sys\n\nsys.exit(3)\n", r"cannot be loaded: SystemExit at .*job\.py:3: 3"),
        ("orders = 3\n", r"cannot be loaded: FunctionNotFound: .* has no function orders"),
    ],
)
def test_a_reference_whose_file_cannot_be_loaded_is_an_error_of_the_user(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "bad_job.py").write_text(text)
    with pytest.raises(UserCodeFailed, match=said):
        load_reference(f"{tmp_path}/bad_job.py:orders")
    assert "bad_job" not in sys.modules or text.startswith("orders")


def test_a_reference_that_calls_sys_exit_is_an_error_of_the_user() -> None:
    def leaves(events: pa.Table, params: dict[str, Any]) -> pa.Table:
        sys.exit(3)

    with pytest.raises(UserReferenceError, match="your reference failed: SystemExit: 3"):
        call_reference(leaves, rows(), {})
