"""Which lines a question has, how its answer reads, and how long it will take."""

from dataclasses import replace
from itertools import pairwise

import pytest
from search_replay import CRASHES, FAILS, HOLDS, ONE, STRATEGIES, UNDECIDED, experiment, found, only, play, verdict

from streamgauge.model.experiment import Dimension, Span, Strategy, TrialPlan
from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Estimate, Verdict, VerdictKind
from streamgauge.model.profile import LoadProfile, Piece
from streamgauge.model.trial import TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.run.result import ExitCode, exit_code_of
from streamgauge.search import build
from streamgauge.search.axes import SearchAxis, grid, listed
from streamgauge.search.history import summarise

RANGE = Span(between=(10_000.0, 5_000_000.0))
SLIDE = Dimension("slide", "duration", "lower", "how often a window fires")
HEIGHT = Dimension("height", "count", "higher", "levels of the hierarchy")


def test_a_grid_steps_by_the_precision_and_ends_at_the_end() -> None:
    values = grid(100, 130, 0.1)
    assert values == (100, 110, 121, 130)
    assert grid(0, 1000, 1.0)[:2] == (0, 0.001)
    assert grid(5, 5, 0.1) == (5,)


def test_a_range_of_counts_is_whole_numbers_as_close_as_the_precision_requires() -> None:
    assert listed(Span(between=(1, 5)), "count", 0.05) == (1, 2, 3, 4, 5)
    wide = listed(Span(between=(1, 100_000)), "count", 0.05)
    assert wide[0] == 1
    assert wide[-1] == 100_000
    assert len(wide) < 250
    assert all(v == int(v) for v in wide)
    assert all(b - a == 1 or b / a <= 1.05 for a, b in pairwise(wide))


UP_TO_THE_END = (
    "sustainable throughput: everything up to 5M events/s passed, the end of the range; raise load.between[1]"
)


def test_sustainable_throughput_is_a_pair_of_loads() -> None:
    finding = only(
        experiment(span=Span(values=(712_000.0, 746_000.0, 800_000.0))), lambda a: verdict(a.value < 730_000)
    )
    assert finding.sentence == "sustainable throughput: 712k events/s passed, 746k events/s failed (4.8 % apart)"
    assert (finding.line, finding.engine, finding.dimension, finding.unit) == ("", "simulated", "load", "rate")
    assert finding.notes == ()


