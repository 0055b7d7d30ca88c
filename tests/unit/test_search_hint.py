"""Where a warm-up hints at the limit, the first trial need not go to the end of the range."""

from dataclasses import replace

import pytest
from search_play import HOLDS, experiment, play

from streamgauge.model.experiment import Span
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.trial import Ask
from streamgauge.search import build

TRUTH = 1_000_000.0


def judged(ask: Ask) -> Verdict:
    """A system that holds up to a million events per second, and tells where it drains when it is overloaded."""
    if ask.value <= TRUTH:
        return HOLDS
    return Verdict(VerdictKind.OVERLOADED, ("the lag grows",), estimate=Estimate(TRUTH, 5_000.0))


def searched(hint: float, carries: float = 0.0) -> tuple[list[float], tuple[float, float]]:
    question = experiment(span=Span((50_000.0, 5_000_000.0)), strategy="adaptive")
    search = build(question, "spark", hint)
    past = play(search, lambda ask: replace(judged(ask), carries=carries))
    (finding,) = search.findings(past)
    assert finding.holds is not None
    assert finding.fails is not None
    return [told.ask.value for told in past], (finding.holds.value, finding.fails.value)


def test_a_good_hint_needs_two_full_length_trials() -> None:
    asked, (holds, fails) = searched(970_000.0)
    assert asked == [970_000.0, pytest.approx(1_018_000, rel=0.001)]
    assert (holds, fails) == (asked[0], asked[1])


@pytest.mark.parametrize("hint", [200_000.0, 700_000.0, 930_000.0, 1_040_000.0, 1_100_000.0, 1_800_000.0, 4_000_000.0])
def test_a_hint_that_was_wrong_is_left_behind_in_few_steps(hint: float) -> None:
    asked, (holds, fails) = searched(hint)
    assert len(asked) <= (6 if 0.9 < hint / TRUTH < 1.1 else 14), asked
    assert holds <= TRUTH < fails
    assert fails / holds <= 1.05


@pytest.mark.parametrize("carries", [0.98, 1.03, 1.1])
@pytest.mark.parametrize("hint", [700_000.0, 930_000.0, 1_100_000.0, 1_800_000.0])
def test_the_cpu_time_of_an_event_says_how_far_the_next_step_goes(hint: float, carries: float) -> None:
    asked, (holds, fails) = searched(hint, carries * TRUTH)
    assert len(asked) <= 5, asked
    assert holds <= TRUTH < fails
    assert fails / holds <= 1.05


def test_cpu_time_is_no_proof() -> None:
    asked, (holds, fails) = searched(400_000.0, carries=10 * TRUTH)
    assert asked[1] == 600_000, "half as much again, not ten times"
    assert holds <= TRUTH < fails


def test_a_load_that_could_not_be_decided_is_left_in_the_middle() -> None:
    def fuzzy(ask: Ask) -> Verdict:
        """Within 3 % of the truth nobody can tell."""
        near = abs(ask.value / TRUTH - 1) < 0.03
        return Verdict(VerdictKind.UNDECIDED, ("the noise forbids an answer",)) if near else judged(ask)

    question = experiment(span=Span((50_000.0, 5_000_000.0)), strategy="adaptive")
    search = build(question, "spark", 1_010_000.0)
    past = play(search, fuzzy)
    (finding,) = search.findings(past)
    assert finding.holds is not None
    assert finding.fails is not None
    assert len(past) <= 5, [told.ask.value for told in past]
    assert finding.holds.value < 0.97 * TRUTH
    assert finding.fails.value > 1.03 * TRUTH
    assert finding.fails.value / finding.holds.value < 1.11
    assert "the noise forbids an answer at" in " ".join(finding.notes)


def test_a_hint_beyond_the_range_begins_at_its_end_and_one_below_it_at_its_beginning() -> None:
    assert searched(50_000_000.0)[0][0] == 5_000_000
    assert searched(10.0)[0][0] == 50_000


def test_without_a_hint_nothing_changes() -> None:
    assert searched(0.0)[0][0] == 5_000_000


def test_the_forecast_believes_in_a_hint_as_far_as_hints_go() -> None:
    question = experiment(span=Span((50_000.0, 5_000_000.0)), strategy="adaptive")
    assert build(question, "spark", 1_000_000.0).forecast().likely <= 4
