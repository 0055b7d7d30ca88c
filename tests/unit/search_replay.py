"""A judge that answers every question of a search from a truth, and the experiments to ask it about."""

from collections.abc import Callable, Sequence

from streamgauge.model.experiment import (
    LOAD,
    Dimension,
    Experiment,
    Goal,
    SearchPlan,
    Span,
    Strategy,
    TrialPlan,
    WorkloadChoice,
)
from streamgauge.model.finding import Finding, TrialResult
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.trial import TrialRequest
from streamgauge.search import Search, build

Answer = Callable[[TrialRequest], Verdict]

HOLDS = Verdict(VerdictKind.SUSTAINED, ("the lag does not grow",))
FAILS = Verdict(VerdictKind.OVERLOADED, ("the lag grows by 5%",))
CRASHES = Verdict(VerdictKind.FAILED, ("the system under test exited with code 137",))
INVALID = Verdict(VerdictKind.INVALID, ("the generator was 40 ms late",))
UNDECIDED = Verdict(VerdictKind.UNDECIDED, ("the interval still straddles 1% after 300 s",))
FALSIFIED = Verdict(VerdictKind.FAILED, ("12 outputs are wrong",), stops_run=True)

STRATEGIES: tuple[Strategy, ...] = ("adaptive", "from-above", "linear", "binary", "full")
MOST = 3000
FIVE = Span(values=(1.0, 2.0, 3.0, 4.0, 5.0))
ONE = Span(values=(1.0,))


def experiment(
    what: Goal = "sustainable-throughput",
    span: Span = FIVE,
    strategy: Strategy = "binary",
    *,
    instances: Span = ONE,
    dimension: Dimension = LOAD,
    precision: float = 0.05,
    lower_bound: bool = True,
    repetitions: int = 1,
    early: bool = True,
    also: tuple[float, ...] = (),
) -> Experiment:
    return Experiment(
        name="a question",
        workload=WorkloadChoice("windowed-aggregation", {}),
        engines=(),
        what=what,
        objectives=(),
        dimension=dimension,
        span=span,
        instances=instances,
        search=SearchPlan(strategy, precision, lower_bound, also),
        trial=TrialPlan(repetitions=repetitions, early=early),
    )


def verdict(holds: bool) -> Verdict:
    return HOLDS if holds else FAILS


def play(search: Search, answer: Answer, past: Sequence[TrialResult] = ()) -> list[TrialResult]:
    """Ask and tell until the search is done."""
    results = list(past)
    while (request := search.next(results)) is not None:
        results.append(TrialResult(request, answer(request), len(results) + 1))
        assert len(results) < MOST, "the search does not end"
    return results


def found(question: Experiment, answer: Answer) -> tuple[tuple[Finding, ...], list[TrialResult]]:
    search = build(question, "simulated")
    past = play(search, answer)
    return search.findings(past), past


def only(question: Experiment, answer: Answer) -> Finding:
    findings, _ = found(question, answer)
    assert len(findings) == 1
    return findings[0]
