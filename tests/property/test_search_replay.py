"""The search is a pure function of its past, and right wherever the boundary lies."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.model.experiment import (
    Experiment,
    Goal,
    SearchPlan,
    Span,
    Strategy,
    TrialPlan,
    WorkloadChoice,
)
from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.trial import TrialRequest
from streamgauge.search import build
from streamgauge.search.supported import RESOLUTION

STRATEGIES: tuple[Strategy, ...] = ("adaptive", "from-above", "linear", "binary", "full")
QUESTIONS: tuple[Goal, ...] = ("sustainable-throughput", "demand", "capacity", "nothing")


def question(
    what: Goal,
    strategy: Strategy,
    span: Span,
    *,
    repetitions: int = 1,
    precision: float = 0.05,
    early: bool = True,
    also: tuple[float, ...] = (),
) -> Experiment:
    return Experiment(
        name="a question",
        workload=WorkloadChoice("windowed-aggregation", {}),
        engines=(),
        what=what,
        objectives=(),
        span=span,
        instances=Span(values=(1.0, 2.0, 3.0)),
        search=SearchPlan(strategy, precision, also=also),
        trial=TrialPlan(repetitions=repetitions, early=early),
    )


def verdicts(kinds: Sequence[VerdictKind], position: int) -> Verdict:
    kind = kinds[position % len(kinds)]
    estimate = Estimate(300.0 + 7 * position % 50, 20.0) if kind is VerdictKind.OVERLOADED else None
    return Verdict(kind, (f"reason {position}",), estimate=estimate)


def played(experiment: Experiment, kinds: Sequence[VerdictKind]) -> list[TrialResult]:
    search = build(experiment, "simulated")
    past: list[TrialResult] = []
    while (request := search.next(past)) is not None:
        past.append(TrialResult(request, verdicts(kinds, len(past)), len(past) + 1))
        assert len(past) < 2000, "the search does not end"
    return past


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    what=st.sampled_from(QUESTIONS),
    strategy=st.sampled_from(STRATEGIES),
    kinds=st.lists(st.sampled_from(list(VerdictKind)), min_size=1, max_size=40),
    repetitions=st.integers(1, 3),
    early=st.booleans(),
)
def test_any_sequence_of_verdicts_ends_and_any_prefix_replays_to_the_same_question(
    what: Goal, strategy: Strategy, kinds: list[VerdictKind], repetitions: int, early: bool
) -> None:
    span = Span(values=(100.0, 200.0, 300.0, 400.0))
    experiment = question(what, strategy, span, repetitions=repetitions, early=early)
    past = played(experiment, kinds)
    for length in range(len(past)):
        fresh = build(experiment, "simulated")
        again = [TrialResult(t.ask, t.verdict, t.trial) for t in past[:length]]
        assert fresh.next(again) == past[length].ask
        assert all(f.sentence for f in fresh.findings(again, "the budget is spent"))
    fresh = build(experiment, "simulated")
    assert fresh.next(past) is None
    final = fresh.findings(past)
    assert final == build(experiment, "simulated").findings(list(past))
    for finding in final:
        for end, holds in ((finding.holds, True), (finding.fails, False)):
            for number in end.trials if end else ():
                assert past[number - 1].verdict.holds is holds


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    strategy=st.sampled_from(("adaptive", "binary")),
    kinds=st.lists(st.sampled_from(list(VerdictKind)), min_size=1, max_size=30),
    repetitions=st.integers(1, 2),
    also=st.sampled_from(((), (0.9,), (0.9, 0.5))),
)
def test_any_sequence_of_verdicts_ends_on_a_range_too(
    strategy: Strategy, kinds: list[VerdictKind], repetitions: int, also: tuple[float, ...]
) -> None:
    span = Span(between=(10.0, 5000.0))
    experiment = question("sustainable-throughput", strategy, span, repetitions=repetitions, also=also)
    past = played(experiment, kinds)
    for length in range(0, len(past), 7):
        assert build(experiment, "simulated").next(list(past[:length])) == past[length].ask
    (finding,) = build(experiment, "simulated").findings(past)
    if finding.holds and finding.fails:
        assert finding.holds.value < finding.fails.value
    for share, number in finding.also:
        assert finding.holds
        assert abs(past[number - 1].ask.value / (share * finding.holds.value) - 1) < 1e-3


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    exponent=st.floats(0, 6),
    low=st.floats(0.5, 1e4),
    decades=st.floats(0.1, 5),
    precision=st.sampled_from((0.002, 0.01, 0.05, 0.2)),
)
def test_bisection_closes_on_any_boundary(exponent: float, low: float, decades: float, precision: float) -> None:
    high, boundary = low * 10**decades, low * 10 ** (exponent - 0.5)
    experiment = question("sustainable-throughput", "binary", Span(between=(low, high)), precision=precision)
    search = build(experiment, "simulated")
    past: list[TrialResult] = []
    while (request := search.next(past)) is not None:
        kind = VerdictKind.SUSTAINED if request.value <= boundary else VerdictKind.OVERLOADED
        past.append(TrialResult(request, Verdict(kind, ()), len(past) + 1))
    (finding,) = search.findings(past)
    assert len(past) <= 20
    assert all(low <= t.ask.value <= high for t in past)
    if boundary < low:
        assert finding.status == "none-holds"
    elif boundary >= high:
        assert finding.status == "all-hold"
    else:
        assert finding.status == "bracketed" or precision < RESOLUTION
        assert finding.holds
        assert finding.fails
        assert finding.holds.value <= boundary < finding.fails.value
        apart = max(precision, RESOLUTION)
        assert finding.fails.value - finding.holds.value <= apart * 1.0001 * finding.holds.value


@settings(max_examples=150, deadline=None, derandomize=True)
@given(boundary=st.floats(12_000, 4_000_000), blur=st.floats(0.01, 0.3))
def test_what_noise_forbids_to_decide_stays_between_ends_that_are_proven(boundary: float, blur: float) -> None:
    """Values close to the boundary are never decided: the ends come near that zone, and the finding says why."""
    search = build(question("sustainable-throughput", "binary", Span(between=(10_000.0, 5e6))), "simulated")
    zone = (boundary * (1 - blur), boundary * (1 + blur))

    def judge(request: TrialRequest) -> Verdict:
        if zone[0] < request.value < zone[1]:
            return Verdict(VerdictKind.UNDECIDED, ("the interval straddles the threshold",))
        return Verdict(VerdictKind.SUSTAINED if request.value <= boundary else VerdictKind.OVERLOADED, ())

    past: list[TrialResult] = []
    while (request := search.next(past)) is not None:
        past.append(TrialResult(request, judge(request), len(past) + 1))
    (finding,) = search.findings(past)
    assert len(past) < 30
    if finding.holds is None or finding.fails is None:
        assert zone[0] < 10_000 * 1.06 or zone[1] > 5e6 / 1.06
        return
    assert finding.holds.value <= zone[0] < zone[1] <= finding.fails.value or finding.status == "bracketed"
    assert finding.holds.value >= zone[0] / 1.12
    assert finding.fails.value <= zone[1] * 1.12
    if finding.status == "wide":
        assert any("straddles" in note for note in finding.notes)
