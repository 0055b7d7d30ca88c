"""An overload while other processes took a share s of the cores speaks of the load L / (1 − s), and of L nothing."""

import pytest
from search_replay import FAILS, Answer, experiment, only, verdict

from streamgauge.model.experiment import Span, Strategy
from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Verdict
from streamgauge.model.trial import TrialRequest
from streamgauge.search import build
from streamgauge.search.history import summarise

RANGE = Span(between=(10_000.0, 5_000_000.0))
BOUNDARY = 700_000.0


def disturbed(taken: float, always: bool = False) -> Answer:
    """The first trial of each load above what is left of the boundary is disturbed, or every one."""
    seen: set[float] = set()

    def answer(request: TrialRequest) -> Verdict:
        if (always or request.value not in seen) and request.value > BOUNDARY * (1 - taken):
            seen.add(request.value)
            return Verdict(FAILS.kind, FAILS.reasons, taken=taken)
        return verdict(request.value <= BOUNDARY)

    return answer


@pytest.mark.parametrize("strategy", ["adaptive", "binary"])
def test_case_13_a_disturbed_overload_below_the_boundary_is_never_the_failing_end(strategy: Strategy) -> None:
    finding = only(experiment(span=RANGE, strategy=strategy), disturbed(0.04))
    assert finding.holds is not None
    assert finding.fails is not None
    assert finding.holds.value <= BOUNDARY <= finding.fails.value


def test_case_13_an_overload_with_one_percent_taken_counts_in_full() -> None:
    request = TrialRequest("load", 100.0, "confirm")
    axis = build(experiment(span=Span(values=(100.0, 101.0, 105.0))), "x").axes[0]
    slightly = summarise(axis, [TrialResult(request, Verdict(FAILS.kind, FAILS.reasons, taken=0.01), 1)])
    assert (slightly.state(100.0), slightly.state(101.0)) == (False, None)
    more = summarise(axis, [TrialResult(request, Verdict(FAILS.kind, FAILS.reasons, taken=0.03), 1)])
    assert [more.state(value) for value in (100.0, 101.0, 105.0)] == [None, None, False]
    assert more.fails is not None
    assert (more.fails.estimated, more.fails.confirmed) == (True, False)


def test_case_13_a_failing_end_that_is_disturbed_each_time_is_called_estimated() -> None:
    finding = only(experiment(span=Span(values=(650e3, 690e3, 730e3, 760e3)), strategy="linear"), disturbed(0.03, True))
    assert finding.holds is not None
    assert any(
        "is estimated, because other processes or the hypervisor used up to 3.0 %" in note for note in finding.notes
    )
