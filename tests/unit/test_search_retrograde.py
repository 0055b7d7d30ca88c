"""More instances can be slower: the demand is the fewest that hold, wherever they are in the range."""

from collections.abc import Callable

import pytest
from search_replay import CRASHES, FAILS, HOLDS, STRATEGIES, experiment, found, only, verdict

from streamgauge.model.experiment import Span, Strategy
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.trial import TrialRequest

RANGE = Span(between=(1, 32))


def usl(capacity: float, contention: float, coherence: float) -> Callable[[float], float]:
    """Events per second of n instances, by the Universal Scalability Law."""
    return lambda n: capacity * n / (1 + contention * (n - 1) + coherence * n * (n - 1))


def judge(law: Callable[[float], float], *, estimates: bool = True) -> Callable[[TrialRequest], Verdict]:
    """Holds where the law carries the load; an overloaded trial may see how much that was."""

    def answer(request: TrialRequest) -> Verdict:
        carried = law(request.value)
        if dict(request.fixed)["load"] <= carried:
            return HOLDS
        estimate = Estimate(carried, 0.01 * carried) if estimates else None
        return Verdict(VerdictKind.OVERLOADED, ("the lag grows",), estimate=estimate)

    return answer


@pytest.mark.parametrize("estimates", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_demand_is_the_fewest_instances_that_pass_even_if_the_most_do_not(
    strategy: Strategy, estimates: bool
) -> None:
    law = usl(300e3, 0.1, 0.01)
    assert [n for n in range(1, 33) if law(n) >= 1e6] == list(range(6, 15 + 1))
    question = experiment("demand", Span(values=(1e6,)), strategy, instances=RANGE)
    findings, past = found(question, judge(law, estimates=estimates))
    (finding,) = findings
    assert finding.status == "bracketed"
    assert finding.sentence == "load 1M/s needs 6 instances (5 fail)"
    assert len(past) <= 34
    worse = {t.ask.value for t in past if t.ask.value > 15}
    notes = [note for note in finding.notes if "more instances make this system slower" in note]
    assert len(notes) == bool(worse)
    assert all(f"{value:g}" in notes[0] for value in worse)


@pytest.mark.parametrize("estimates", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_peak_of_the_law_is_found(strategy: Strategy, estimates: bool) -> None:
    for coherence in (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.4):
        law = usl(100e3, 0.02, coherence)
        for load in (90e3, 150e3, 220e3, 300e3, 500e3, 1e6):
            fit = [n for n in range(1, 33) if law(n) >= load]
            question = experiment("demand", Span(values=(load,)), strategy, instances=RANGE)
            finding = only(question, judge(law, estimates=estimates))
            if max(law(n) for n in range(1, 33)) < 1.005 * load:
                assert finding.status == "none-holds" or fit
            else:
                assert finding.holds
                assert finding.holds.value == min(fit), (coherence, load)


def test_a_range_that_is_too_small_costs_a_few_more_trials_if_they_show_the_processing_rate() -> None:
    question = experiment("demand", Span(values=(10e6,)), "binary", instances=RANGE)
    findings, past = found(question, judge(usl(100e3, 0.02, 0.0)))
    assert findings[0].sentence == (
        "load 10M/s fails even with 32 instances, the end of the range; raise instances.between[1]"
    )
    assert len(past) <= 10


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_if_no_number_of_instances_passes_and_more_are_slower_no_advice_adds_some(strategy: Strategy) -> None:
    question = experiment("demand", Span(values=(2e6,)), strategy, instances=RANGE)
    finding = only(question, judge(usl(300e3, 0.1, 0.01)))
    assert finding.status == "none-holds"
    assert finding.sentence.startswith("load 2M/s fails with 1 to 32 instances: ")
    assert "processed the most, 1.0" in finding.sentence
    assert finding.sentence.endswith("and more are slower; lower the load")
    assert "raise" not in finding.sentence


def test_what_fails_at_a_lower_load_is_not_tried_again_at_a_higher_one() -> None:
    law = usl(300e3, 0.1, 0.01)
    question = experiment("demand", Span(values=(1e6, 1.03e6)), "binary", instances=RANGE)
    findings, past = found(question, judge(law))
    assert [f.holds and f.holds.value for f in findings] == [6, min(n for n in range(1, 33) if law(n) >= 1.03e6)]
    assert not [t for t in past if dict(t.ask.fixed)["load"] == 1.03e6 and t.ask.value <= 5]


def test_a_system_that_crashes_is_not_looked_at_for_a_peak() -> None:
    _, past = found(experiment("demand", Span(values=(1e6,)), "binary", instances=RANGE), lambda _: CRASHES)
    assert len(past) <= 7


def test_other_dimensions_keep_below_the_easiest_failure() -> None:
    finding = only(
        experiment(strategy="full"), lambda request: FAILS if request.value == 1 else verdict(request.value <= 3)
    )
    assert finding.status == "none-holds"
