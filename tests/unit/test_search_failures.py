"""What the search does when trials are invalid or undecided, or contradict each other."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from search_replay import (
    CRASHES,
    FAILS,
    FALSIFIED,
    HOLDS,
    INVALID,
    STRATEGIES,
    UNDECIDED,
    Answer,
    experiment,
    found,
    only,
    play,
    verdict,
)

from streamgauge.model.experiment import Span, Strategy
from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Verdict
from streamgauge.model.trial import TrialRequest
from streamgauge.run.result import exit_code_of
from streamgauge.search import build

RANGE = Span(between=(10_000.0, 5_000_000.0))


def scripted(*answers: tuple[float, str, Verdict], otherwise: Answer) -> Answer:
    """Answers by value and purpose first, then by the truth."""
    script = {(value, purpose): said for value, purpose, said in answers}
    return lambda request: script.get((request.value, request.purpose)) or otherwise(request)


def holds_up_to(boundary: float) -> Answer:
    return lambda request: verdict(request.value <= boundary)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("span", [Span(values=(1.0, 2.0, 3.0, 4.0, 5.0)), RANGE])
def test_invalid_trials_are_repeated_and_never_steer(strategy: Strategy, span: Span) -> None:
    boundary = 3.5 if span.values else 700_000
    question = experiment(span=span, strategy=strategy)
    calm, steady = found(question, holds_up_to(boundary))
    storm: list[TrialRequest] = []

    def stormy(request: TrialRequest) -> Verdict:
        storm.append(request)
        return INVALID if len(storm) % 3 else verdict(request.value <= boundary)

    findings, past = found(question, stormy)
    assert [t.ask for t in past if t.verdict is not INVALID] == [t.ask for t in steady]
    assert [f.holds and f.holds.value for f in findings] == [f.holds and f.holds.value for f in calm]
    assert findings[0].trials == len(past) == 3 * len(steady)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_values_in_a_row_that_stay_invalid_end_the_search_and_keep_what_is_known(strategy: Strategy) -> None:
    question = experiment(strategy=strategy)
    requests: list[TrialRequest] = []

    def failing_driver(request: TrialRequest) -> Verdict:
        requests.append(request)
        return INVALID if len(requests) > 2 else verdict(request.value <= 3)

    finding = only(question, failing_driver)
    assert len(requests) == 2 + 2 * 3
    assert len(set(requests[2:5])) == len(set(requests[5:])) == 1
    assert finding.status == "unfinished"
    assert "INVALID 3 times in a row" in finding.sentence or "could not be measured because" in finding.sentence
    assert "40 ms late" in finding.sentence
    assert finding.holds or finding.fails


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("unmeasured", [1, 2, 3, 4, 5])
def test_case_14_the_search_continues_without_a_load_that_stays_invalid(strategy: Strategy, unmeasured: int) -> None:
    """Loads up to 3 hold; one load could not be measured, in three trials."""
    finding = only(
        experiment(strategy=strategy),
        lambda request: INVALID if request.value == unmeasured else verdict(request.value <= 3),
    )
    others = [v for v in range(1, 6) if v != unmeasured]
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value == max(v for v in others if v <= 3)
    assert finding.fails.value == min(v for v in others if v > 3)
    if unmeasured in (3, 4):
        assert finding.status == "wide"
        assert any("could not be measured: INVALID 3 times" in note for note in finding.notes)


def test_case_14_what_was_proven_below_a_load_that_stays_invalid_is_the_answer() -> None:
    """Near 430k/s everything holds, and from 450k/s on the generator falls behind."""
    question = replace(experiment(span=RANGE, strategy="adaptive"), ceiling=None)
    search, past = build(question, "simulated", hint=430_000.0), list[TrialResult]()
    while (request := search.next(past)) is not None:
        past.append(TrialResult(request, INVALID if request.value >= 450_000 else HOLDS, len(past) + 1))
    (finding,) = search.findings(past)
    assert finding.holds is not None
    assert 430_000 <= finding.holds.value < 450_000
    assert finding.fails is None
    assert (
        finding.sentence
        == "sustainable throughput: 430k events/s passed; 451.3k events/s could not be measured because "
        "the generator was 40 ms late"
    )
    assert exit_code_of([finding], {t.trial: t.verdict for t in past}) == 6


def test_a_range_in_which_every_trial_stays_invalid_could_not_be_measured() -> None:
    for strategy in STRATEGIES:
        finding = only(experiment(strategy=strategy), lambda _: INVALID)
        assert finding.status == "invalid"
        assert "could not be measured: INVALID 3 times in a row" in finding.sentence
        assert exit_code_of([finding], {1: INVALID}) == 3


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "full"])
def test_a_load_whose_confirmation_stays_invalid_is_no_bound(strategy: Strategy) -> None:
    def driver(request: TrialRequest) -> Verdict:
        return INVALID if request.value == 3 and request.purpose == "confirm" else verdict(request.value <= 3)

    finding = only(experiment(strategy=strategy), driver)
    assert finding.holds is not None
    assert finding.holds.value == 2
    assert any(note.startswith("3/s could not be measured") for note in finding.notes)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_falsified_output_stops_the_search_immediately(strategy: Strategy) -> None:
    question = experiment("capacity", strategy=strategy, instances=Span(values=(1.0, 2.0, 3.0)))
    findings, past = found(
        question, lambda request: FALSIFIED if dict(request.fixed)["instances"] == 2 else verdict(request.value <= 3)
    )
    assert [f.status for f in findings] == ["bracketed", "failed", "unfinished"]
    assert past[-1].verdict is FALSIFIED
    assert "12 outputs are wrong" in findings[1].sentence
    assert f"after trial {len(past)}" in findings[2].sentence


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("boundary", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("undecided", [1, 2, 3, 4, 5])
def test_an_undecided_value_of_a_list_is_skipped_and_named(strategy: Strategy, boundary: int, undecided: int) -> None:
    finding = only(
        experiment(strategy=strategy),
        lambda request: UNDECIDED if request.value == undecided else verdict(request.value <= boundary),
    )
    others = [v for v in range(1, 6) if v != undecided]
    holds = max((v for v in others if v <= boundary), default=None)
    fails = min((v for v in others if v > boundary), default=None)
    assert (finding.holds.value if finding.holds else None) == holds
    assert (finding.fails.value if finding.fails else None) == fails
    widens = undecided in (boundary, boundary + 1)
    if widens:
        assert finding.status == "wide"
        assert any("straddles 1%" in note and f"{undecided}/s" in note for note in finding.notes)
    else:
        assert finding.status == {0: "none-holds", 5: "all-hold"}.get(boundary, "bracketed")


def test_a_line_without_any_decision_reports_it() -> None:
    for strategy, span in product(STRATEGIES, (Span(values=(1.0, 2.0)), RANGE)):
        finding = only(experiment(span=span, strategy=strategy), lambda _: UNDECIDED)
        assert finding.status == "wide"
        assert (finding.holds, finding.fails) == (None, None)
        assert finding.sentence == "sustainable throughput: could not be decided at any value"


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("value", [1.0, 2.0, 3.0, 4.0])
def test_a_confirmation_that_contradicts_a_probe_counts_and_is_reported(strategy: Strategy, value: float) -> None:
    """The short trials all say 1 … 3 hold; at full length one of the values turns out otherwise."""
    truth = holds_up_to(3)
    short = {request: truth(TrialRequest("load", value, "probe")) for request in ("probe", "estimate")}
    turned = FAILS if short["probe"] is HOLDS else HOLDS
    answer = scripted((value, "confirm", turned), otherwise=truth)
    finding = only(experiment(strategy=strategy), answer)
    assert finding.status in ("bracketed", "none-holds", "all-hold")
    for end, holds in ((finding.holds, HOLDS), (finding.fails, FAILS)):
        if end:
            assert answer(TrialRequest("load", end.value, "confirm")) is holds
    if strategy != "full" and value in (3.0, 4.0):
        assert any("in a short trial" in note and "the full-length result counts" in note for note in finding.notes)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_limit_that_is_not_monotone_ends_below_the_easiest_known_failure(strategy: Strategy) -> None:
    question = experiment(strategy=strategy)
    for table in product((True, False), repeat=5):
        findings, past = found(question, lambda request, table=table: verdict(table[int(request.value) - 1]))  # type: ignore[misc]
        (finding,) = findings
        assert len(past) <= 5 * 2
        failures = [t.ask.value for t in past if t.verdict is FAILS]
        held = [t for t in past if t.verdict is HOLDS]
        assert (finding.fails.value if finding.fails else None) == min(failures, default=None)
        if finding.holds:
            assert table[int(finding.holds.value) - 1]
        beyond = {t.ask.value for t in held if failures and t.ask.value > min(failures)}
        notes = [note for note in finding.notes if note.startswith("not monotone")]
        assert len(notes) == len(beyond)
        assert all(any(f"{v:g}/s passed" in note for note in notes) for v in beyond)


def test_a_confirmation_that_stays_undecided_outweighs_a_probe_that_held() -> None:
    answer = scripted((3.0, "confirm", UNDECIDED), otherwise=holds_up_to(3))
    findings, past = found(experiment(), answer)
    (finding,) = findings
    assert finding.status == "wide"
    assert finding.holds
    assert finding.fails
    assert (finding.holds.value, finding.fails.value) == (2, 4)
    full_length = next(t.trial for t in past if t.verdict is UNDECIDED)
    assert f"3/s could not be decided (trial {full_length}): {UNDECIDED.reasons[0]}" in finding.notes


def test_an_undecided_value_outside_of_the_bounds_does_not_widen_them() -> None:
    values: list[float] = []

    def answer(request: TrialRequest) -> Verdict:
        values.append(request.value)
        return UNDECIDED if request.value == values[0] else verdict(request.value <= 20_000)

    finding = only(experiment(span=RANGE), answer)
    assert finding.status == "bracketed"
    assert finding.holds
    assert finding.fails
    assert finding.holds.value <= 20_000 < finding.fails.value


def test_repetitions_decide_by_majority_and_a_disagreement_is_reported() -> None:
    question = experiment(strategy="full", repetitions=3)

    def wavering(request: TrialRequest) -> Verdict:
        if request.value == 3:
            return verdict(request.repetition != 1)
        return verdict(request.value < 3)

    findings, past = found(question, wavering)
    (finding,) = findings
    assert Counter(t.ask.value for t in past) == Counter({1: 3, 2: 3, 3: 3, 4: 3, 5: 3})
    assert [t.ask.repetition for t in past[:4]] == [0, 1, 2, 0]
    assert finding.holds
    assert finding.fails
    assert (finding.holds.value, finding.fails.value) == (3, 4)
    assert finding.holds.trials == (7, 9)
    assert any(note.startswith("3/s: 2 of 3 repetitions passed") for note in finding.notes)


def test_a_tie_between_repetitions_counts_as_failing() -> None:
    question = experiment(strategy="linear", repetitions=2, early=False)
    finding = only(
        question, lambda request: verdict(request.value < 3 or (request.value == 3 and request.repetition == 0))
    )
    assert finding.fails
    assert finding.fails.value == 3
    assert any("3/s: 1 of 2 repetitions passed" in note for note in finding.notes)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_early_decisions_every_trial_is_full_length(strategy: Strategy) -> None:
    _, past = found(experiment(strategy=strategy, early=False), holds_up_to(3))
    assert {t.ask.purpose for t in past} <= {"confirm", "estimate"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_verdict_that_flips_every_time_ends_all_the_same(strategy: Strategy) -> None:
    for span in (Span(values=(1.0, 2.0, 3.0, 4.0, 5.0)), RANGE):
        seen: Counter[float] = Counter()

        def flipping(request: TrialRequest, seen: Counter[float] = seen) -> Verdict:
            seen[request.value] += 1
            return verdict(seen[request.value] % 2 == 1)

        findings, past = found(experiment(span=span, strategy=strategy), flipping)
        assert len(past) <= 2 * 3 * 130
        assert findings[0].sentence


def test_a_crash_at_a_high_load_is_a_failure_but_at_the_lowest_the_system_is_broken() -> None:
    high = only(experiment(), lambda request: CRASHES if request.value > 3 else HOLDS)
    assert high.status == "bracketed"
    low = only(experiment(), lambda _: CRASHES)
    assert low.status == "failed"
    assert "exited with code 137" in low.sentence


def test_for_demand_only_the_lowest_load_shows_a_broken_system() -> None:
    question = experiment("demand", Span(values=(10.0, 20.0)), instances=Span(values=(1.0, 2.0)))
    findings, _ = found(question, lambda request: CRASHES if dict(request.fixed)["load"] == 20 else HOLDS)
    assert [f.status for f in findings] == ["all-hold", "none-holds"]
    findings, _ = found(question, lambda _: CRASHES)
    assert findings[0].status == "failed"


def test_a_spent_budget_leaves_the_bounds_so_far() -> None:
    question = experiment("capacity", RANGE, instances=Span(values=(1.0, 2.0)))
    search = build(question, "simulated")
    past = play(search, holds_up_to(700_000))
    early = [TrialResult(t.ask, t.verdict, t.trial) for t in past[:3]]
    first, second = search.findings(early, ended="the budget of 10m is spent")
    assert first.status == second.status == "unfinished"
    assert first.holds
    assert first.fails
    assert first.holds.value < 700_000 < first.fails.value
    assert "the budget of 10m is spent" in first.sentence
    assert any("only in short trials" in note for note in first.notes)
    assert second.sentence == "sustainable throughput with 2 instances: not searched: the budget of 10m is spent"


def confirmations(*judged: tuple[float, Verdict]) -> list[TrialResult]:
    """Full-length trials, as the search of a system with a hint makes them."""
    return [TrialResult(TrialRequest("load", v, "confirm"), said, n) for n, (v, said) in enumerate(judged, 1)]


BUDGET = "the budget of 10m is used up"


def test_case_6_a_budget_that_ends_a_search_with_both_bounds_confirmed_leaves_a_wider_result() -> None:
    search = build(experiment(span=RANGE, strategy="adaptive"), "spark", hint=600_000.0)
    past = confirmations((600_000.0, HOLDS), (750_000.0, FAILS), (750_000.0, FAILS))
    verdicts = {t.trial: t.verdict for t in past}
    assert search.next(past) is not None, "the search is not done"
    (finding,) = search.findings(past, ended=BUDGET)
    assert finding.status == "wide"
    assert finding.sentence == "sustainable throughput: 600k events/s passed, 750k events/s failed (25.0 % apart)"
    assert f"The bounds are further apart than requested, because the search ended early: {BUDGET}" in finding.notes
    assert exit_code_of([finding], verdicts) == 0
    (running,) = search.findings(past)
    assert running.status == "unfinished", "a search that continues has no result yet"


@pytest.mark.parametrize(
    "judged",
    [
        ((600_000.0, HOLDS), (750_000.0, FAILS)),
        ((600_000.0, HOLDS), (750_000.0, FAILS), (750_000.0, HOLDS)),
        ((750_000.0, FAILS), (750_000.0, FAILS)),
        ((600_000.0, HOLDS),),
    ],
)
def test_case_6_a_budget_that_ends_a_search_before_both_bounds_are_confirmed_gave_no_answer(
    judged: tuple[tuple[float, Verdict], ...],
) -> None:
    """With a hint, a failing bound that was measured once, or whose trials disagree, does not count yet."""
    search = build(experiment(span=RANGE, strategy="adaptive"), "spark", hint=600_000.0)
    past = confirmations(*judged)
    (finding,) = search.findings(past, ended=BUDGET)
    assert finding.status == "unfinished"
    assert exit_code_of([finding], {t.trial: t.verdict for t in past}) == 6


def test_case_14_two_loads_that_stay_invalid_between_confirmed_bounds_leave_a_wider_result() -> None:
    search = build(experiment(span=RANGE, strategy="adaptive"), "spark", hint=600_000.0)
    past = confirmations((600_000.0, HOLDS), (750_000.0, FAILS), (750_000.0, FAILS))
    whole = play(search, lambda _: INVALID, past)
    assert len(whole) == len(past) + 2 * 3
    (finding,) = search.findings(whole)
    assert finding.status == "wide"
    assert any("the search ended early: INVALID 3 times in a row" in note for note in finding.notes)
    assert exit_code_of([finding], {t.trial: t.verdict for t in whole}) == 0


def test_case_6_a_search_of_a_list_that_the_budget_ended_beside_its_answer_has_it() -> None:
    """Every value at full length: 1 to 3 pass, 4 fails, and 5 was not measured any more."""
    search = build(experiment(strategy="full"), "simulated")
    past = confirmations((1.0, HOLDS), (2.0, HOLDS), (3.0, HOLDS), (4.0, FAILS))
    (finding,) = search.findings(past, ended=BUDGET)
    assert (finding.status, exit_code_of([finding], {t.trial: t.verdict for t in past})) == ("bracketed", 0)
    assert f"The search ended early: {BUDGET}" in finding.notes
