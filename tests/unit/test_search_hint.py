"""Where a warm-up hints at the limit, the first trial need not go to the end of the range."""

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


def searched(hint: float) -> tuple[list[float], tuple[float, float]]:
    question = experiment(span=Span((50_000.0, 5_000_000.0)), strategy="adaptive")
    search = build(question, "spark", hint)
    past = play(search, judged)
    (finding,) = search.findings(past)
    assert finding.holds is not None
    assert finding.fails is not None
    return [told.ask.value for told in past], (finding.holds.value, finding.fails.value)


def test_the_first_trial_is_somewhat_above_the_hint_and_not_at_the_end_of_the_range() -> None:
    asked, (holds, fails) = searched(950_000.0)
    assert 1_200_000 < asked[0] < 1_300_000
    assert holds <= TRUTH < fails


def test_a_hint_that_was_too_low_is_left_behind_in_steps() -> None:
    asked, (holds, fails) = searched(200_000.0)
    assert asked[0] < asked[1] < asked[2] < 2_000_000
    assert holds <= TRUTH < fails


def test_a_hint_beyond_the_range_begins_at_its_end_and_one_below_it_at_its_beginning() -> None:
    assert searched(50_000_000.0)[0][0] == 5_000_000
    assert searched(10.0)[0][0] == 50_000


def test_without_a_hint_nothing_changes() -> None:
    assert searched(0.0)[0][0] == 5_000_000
