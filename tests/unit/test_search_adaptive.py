"""Adaptive on a range of the load: overload once, look near the limit, then prove both ends at full length."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from search_replay import experiment, found, only

from benches.search_accuracy import find
from streamgauge.model.experiment import Span
from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.trial import TrialRequest
from streamgauge.search.adaptive import pool_near
from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import summarise
from streamgauge.search.supported import RESOLUTION

TRUTH = 730_000.0
RANGE = Span(between=(10_000.0, 5_000_000.0))
QUESTION = experiment(span=RANGE, strategy="adaptive")
Answer = Callable[[TrialRequest], Verdict]


def verdict_with(kind: VerdictKind, estimate: Estimate | None = None) -> Verdict:
    return Verdict(kind, ("the queue grows by so many",), estimate=estimate)


def judge(truth: float = TRUTH, sees: float = 1.0, error: float = 0.01, unclear: float = 0.0) -> Answer:
    """A judge that is right, sees the boundary at ``sees`` × truth from above, and is unclear very close to it."""

    def answer(request: TrialRequest) -> Verdict:
        estimate = Estimate(truth * sees, truth * error) if request.value > truth else None
        if abs(request.value / truth - 1) < unclear:
            return verdict_with(VerdictKind.UNDECIDED, estimate)
        return verdict_with(VerdictKind.SUSTAINED if request.value <= truth else VerdictKind.OVERLOADED, estimate)

    return answer


def requested(past: list[TrialResult]) -> list[tuple[str, float]]:
    return [(t.ask.purpose, t.ask.value) for t in past]


def test_four_trials_find_a_boundary_that_the_first_one_sees() -> None:
    (finding,), past = found(QUESTION, judge())
    assert [purpose for purpose, _ in requested(past)] == ["estimate", "estimate", "confirm", "confirm"]
    assert finding.status == "bracketed"
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= TRUTH < finding.fails.value
    assert finding.width is not None
    assert finding.width <= 0.05


def test_the_first_trial_overloads_at_the_highest_value() -> None:
    _, past = found(QUESTION, judge())
    assert requested(past)[0] == ("estimate", 5_000_000.0)


def test_the_second_trial_looks_how_the_system_behaves_just_above_the_estimate() -> None:
    _, past = found(QUESTION, judge())
    purpose, value = requested(past)[1]
    assert purpose == "estimate"
    assert value == pytest.approx(TRUTH * 1.1, rel=0.001)


def test_a_first_trial_near_the_boundary_needs_no_second() -> None:
    _, past = found(experiment(span=Span(between=(10_000.0, TRUTH * 1.2)), strategy="adaptive"), judge())
    assert [purpose for purpose, _ in requested(past)] == ["estimate", "confirm", "confirm"]


def test_both_ends_are_proven_half_a_precision_from_the_estimate() -> None:
    _, past = found(QUESTION, judge(error=0.005))
    (_, above), (_, below) = requested(past)[2:]
    assert above == pytest.approx(TRUTH * 1.05**0.5, rel=0.001)
    assert below == pytest.approx(TRUTH / 1.05**0.5, rel=0.001)


@pytest.mark.parametrize(("precision", "error"), [(0.2, 0.01), (0.05, 0.01), (0.02, 0.001)])
def test_the_bounds_are_as_close_as_the_experiment_requests(precision: float, error: float) -> None:
    finding = only(experiment(span=RANGE, strategy="adaptive", precision=precision), judge(error=error))
    assert finding.status == "bracketed"
    assert finding.width is not None
    assert precision / 3 < finding.width <= precision * 1.0001


def test_a_noisy_estimate_is_made_sharper_by_measuring_a_failing_load_again() -> None:
    """With an error of 1.8 % after one trial two bounds are 7 % apart; further trials make the error less."""
    (finding,), past = found(QUESTION, judge(error=0.018))
    confirmed = [t.ask.value for t in past if t.ask.purpose == "confirm"]
    assert finding.status == "bracketed"
    assert len(confirmed) > len(set(confirmed))
    assert len(past) <= 12


@pytest.mark.parametrize("precision", [0.001, 0.005, 0.01])
def test_bounds_stay_wider_than_requested_where_the_trials_do_not_support_them_and_have_the_reason(
    precision: float,
) -> None:
    (finding,), past = found(experiment(span=RANGE, strategy="adaptive", precision=precision), judge())
    assert finding.status == "wide"
    assert finding.width is not None
    assert RESOLUTION < finding.width < 0.06
    assert any("search.precision is" in note and "Increase trial.duration" in note for note in finding.notes)
    assert len(past) <= 8


@pytest.mark.parametrize("precision", [0.001, 0.01])
def test_bounds_that_are_requested_too_close_contain_the_true_limit_all_the_same(precision: float) -> None:
    """Before, all of ten such results missed the truth: of many trials beside the limit, some are wrong."""
    results = [find(seed, 0.05, precision) for seed in range(20)]
    assert all(result.contains for result in results)
    assert all(result.notes for result in results)


def test_both_ends_are_proven_by_full_length_trials() -> None:
    (finding,), past = found(QUESTION, judge())
    purposes = {t.trial: t.ask.purpose for t in past}
    for end in (finding.holds, finding.fails):
        assert end is not None
        assert {purposes[number] for number in end.trials} == {"confirm"}


@pytest.mark.parametrize("sees", [0.5, 0.8, 0.93, 0.97, 1.03, 1.07, 1.3, 2.0])
def test_a_wrong_estimate_costs_trials_and_not_correctness(sees: float) -> None:
    (finding,), past = found(QUESTION, judge(sees=sees))
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= TRUTH < finding.fails.value
    assert len(past) <= 20


def test_an_estimate_that_full_length_trials_refute_is_given_up_for_halving() -> None:
    # the lag would hold up to ten times the load at which a latency objective breaks
    (finding,), past = found(QUESTION, judge(truth=70_000.0, sees=10.0))
    assert finding.status == "bracketed"
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= 70_000 < finding.fails.value
    assert len(past) <= 20


def test_if_the_noise_allows_no_answer_the_bounds_move_apart_and_the_finding_has_the_reason() -> None:
    (finding,), past = found(QUESTION, judge(unclear=0.04))
    assert finding.status == "wide"
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= TRUTH / 1.04 < TRUTH * 1.04 <= finding.fails.value
    assert any("too noisy to decide" in note for note in (*finding.notes, finding.sentence))
    assert len(past) < 15


def test_when_the_highest_value_passes_only_its_confirmation_is_requested() -> None:
    finding, past = only(QUESTION, judge(1e9)), found(QUESTION, judge(1e9))[1]
    assert finding.status == "all-hold"
    assert requested(past) == [("estimate", 5_000_000.0), ("confirm", 5_000_000.0)]


def test_without_any_estimate_the_search_still_finds_the_boundary() -> None:
    def blind(request: TrialRequest) -> Verdict:
        return verdict_with(VerdictKind.SUSTAINED if request.value <= TRUTH else VerdictKind.OVERLOADED)

    finding = only(QUESTION, blind)
    assert finding.status == "bracketed"
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= TRUTH < finding.fails.value


def test_a_verdict_that_contradicts_a_precise_estimate_is_measured_again() -> None:
    first: list[float] = []

    def once_wrong(request: TrialRequest) -> Verdict:
        right = judge(error=0.002)(request)
        if request.purpose == "confirm" and request.value > TRUTH and not first:
            first.append(request.value)
            return verdict_with(VerdictKind.SUSTAINED)
        return right

    (finding,), past = found(QUESTION, once_wrong)
    assert [t.ask.value for t in past if t.ask.purpose == "confirm"].count(first[0]) >= 2
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= TRUTH < finding.fails.value


def known_of(*estimates: tuple[float, float, float]) -> tuple[Estimate | None, bool]:
    """Pool of estimates: (load of the trial, boundary, error) each."""
    axis = SearchAxis("load", "rate", True, 10_000.0, 5_000_000.0)
    results = [
        TrialResult(
            TrialRequest("load", load, "estimate"),
            verdict_with(VerdictKind.OVERLOADED, Estimate(boundary, error)),
            i + 1,
        )
        for i, (load, boundary, error) in enumerate(estimates)
    ]
    return pool_near(summarise(axis, results))


def test_estimates_are_pooled_by_their_precision() -> None:
    pooled, near = known_of((110.0, 100.0, 1.0), (111.0, 103.0, 2.0))
    assert near
    assert pooled is not None
    assert pooled.boundary == pytest.approx((100 * 4 + 103) / 5)
    assert pooled.error == pytest.approx((1 + 1 / 4) ** -0.5)


def test_an_estimate_from_near_the_boundary_silences_those_from_far_beyond_it() -> None:
    pooled, near = known_of((5000.0, 60.0, 0.1), (110.0, 100.0, 1.0))
    assert near
    assert pooled == Estimate(100.0, 1.0)


def test_estimates_from_far_beyond_the_boundary_are_better_than_none() -> None:
    pooled, near = known_of((5000.0, 60.0, 1.0))
    assert not near
    assert pooled is not None
    assert pooled.boundary == pytest.approx(60.0)


def test_an_error_of_zero_does_not_silence_all_others() -> None:
    pooled, _ = known_of((110.0, 100.0, 0.0), (110.0, 100.0, 0.1), (110.0, 103.0, 0.1))
    assert pooled is not None
    assert pooled.boundary == pytest.approx(101.0, rel=1e-3)


def test_without_estimates_there_is_no_pool() -> None:
    assert known_of() == (None, False)
    assert known_of((110.0, -5.0, 1.0)) == (None, False)


def test_however_wrong_the_estimates_are_the_search_ends_inside_its_range_and_agrees_with_its_verdicts() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        truth = 10 ** rng.uniform(4.1, 6.6)

        def answer(request: TrialRequest, rng: random.Random = rng, truth: float = truth) -> Verdict:
            seen = Estimate(truth * rng.uniform(0.3, 3), truth * rng.uniform(0, 0.2)) if rng.random() < 0.7 else None
            if rng.random() < 0.1:
                return verdict_with(VerdictKind.UNDECIDED, seen)
            return verdict_with(VerdictKind.SUSTAINED if request.value <= truth else VerdictKind.OVERLOADED, seen)

        (finding,), past = found(QUESTION, answer)
        assert all(10_000 <= t.ask.value <= 5_000_000 for t in past), seed
        assert len(past) < 80, seed
        assert finding.holds is None or finding.holds.value <= truth, seed
        assert finding.fails is None or finding.fails.value > truth, seed


def test_bounds_of_random_simulated_engines_contain_the_true_limit() -> None:
    results = [find(seed, 0.05) for seed in range(200)]
    missed = [r.seed for r in results if not r.contains]
    wide = [r.seed for r in results if r.width > 0.05 * 1.0001]
    assert len(missed) <= 2, f"bounds without the true limit: seeds {missed}"
    assert len(wide) <= 2, f"bounds wider than 5 %: seeds {wide}"
    assert np.mean([r.trials for r in results]) < 8
