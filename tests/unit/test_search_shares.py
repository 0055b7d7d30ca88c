"""After both bounds are found, shares of the passing load are measured; they never change the bounds."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from search_replay import (
    CRASHES,
    FAILS,
    FALSIFIED,
    FIVE,
    INVALID,
    STRATEGIES,
    UNDECIDED,
    Answer,
    experiment,
    found,
    only,
    play,
    verdict,
)

from streamgauge.model.experiment import Experiment, Span, Strategy
from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Verdict
from streamgauge.model.trial import Purpose, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.parse import read
from streamgauge.run.explore import explore
from streamgauge.run.trial.setup import RunLimits
from streamgauge.search import build, shares
from streamgauge.search.axes import SearchAxis
from streamgauge.store import Store

RANGE = Span(between=(10_000.0, 5_000_000.0))
ALSO = (0.9, 0.5)
SEARCHING = [s for s in STRATEGIES if s != "full"]
"""Strategies that leave gaps: a full search has confirmed something near every share."""


def question(strategy: Strategy = "binary", span: Span = RANGE, also: tuple[float, ...] = ALSO) -> Experiment:
    return experiment(span=span, strategy=strategy, also=also)


def boundary_of(span: Span) -> float:
    return 3.5 if span.values else 730_000.0


def truth(span: Span = RANGE, beside: Verdict | None = None) -> Answer:
    """Right about every load; about shares of what holds it says ``beside``, if that is given."""
    return lambda request: (
        beside if beside and request.purpose == "measure" else verdict(request.value <= boundary_of(span))
    )


@pytest.mark.parametrize("strategy", SEARCHING)
@pytest.mark.parametrize("span", [FIVE, RANGE])
def test_every_strategy_measures_the_shares_last_and_finds_what_it_would_find_without(
    strategy: Strategy, span: Span
) -> None:
    (plain,), before = found(question(strategy, span, also=()), truth(span))
    (finding,), past = found(question(strategy, span), truth(span))
    assert [t.ask for t in past[:-2]] == [t.ask for t in before]
    assert finding.holds is not None
    assert [t.ask.purpose for t in past[-2:]] == ["measure", "measure"]
    assert [t.ask.value for t in past[-2:]] == pytest.approx([s * finding.holds.value for s in ALSO], rel=1e-3)
    assert finding.also == ((0.9, len(past) - 1), (0.5, len(past)))
    assert finding.trials == len(past)
    assert (finding.status, finding.holds, finding.fails) == (plain.status, plain.holds, plain.fails)
    assert (finding.sentence, finding.notes) == (plain.sentence, plain.notes)


@pytest.mark.parametrize("beside", [FAILS, UNDECIDED, CRASHES])
@pytest.mark.parametrize("strategy", SEARCHING)
def test_a_share_that_does_not_pass_is_a_note_and_not_a_new_search(strategy: Strategy, beside: Verdict) -> None:
    (plain,), before = found(question(strategy, also=()), truth())
    (finding,), past = found(question(strategy, also=(0.9,)), truth(beside=beside))
    assert len(past) == len(before) + 1
    assert (finding.status, finding.holds, finding.fails) == (plain.status, plain.holds, plain.fails)
    (note,) = set(finding.notes) - set(plain.notes)
    assert note.startswith("90 % of the passing load (")
    assert note.endswith(
        f"was {beside.kind} in trial {len(past)}, which does not change the bounds: {beside.reasons[0]}"
    )


def test_an_invalid_share_is_repeated_and_another_trial_counts() -> None:
    requests: list[TrialRequest] = []

    def stormy(request: TrialRequest) -> Verdict:
        requests.append(request)
        return (
            INVALID
            if request.purpose == "measure" and requests.count(request) < 3
            else verdict(request.value <= 730_000)
        )

    finding = only(question(also=(0.9,)), stormy)
    assert len(set(requests[-3:])) == 1
    assert finding.also == ((0.9, len(requests)),)
    assert not any("90 %" in note for note in finding.notes)


def test_a_share_that_stays_invalid_leaves_the_bounds_with_a_note() -> None:
    (plain,), before = found(question(also=()), truth())
    (finding,), past = found(question(), truth(beside=INVALID))
    assert len(past) == len(before) + 2 * 3
    assert (finding.status, finding.holds, finding.fails, finding.also) == ("bracketed", plain.holds, plain.fails, ())
    assert sum("was not measured: INVALID 3 times (trials" in note for note in finding.notes) == 2


def test_wrong_output_at_a_share_is_wrong_output() -> None:
    finding = only(question(), truth(beside=FALSIFIED))
    assert finding.status == "failed"
    assert "12 outputs are wrong" in finding.sentence


def test_a_run_that_ends_before_the_shares_are_measured_keeps_its_bounds_and_reports_it() -> None:
    search = build(question(also=(0.9,)), "simulated")
    past = play(search, truth())[:-1]
    (finding,) = search.findings(past, "the budget of 5m is spent")
    assert finding.status == "bracketed"
    assert finding.also == ()
    assert any(n.startswith("90 % of ") and n.endswith("the budget of 5m is spent") for n in finding.notes)


def test_where_nothing_holds_there_is_no_share_of_it() -> None:
    (finding,), past = found(question(), lambda _: FAILS)
    assert finding.status == "none-holds"
    assert {t.ask.purpose for t in past} <= {"probe", "confirm"}
    assert not any("not measured" in note for note in finding.notes)


def test_where_all_holds_the_share_is_of_the_end_of_the_range() -> None:
    _, past = found(question(also=(0.9,)), lambda request: verdict(request.value <= 5e6))
    assert past[-1].ask == TrialRequest("load", 4_500_000.0, "measure")


def test_a_share_may_lie_below_the_range() -> None:
    _, past = found(question(also=(0.5,), span=Span(between=(1000.0, 1050.0))), lambda _: verdict(True))
    assert past[-1].ask.value == pytest.approx(525, rel=1e-3)


@pytest.mark.parametrize("strategy", SEARCHING)
def test_every_prefix_of_the_past_replays_to_the_same_question(strategy: Strategy) -> None:
    requests: list[TrialRequest] = []

    def stormy(request: TrialRequest) -> Verdict:
        requests.append(request)
        return INVALID if len(requests) % 2 else verdict(request.value <= 730_000)

    _, past = found(question(strategy), stormy)
    for length, result in enumerate(past):
        again = [TrialResult(t.ask, t.verdict, t.trial) for t in past[:length]]
        assert build(question(strategy), "simulated").next(again) == result.ask


@pytest.mark.parametrize("strategy", SEARCHING)
def test_the_forecast_has_the_shares_in_it(strategy: Strategy) -> None:
    plain = build(question(strategy, also=()), "").forecast()
    with_shares = build(question(strategy), "").forecast()
    assert (with_shares.likely_trials, with_shares.likely_full_length) == (
        plain.likely_trials + 2,
        plain.likely_full_length + 2,
    )
    assert with_shares.max_full_length == plain.max_full_length + 2
    assert with_shares.min_full_length == plain.min_full_length, "where nothing holds, there is no share of it"


FILE = """
name: also
workload: windowed-aggregation
engine: {name: simulated, capacity: 730k/s, noise: 3%}
find: sustainable-throughput
load: {between: [10k/s, 5M/s]}
search: {also: [90%]}
trial: {duration: 30s}
"""


def test_a_run_that_is_simulated_measures_at_ninety_percent_and_resumes_to_it(tmp_path: Path) -> None:
    experiment, store, now = read(FILE), Store(tmp_path), datetime(2026, 11, 16, tzinfo=UTC)
    one, other = (store.create(experiment, FILE, {}, now, token) for token in ("one", "other"))
    complete = explore(experiment, one)
    (finding,) = complete.findings
    ((share, number),) = finding.also
    (measured,) = [stored for stored in one.trials() if stored.trial.number == number]
    assert finding.holds is not None
    assert measured.trial.load == pytest.approx(share * finding.holds.value, rel=1e-3)
    assert measured.extent.count >= 30
    # a budget that the search alone spends leaves nothing for the last trial
    cut = explore(experiment, other, RunLimits(budget=complete.trial_time_ns - measured.extent.count * SECOND))
    assert cut.ended
    assert (cut.findings[0].status, cut.findings[0].also) == (finding.status, ())
    assert explore(experiment, other).findings == complete.findings


def test_a_confirmation_within_half_the_precision_is_the_measurement() -> None:
    axis = SearchAxis("load", "rate", upwards=True, easy=10.0, hard=5_000.0)

    def trial_result(value: float, number: int, purpose: Purpose = "confirm", *, holds: bool = True) -> TrialResult:
        return TrialResult(TrialRequest("load", value, purpose), verdict(holds), number)

    experiment = question(also=(0.9,))
    for searched, wanted in (
        ([trial_result(910.0, 1), trial_result(1000.0, 2)], (0.91, 1)),
        ([trial_result(890.0, 1), trial_result(905.0, 3), trial_result(1000.0, 2)], (0.905, 3)),
        ([trial_result(950.0, 1), trial_result(1000.0, 2)], None),  # too far
        ([trial_result(900.0, 1, "probe"), trial_result(1000.0, 2)], None),  # too short
        ([trial_result(900.0, 1, holds=False), trial_result(1000.0, 2)], None),
    ):
        found_parts = shares.requested_shares(experiment, axis, 1000.0, searched, [])
        assert shares.measured(found_parts) == ((wanted,) if wanted else ())
    both = shares.requested_shares(
        experiment, axis, 1000.0, [trial_result(910.0, 1)], [trial_result(900.0, 4, "measure")]
    )
    assert shares.measured(both) == ((0.9, 4),), "what was measured on purpose comes first"
