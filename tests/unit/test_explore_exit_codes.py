"""Findings to exit codes: the worst of them is said."""

import pytest

from streamgauge.model.finding import Bound, Finding, Status
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.run.result import exit_code_of

GOOD = {1: Verdict(VerdictKind.SUSTAINED, ())}


def finding(status: Status, fails: Bound | None = None, engine: str = "a", holds: Bound | None = None) -> Finding:
    return Finding("", engine, "load", "rate", status, holds, fails, "")


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["bracketed"], 0),
        (["all-hold"], 0),
        (["unfinished"], 6),
        (["bracketed", "unfinished"], 6),
        (["unfinished", "none-holds"], 6),
        (["unfinished", "failed"], 4),
        (["none-holds"], 1),
        (["none-holds", "bracketed"], 0),
        (["none-holds", "none-holds"], 1),
        (["invalid", "none-holds"], 6),
        (["failed", "invalid"], 4),
    ],
)
def test_the_worst_status_decides(statuses: list[Status], code: int) -> None:
    assert exit_code_of([finding(s) for s in statuses], GOOD) == code


@pytest.mark.parametrize(
    ("holds", "fails", "code"),
    [
        (Bound(1.0, (1,)), Bound(2.0, (2,)), 0),
        (Bound(1.0, (1,)), None, 6),
        (None, Bound(2.0, (2,)), 6),
        (None, None, 6),
    ],
)
def test_case_6_a_search_without_both_bounds_gave_no_answer(
    holds: Bound | None, fails: Bound | None, code: int
) -> None:
    assert exit_code_of([finding("wide", fails, holds=holds)], GOOD) == code


@pytest.mark.parametrize(("holds", "code"), [(Bound(1.0, (1,)), 0), (None, 6)])
def test_case_6_a_measurement_that_stayed_undecided_gave_no_answer(holds: Bound | None, code: int) -> None:
    assert exit_code_of([finding("measured", holds=holds)], GOOD) == code


def test_an_engine_that_missed_its_objective_is_red_even_if_another_gave_no_answer() -> None:
    assert exit_code_of([finding("unfinished"), finding("none-holds", engine="b")], GOOD) == 1


def test_one_engine_that_holds_nowhere_is_enough_for_a_missed_objective() -> None:
    assert exit_code_of([finding("bracketed"), finding("none-holds", engine="b")], GOOD) == 1


def test_an_invalid_measurement_ends_with_3_only_if_no_trial_was_decided() -> None:
    invalid = Verdict(VerdictKind.INVALID, ())
    assert exit_code_of([finding("invalid")], {1: invalid}) == 3
    assert exit_code_of([finding("invalid")], {1: invalid, **{2: GOOD[1]}}) == 6


def test_without_anything_published_nothing_was_measured() -> None:
    assert exit_code_of([finding("unfinished")], {}) == 5
    assert exit_code_of([finding("invalid")], {}) == 5


@pytest.mark.parametrize(("kind", "code"), [(VerdictKind.OVERLOADED, 1), (VerdictKind.FAILED, 4)])
def test_a_measured_load_that_does_not_pass_is_missed_and_a_crash_is_the_systems(kind: VerdictKind, code: int) -> None:
    found = finding("measured", Bound(10.0, (1,)))
    assert exit_code_of([found], {1: Verdict(kind, ())}) == code


def test_a_crash_above_a_measured_load_that_holds_is_an_overload() -> None:
    found = [finding("measured", holds=Bound(10.0, (1,))), finding("measured", Bound(20.0, (2,)))]
    assert exit_code_of(found, {**GOOD, 2: Verdict(VerdictKind.FAILED, ())}) == 1