def test_when_all_pass_the_finding_names_the_end_to_move() -> None:
    for strategy in STRATEGIES:
        finding = only(experiment(span=RANGE, strategy=strategy), lambda _: HOLDS)
        assert finding.status == "all-hold"
        assert finding.sentence == UP_TO_THE_END
        assert finding.fails is None
    listed_values = only(experiment(), lambda _: HOLDS)
    assert listed_values.sentence == (
        "sustainable throughput: everything up to 5 events/s passed, the end of the range; add a higher value to load"
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_case_14_a_search_that_holds_up_to_the_maximum_reliable_load_is_limited_by_the_driver(
    strategy: Strategy,
) -> None:
    limited = replace(experiment(span=RANGE, strategy=strategy), ceiling=2_000_000.0)
    (finding,), past = found(limited, lambda _: HOLDS)
    assert max(result.ask.value for result in past) == 2_000_000
    assert finding.status == "all-hold"
    assert finding.sentence == (
        "sustainable throughput: at least 2M events/s passed; streamgauge can generate at most 2M events/s reliably on "
        "this machine, so the limit of the engine is not known: run `streamgauge calibrate`, or give the load driver "
        "more cores"
    )
    assert exit_code_of([finding], {result.trial: result.verdict for result in past}) is ExitCode.OK


def test_case_14_a_maximum_rate_above_the_range_limits_nothing() -> None:
    finding = only(replace(experiment(span=RANGE, strategy="adaptive"), ceiling=6_000_000.0), lambda _: HOLDS)
    assert finding.sentence == UP_TO_THE_END


def test_when_none_passes_the_finding_names_the_end_to_move() -> None:
    for strategy in STRATEGIES:
        finding = only(experiment(span=RANGE, strategy=strategy), lambda _: FAILS)
        assert finding.status == "none-holds"
        assert finding.sentence == (
            "sustainable throughput: even 10k events/s, the lowest load of the range, missed the objective; "
            "lower load.between[0]"
        )
        assert finding.holds is None


def test_demand_reads_as_instances_that_a_load_needs() -> None:
    loads, counts = Span(values=(20_000.0, 50_000.0, 90_000.0)), Span(values=(1.0, 2.0, 3.0, 4.0))
    question = experiment("demand", loads, "linear", instances=counts)
    findings, past = found(question, lambda request: verdict(dict(request.fixed)["load"] <= 20_000 * request.value))
    assert [f.sentence for f in findings] == [
        "load 20k/s needs 1 instance, the smallest number",
        "load 50k/s needs 3 instances (2 fail)",
        "load 90k/s fails even with 4 instances, the end of the range; add a higher value to instances",
    ]
    failing = next(t.trial for t in past if t.ask.purpose == "confirm" and t.verdict is FAILS)
    assert findings[2].notes == (
        f"2 or fewer instances were not tested, because 2 already failed at the lower load 50k/s (trial {failing})",
    )
    assert {t.ask.value for t in past if dict(t.ask.fixed)["load"] == 90_000} == {3, 4}


def test_demand_of_a_load_whose_middle_is_undecided_is_an_upper_bound() -> None:
    question = experiment("demand", Span(values=(50_000.0,)), instances=Span(values=(1.0, 2.0, 3.0)))
    finding = only(question, lambda request: UNDECIDED if request.value == 2 else verdict(request.value == 3))
    assert finding.status == "wide"
    assert finding.sentence.startswith("load 50k/s needs at most 3 instances (1 fails")


def test_an_undecided_lower_load_leaves_its_gap_to_the_next() -> None:
    """Only what failed is taken over: two instances were undecided at the lower load, so they are tried again."""
    question = experiment("demand", Span(values=(10.0, 20.0)), instances=Span(values=(1.0, 2.0, 3.0)))

    def answer(request: TrialRequest) -> Verdict:
        return UNDECIDED if request.value == 2 and dict(request.fixed)["load"] == 10 else verdict(request.value >= 3)

    findings, past = found(question, answer)
    assert {t.ask.value for t in past if dict(t.ask.fixed)["load"] == 20} == {2, 3}
    assert findings[1].sentence == "load 20/s needs 3 instances (2 fail)"


def test_capacity_has_one_bounds_for_each_number_of_instances() -> None:
    question = experiment("capacity", RANGE, instances=Span(values=(1.0, 4.0)))
    findings, _ = found(question, lambda request: verdict(request.value <= 100_000 * dict(request.fixed)["instances"]))
    assert [f.line for f in findings] == ["instances=1", "instances=4"]
    assert findings[1].sentence.startswith("sustainable throughput with 4 instances: 3")
    for finding, boundary in zip(findings, (100_000, 400_000), strict=True):
        assert finding.holds
        assert finding.fails
        assert finding.holds.value <= boundary < finding.fails.value


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_shortest_slide_is_found_where_lower_is_harder(strategy: Strategy) -> None:
    between = Span(between=(10e6, 1000e6))
    finding = only(
        experiment("extreme", between, strategy, dimension=SLIDE), lambda request: verdict(request.value >= 130e6)
    )
    assert finding.status == "bracketed"
    assert finding.holds
    assert finding.fails
    assert finding.fails.value < 130e6 <= finding.holds.value
    assert finding.width is not None
    assert finding.width <= 0.05 * 1.0001
    assert finding.sentence.startswith("slide: 1")
    shortest = only(experiment("extreme", between, strategy, dimension=SLIDE), lambda _: HOLDS)
    assert shortest.sentence == "slide: everything down to 10ms passed, the end of the range; lower slide.between[0]"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_greatest_height_is_a_whole_number(strategy: Strategy) -> None:
    question = experiment("extreme", Span(between=(1, 9)), strategy, dimension=HEIGHT)
    finding = only(question, lambda request: verdict(request.value <= 4))
    assert finding.sentence == "height: 4 passed, 5 failed (25.0 % apart)"
    assert finding.status == "bracketed"


def test_a_fixed_measurement_has_every_load_with_every_number_of_instances() -> None:
    question = experiment("nothing", Span(values=(10.0, 20.0)), instances=Span(values=(1.0, 2.0)), repetitions=2)
    findings, past = found(question, lambda request: verdict(request.value <= 10 * dict(request.fixed)["instances"]))
    assert [(dict(t.ask.fixed)["instances"], t.ask.value, t.ask.repetition) for t in past] == [
        (n, load, repetition) for n in (1, 2) for load in (10, 20) for repetition in (0, 1)
    ]
    assert {t.ask.purpose for t in past} == {"measure"}
    assert [f.line for f in findings] == [f"instances={n}, load={v}" for n in (1, 2) for v in (10, 20)]
    assert {f.status for f in findings} == {"measured"}
    assert findings[1].sentence == "with 1 instance: measured at 20/s, an objective was missed"
    assert [f.trials for f in findings] == [2, 2, 2, 2]


def test_a_crash_in_a_plain_measurement_is_a_failure_of_the_system_under_test() -> None:
    plain = experiment("nothing", Span(values=(200.0, 300.0)))
    findings, _ = found(plain, lambda a: CRASHES if a.value > 250 else HOLDS)
    assert findings[0].sentence == "measured at 200/s, every objective was met"
    assert findings[1].sentence == (
        "measured at 300/s, the system under test failed: the system under test exited with code 137"
    )


def test_a_plain_measurement_of_a_profile_offers_the_profile_as_it_is() -> None:
    shape = LoadProfile("steps", (Piece(10 * SECOND, 100.0, 100.0), Piece(10 * SECOND, 300.0, 300.0)))
    question = replace(experiment("nothing", Span()), profile=shape, trial=TrialPlan(duration=20 * SECOND))
    findings, past = found(question, lambda _: HOLDS)
    assert [(t.ask.dimension, t.ask.value) for t in past] == [("load", 200.0)]
    assert findings[0].sentence == "measured at a planned load of 200/s, every objective was met"
    later = [replace(past[0], load=250.0)]
    (judged,) = build(question, "simulated").findings(later)
    assert judged.sentence == "measured at 250/s, every objective was met"
    assert judged.line == findings[0].line, "the line of a result is what was asked"


def test_a_profile_that_was_not_measured_is_named_by_its_planned_load() -> None:
    shape = LoadProfile("ramp", (Piece(10 * SECOND, 100.0, 300.0),))
    question = replace(experiment("nothing", Span()), profile=shape, trial=TrialPlan(duration=10 * SECOND))
    (finding,) = build(question, "simulated").findings([])
    assert finding.sentence.startswith("a planned load of 200/s not measured")


def test_the_bounds_of_a_searched_profile_have_a_note_on_the_loads_at_which_they_were_judged() -> None:
    shape = LoadProfile("ramp", (Piece(10 * SECOND, 100.0, 300.0),))
    question = replace(experiment("sustainable-throughput", Span(values=(200.0, 400.0, 800.0))), profile=shape)
    search = build(question, "simulated")
    past = [replace(t, load=1.1 * t.ask.value) for t in play(search, lambda a: verdict(a.value < 700))]
    (finding,) = build(question, "simulated").findings(past)
    said = "is the mean of the profile over the planned length; its trials were judged at"
    assert finding.sentence == "sustainable throughput: 400 events/s passed, 800 events/s failed (100.0 % apart)"
    assert f"400/s {said} 440/s, the mean over their measurement phase" in finding.notes
    assert f"800/s {said} 880/s, the mean over their measurement phase" in finding.notes
    near = [replace(t, load=1.001 * t.ask.value) for t in past]
    (finding,) = build(question, "simulated").findings(near)
    assert not [note for note in finding.notes if said in note]


def test_adaptive_on_a_list_continues_near_the_estimate() -> None:
    values = tuple(float(v) for v in range(10, 1000, 10))
    requested: list[float] = []

    def judge(request: TrialRequest) -> Verdict:
        requested.append(request.value)
        if request.value <= 433:
            return HOLDS
        return Verdict(VerdictKind.OVERLOADED, ("the lag grows",), estimate=Estimate(431.0, 5.0))

    finding = only(experiment(span=Span(values=values), strategy="adaptive"), judge)
    assert finding.sentence.startswith("sustainable throughput: 430 events/s passed, 440 events/s failed")
    assert requested == [990, 430, 440, 430, 440]


def test_adaptive_on_a_list_survives_an_estimate_that_is_far_off() -> None:
    values = tuple(float(v) for v in range(1, 101))

    def judge(request: TrialRequest) -> Verdict:
        estimate = Estimate(3.0, 0.001)
        return HOLDS if request.value <= 80 else Verdict(VerdictKind.OVERLOADED, (), estimate=estimate)

    findings, past = found(experiment(span=Span(values=values), strategy="adaptive"), judge)
    assert findings[0].sentence.startswith("sustainable throughput: 80 events/s passed, 81 events/s failed")
    assert len(past) < 15


def test_estimates_are_pooled_by_their_precision() -> None:
    axis = SearchAxis("load", "rate", True, 1.0, 100.0)
    verdicts = [Verdict(VerdictKind.OVERLOADED, (), estimate=Estimate(b, e)) for b, e in ((10.0, 1.0), (20.0, 2.0))]
    verdicts.append(Verdict(VerdictKind.INVALID, (), estimate=Estimate(90.0, 0.1)))
    history = summarise(
        axis, [TrialResult(TrialRequest("load", 50.0, "probe"), v, i) for i, v in enumerate(verdicts, 1)]
    )
    assert history.pooled
    assert history.pooled.boundary == pytest.approx((10 / 1 + 20 / 4) / (1 + 1 / 4))
    assert history.pooled.error == pytest.approx((1 + 1 / 4) ** -0.5)


def test_full_length_trials_that_go_on_contradicting_each_other_leave_the_value_undecided() -> None:
    axis = SearchAxis("load", "rate", True, 1.0, 100.0)
    requests = [
        TrialResult(TrialRequest("load", 50.0, "confirm", (), i), v, i + 1) for i, v in enumerate((HOLDS, FAILS, HOLDS))
    ]
    (entry,) = summarise(axis, requests).entries
    assert entry.state is None
    assert entry.contradictory
    assert summarise(axis, requests[:1]).state(50.0) is True


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_forecast_spans_what_really_happens(strategy: Strategy) -> None:
    values = Span(values=tuple(float(v) for v in range(1, 13)))
    search = build(experiment(span=values, strategy=strategy, repetitions=2), "simulated")
    forecast = search.forecast()
    inherited = [len(play(search, lambda request, b=b: verdict(request.value <= b))) for b in range(13)]  # type: ignore[misc]
    assert forecast.min_trials <= forecast.likely_trials <= forecast.max_trials
    assert forecast.min_full_length <= forecast.likely_full_length <= forecast.max_full_length <= forecast.max_trials
    assert min(inherited) == forecast.min_trials
    if strategy != "adaptive":  # real trials without an estimate take longer than the forecast's with one
        assert max(inherited) == forecast.max_trials


def test_the_forecast_of_a_plain_measurement_is_exact() -> None:
    forecast = build(experiment("nothing", Span(values=(1.0, 2.0)), repetitions=3, instances=ONE), "").forecast()
    assert (forecast.min_trials, forecast.likely_trials, forecast.max_trials) == (6, 6, 6)
    assert (forecast.min_full_length, forecast.max_full_length) == (6, 6)
