"""Every strategy on every monotone truth table of up to 6 loads × 5 instance counts equals brute force."""

from itertools import combinations_with_replacement, product

import pytest
from search_replay import STRATEGIES, experiment, play, verdict

from streamgauge.model.experiment import Goal, Span, Strategy
from streamgauge.model.finding import Finding, TrialResult
from streamgauge.model.measurement import Verdict
from streamgauge.model.trial import TrialRequest
from streamgauge.search import Search, build

SIZES = [(1, 1), (1, 5), (6, 1), (2, 2), (3, 3), (4, 4), (6, 5)]

Table = tuple[int, ...]
"""For each load, from low to high, how many of the instance counts, from few to many, do not hold it."""


def tables(loads: int, counts: int) -> list[Table]:
    """All truth tables that are monotone in both: more load never needs fewer instances."""
    return list(combinations_with_replacement(range(counts + 1), loads))


class Judge:
    """Answers from the table, and remembers nothing."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __call__(self, request: TrialRequest) -> Verdict:
        at = {request.dimension: request.value, **dict(request.fixed)}
        return verdict(self.holds(int(at["load"]), int(at["instances"])))

    def holds(self, load: int, instances: int) -> bool:
        return instances > self.table[load - 1]


def searches(what: str, loads: int, counts: int, strategy: Strategy, lower_bound: bool = True) -> Search:
    spans = (Span(values=tuple(float(v + 1) for v in range(n))) for n in (loads, counts))
    load, instances = spans
    question: Goal = "demand" if what == "demand" else "capacity"
    return build(experiment(question, load, strategy, instances=instances, lower_bound=lower_bound), "simulated")


def ends(finding: Finding) -> tuple[float | None, float | None]:
    return (finding.holds.value if finding.holds else None, finding.fails.value if finding.fails else None)


def status(holds: float | None, fails: float | None) -> str:
    return "bracketed" if holds and fails else "all-hold" if holds else "none-holds"


def assert_proven(finding: Finding, past: list[TrialResult], judge: Judge) -> None:
    """Each end is proven by full-length trials that say so."""
    for end, holds in ((finding.holds, True), (finding.fails, False)):
        if end is None:
            continue
        assert end.trials
        for number in end.trials:
            result = past[number - 1]
            assert result.verdict.holds is holds
            assert result.ask.purpose == "confirm"
            assert result.ask.value == end.value


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("lower_bound", [True, False])
def test_demand_is_the_fewest_instances_that_sustain_each_load(strategy: Strategy, lower_bound: bool) -> None:
    for loads, counts in SIZES:
        search = searches("demand", loads, counts, strategy, lower_bound)
        for table in tables(loads, counts):
            judge = Judge(table)
            past = play(search, judge)
            assert len(past) <= loads * (counts + 2)
            for load, finding in enumerate(search.findings(past), 1):
                fit = [n for n in range(1, counts + 1) if judge.holds(load, n)]
                unfit = [n for n in range(1, counts + 1) if not judge.holds(load, n)]
                holds, fails = min(fit, default=None), max(unfit, default=None)
                assert ends(finding) == (holds, fails), (table, load)
                assert finding.status == status(holds, fails)
                if not lower_bound:
                    assert_proven(finding, past, judge)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_capacity_is_the_highest_load_that_each_number_of_instances_holds(strategy: Strategy) -> None:
    for loads, counts in SIZES:
        search = searches("capacity", loads, counts, strategy)
        for table in tables(loads, counts):
            judge = Judge(table)
            past = play(search, judge)
            assert len(past) <= counts * (loads + 2)
            for instances, finding in enumerate(search.findings(past), 1):
                fit = [v for v in range(1, loads + 1) if judge.holds(v, instances)]
                unfit = [v for v in range(1, loads + 1) if not judge.holds(v, instances)]
                holds, fails = max(fit, default=None), min(unfit, default=None)
                assert ends(finding) == (holds, fails), (table, instances)
                assert finding.status == status(holds, fails)
                assert_proven(finding, past, judge)


def test_the_corner_that_theodolite_has_wrong_is_right() -> None:
    """Loads [1, 2, 3], capacity 2."""
    for strategy in STRATEGIES:
        search = searches("capacity", 3, 1, strategy)
        finding = search.findings(play(search, lambda request: verdict(request.value <= 2)))[0]
        assert ends(finding) == (2, 3)


def test_the_lower_bound_never_takes_more_trials_and_cites_the_failure_it_leans_on() -> None:
    for strategy, table in product(STRATEGIES, tables(4, 4)):
        judge = Judge(table)
        bound, free = (searches("demand", 4, 4, strategy, lower_bound) for lower_bound in (True, False))
        past = play(bound, judge)
        # A bisection that starts elsewhere may be unlucky by one trial; nothing else may cost more.
        assert len(past) <= len(play(free, judge)) + (strategy in ("binary", "adaptive")) * 4
        for finding in bound.findings(past):
            for number in finding.fails.trials if finding.fails else ():
                result = past[number - 1]
                assert result.verdict.holds is False
                assert dict(result.ask.fixed)["load"] <= float(finding.line.removeprefix("load="))


def test_linear_stops_at_the_first_failure_and_from_above_starts_at_the_hardest() -> None:
    def explored(what: str, strategy: Strategy) -> list[float]:
        search = searches(what, 4, 4 if what == "demand" else 1, strategy)
        past = play(search, Judge((2, 2, 2, 2)) if what == "demand" else lambda request: verdict(request.value <= 2))
        return [t.ask.value for t in past if t.ask.purpose == "probe" and t.ask.fixed == past[0].ask.fixed]

    assert explored("demand", "linear") == [1, 2, 3]
    assert explored("capacity", "linear") == [1, 2, 3]
    assert explored("capacity", "from-above") == [4, 3, 2]
