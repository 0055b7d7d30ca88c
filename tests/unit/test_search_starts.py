"""``search.starts``: the whole search again on fresh processes, and how far the answers are apart."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from search_replay import FALSIFIED, INVALID, experiment, play, verdict

from streamgauge.model.experiment import Experiment, Span
from streamgauge.model.finding import Finding, TrialResult
from streamgauge.model.measurement import Verdict
from streamgauge.model.trial import TrialRequest
from streamgauge.search import build
from streamgauge.search.starts import combine

RANGE = Span(between=(10_000.0, 5_000_000.0))
QUESTION = replace(
    experiment(span=RANGE, strategy="adaptive"),
    search=replace(experiment(strategy="adaptive").search, starts=3),
)
Answer = Callable[[TrialRequest], Verdict]


def holds_up_to(*truths: float) -> Answer:
    """A system that holds another load after every start."""
    return lambda request: verdict(request.value <= truths[request.start])


def searched(answer: Answer, question: Experiment = QUESTION, ended: str = "", most: int = 3) -> Finding:
    """All starts, one after the other, in one past, as a run keeps it."""
    past: list[TrialResult] = []
    searches = [build(question, "spark", 1_000_000.0, start) for start in range(question.search.starts)]
    for search in searches[:most]:
        past = play(search, answer, past)
    (finding,) = combine([search.findings(past, ended) for search in searches])
    return finding


def test_case_18_every_start_requests_its_own_trials_whatever_the_others_found() -> None:
    past = play(build(QUESTION, "spark", 1_000_000.0, 0), holds_up_to(980_000.0))
    later = play(build(QUESTION, "spark", 1_000_000.0, 2), holds_up_to(0, 0, 980_000.0), past)[len(past) :]
    assert [result.ask.value for result in later] == [result.ask.value for result in past]
    assert {result.ask.start for result in later} == {2}


def test_case_18_the_result_is_that_of_the_start_in_the_middle_with_the_spread_between_them() -> None:
    finding = searched(holds_up_to(980_000.0, 1_100_000.0, 1_030_000.0))
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= 1_030_000 < finding.fails.value
    assert [start.number for start in finding.starts] == [1, 2, 3]
    for start, truth in zip(finding.starts, (0.98e6, 1.1e6, 1.03e6), strict=True):
        assert (start.holds or 0) < truth < (start.fails or 0)
    assert finding.spread == pytest.approx(0.12, abs=0.04)
    assert finding.trials == sum(start.trials for start in finding.starts)
    assert "3 starts" in finding.sentence
    assert "apart" in finding.sentence


def test_case_18_one_start_has_no_spread() -> None:
    finding = searched(holds_up_to(980_000.0), replace(QUESTION, search=replace(QUESTION.search, starts=1)))
    assert (len(finding.starts), finding.spread) == (1, None)
    assert "start" not in finding.sentence


def test_case_18_starts_that_were_not_searched_are_named_and_do_not_hide_the_others() -> None:
    finding = searched(holds_up_to(980_000.0, 1_100_000.0), ended="the budget of 10m is spent", most=2)
    assert finding.status == "bracketed"
    assert len(finding.starts) == 2
    assert "start 3 of 3 has no result: not searched: the budget of 10m is spent" in finding.notes


def test_case_18_a_start_that_gives_wrong_outputs_is_the_result() -> None:
    finding = searched(lambda request: FALSIFIED if request.start == 1 else verdict(request.value <= 980_000.0), most=2)
    assert finding.status == "failed"
    assert "start 2" in finding.sentence


def test_case_18_a_start_that_could_not_be_measured_leaves_the_others() -> None:
    finding = searched(lambda request: INVALID if request.start == 1 else verdict(request.value <= 980_000.0))
    assert finding.status == "bracketed"
    assert len(finding.starts) == 2
    assert any(note.startswith("start 2 of 3 has no result: ") for note in finding.notes)


def test_case_18_a_range_that_holds_as_a_whole_after_every_start_has_no_spread() -> None:
    finding = searched(holds_up_to(9e9, 9e9, 9e9))
    assert finding.status == "all-hold"
    assert finding.spread == 0


def test_case_18_the_bound_on_trials_counts_every_start() -> None:
    one = build(replace(QUESTION, search=replace(QUESTION.search, starts=1)), "spark")
    three = build(QUESTION, "spark")
    assert three.max_trials(2) == 3 * one.max_trials(2)
    assert three.forecast().likely_trials == 3 * one.forecast().likely_trials
