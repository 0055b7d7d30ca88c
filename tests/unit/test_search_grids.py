"""Strategies on a list or a grid of loads: bounds that the trials cannot prove are not given as certain."""

import pytest
from search_replay import HOLDS, Answer, experiment, found

from streamgauge.model.experiment import Span, Strategy
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.trial import TrialRequest
from streamgauge.search.goals import axes_of
from streamgauge.search.supported import RESOLUTION
from streamgauge.workloads.parameters import FREQUENCY

TRUTH = 100_400.0
GRIDS: tuple[Strategy, ...] = ("linear", "from-above", "full")
RANGE = Span(between=(95_000.0, 105_000.0))
REMARK = "so the limit may be outside of these bounds"


def judge(error: float | None) -> Answer:
    """What holds up to the truth; an overload estimates it with this error, as a share of it."""

    def answer(request: TrialRequest) -> Verdict:
        if request.value <= TRUTH:
            return HOLDS
        estimate = None if error is None else Estimate(TRUTH, error * TRUTH)
        return Verdict(VerdictKind.OVERLOADED, ("the lag grows",), estimate=estimate)

    return answer


@pytest.mark.parametrize("strategy", GRIDS)
def test_case_5_a_grid_is_no_finer_than_two_loads_can_be_distinguished_and_the_result_has_the_reason(
    strategy: Strategy,
) -> None:
    question = experiment(span=RANGE, strategy=strategy, precision=0.001)
    (finding,), past = found(question, judge(None))
    assert finding.width is not None
    assert finding.width == pytest.approx(RESOLUTION, rel=0.01)
    assert len(past) < 20
    assert [note for note in finding.notes if "search.precision is 0.1 %" in note and "Increase trial.duration" in note]


@pytest.mark.parametrize("strategy", GRIDS)
def test_case_5_bounds_of_a_grid_that_are_closer_than_the_noise_allows_state_that_they_are_uncertain(
    strategy: Strategy,
) -> None:
    question = experiment(span=RANGE, strategy=strategy, precision=0.02)
    noisy, quiet = (found(question, judge(error))[0][0] for error in (0.02, 0.0005))
    (said,) = [note for note in noisy.notes if REMARK in note]
    assert said.startswith("The bounds are 2.0 % apart, but the trials support bounds")
    assert "The limit is probably near 100.4k/s" in said
    assert not quiet.notes


@pytest.mark.parametrize("strategy", [*GRIDS, "binary", "adaptive"])
def test_case_5_neighbours_of_a_list_that_are_too_close_keep_their_place_and_the_result_reports_it(
    strategy: Strategy,
) -> None:
    """The user chose the values, so both stay bounds."""
    close = Span(values=(90e3, 100e3, 100.5e3, 110e3))
    (finding,), _ = found(experiment(span=close, strategy=strategy), judge(None))
    assert finding.holds is not None
    assert finding.fails is not None
    assert (finding.holds.value, finding.fails.value) == (100e3, 100.5e3)
    assert [note for note in finding.notes if REMARK in note and "0.5 % apart" in note]


@pytest.mark.parametrize("strategy", [*GRIDS, "binary", "adaptive"])
def test_case_5_neighbours_of_a_list_that_are_far_apart_need_no_remark(strategy: Strategy) -> None:
    far = Span(values=(80e3, 100e3, 120e3))
    for error in (None, 0.02):
        (finding,), _ = found(experiment(span=far, strategy=strategy, precision=0.001), judge(error))
        assert finding.status == "bracketed"
        assert not finding.notes


def test_case_5_a_grid_of_another_dimension_is_as_fine_as_requested() -> None:
    question = experiment("extreme", Span(between=(100.0, 101.0)), "linear", dimension=FREQUENCY, precision=0.001)
    assert len(axes_of(question)[0].values) == 11
