"""What the benches of error rates simulate: trials at known ratios to the boundary, and whole searches."""

import pytest

from benches.early_stop import BATCHES, CAPACITY, Case, boundary, looked_at, run
from benches.search_accuracy import HINTS, THETA, find
from streamgauge.model.measurement import VerdictKind


@pytest.mark.parametrize("case", [Case(60, 30, noise=0.0, interval=2), Case(120, noise=0.0, interval=1)])
def test_without_noise_every_trial_beside_the_boundary_of_micro_batches_is_decided_right(case: Case) -> None:
    assert 0.9 * CAPACITY < boundary(case.interval, case.duration) < CAPACITY / (1 - THETA)
    assert boundary(case.interval, case.duration) < boundary(case.interval, 2 * case.duration)
    for ratio, right in ((0.95, VerdictKind.SUSTAINED), (1.05, VerdictKind.OVERLOADED)):
        verdict, measured = run(case.trial(ratio, 1))
        assert verdict.kind is right
        assert measured.lag_late is not None
        assert (measured.lag_late / measured.load <= THETA) is (ratio < 1)


@pytest.mark.parametrize("case", BATCHES)
def test_the_rule_on_the_second_half_sees_trials_with_micro_batches(case: Case) -> None:
    _, measured = run(case.trial(1.0, 1), exact=not case.early)
    assert measured.lag_recent is not None
    assert measured.lag_recent.samples >= 5


def test_a_trial_with_early_looks_may_fail_at_half_of_its_length_and_has_two_looks_more() -> None:
    usual, early = Case(120, 60, interval=1), Case(120, 60, interval=1, early=True)
    assert early.looks == usual.looks + 2
    ended = [looked_at(case, 1.1, seed) for case in (usual, early) for seed in range(5)]
    assert {kind for kind, _ in ended} == {"OVERLOADED"}
    assert min(seconds for _, seconds in ended[:5]) >= 60 - usual.interval
    assert 30 - early.interval <= min(seconds for _, seconds in ended[5:]) < 50


def test_a_search_that_begins_with_a_hint_contains_the_truth() -> None:
    found = [find(seed, 0.05, hinted=True) for seed in range(12)]
    assert [result.seed for result in found if not result.contains] == []
    assert sum(result.width <= 0.05 * 1.0001 for result in found) >= 11
    assert HINTS[0] < 1 < HINTS[1]
