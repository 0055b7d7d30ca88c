"""DESIGN's table "Which verdict, which exit code": a row each, with the sentence that carries its number."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from judge_samples import CHECKED, LAG, LOAD, latencies, objective, recording, seconds, trial, walk

from streamgauge.judge import decide, measure
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.objective import Metric, Objective
from streamgauge.model.seconds import Account, Kind, Latencies
from streamgauge.model.trial import Ending, Recording
from streamgauge.model.units import SECOND

LOST = objective("lost", "==", 0)


def judge(happened: Recording, *objectives: Objective) -> Verdict:
    return decide(happened, measure(happened), objectives or (LAG, LOST))


def rows(nanos: int, length: int = 60) -> Latencies:
    """Ten rows of one latency in every second."""
    return latencies([(s, nanos, 10) for s in range(length)])


def spread(length: int = 60, kind: Kind = "event-time") -> dict[Kind, Latencies]:
    """A latency of 1 … 100 × 10 ms in turn, ten rows each."""
    return {kind: latencies([(s, (k + 1) * 10_000_000, 10) for s in range(length) for k in range(100)])}


def test_a_queue_that_does_not_grow_is_sustained() -> None:
    verdict = judge(recording(walk(0.0)))
    assert (verdict.kind, verdict.holds, verdict.stops_run) == (VerdictKind.SUSTAINED, True, False)
    assert verdict.reasons[0].startswith("lag growth -")
    assert verdict.reasons[0].endswith("limit 1.00 %): objective met")


def test_a_queue_that_grows_more_than_allowed_is_overloaded_and_states_where_the_boundary_is() -> None:
    verdict = judge(recording(walk(0.2, noise=0.0)))
    assert (verdict.kind, verdict.holds, verdict.stops_run) == (VerdictKind.OVERLOADED, False, False)
    (why,) = verdict.reasons
    assert why.startswith("lag growth 20k events/s, 20.00 % of the load")
    assert verdict.estimate is not None
    assert verdict.estimate.boundary == pytest.approx(0.8 * LOAD / 0.99, rel=0.01)


def test_an_interval_that_straddles_the_threshold_is_undecided() -> None:
    verdict = judge(recording(walk(0.012, noise=0.05)))
    assert (verdict.kind, verdict.holds) == (VerdictKind.UNDECIDED, None)
    assert "60 s of measurement are not enough to decide at this noise level" in verdict.reasons[0]


def test_too_few_acknowledgements_are_undecided() -> None:
    verdict = judge(recording([5.0, 5.0, 5.0]))
    assert verdict.kind is VerdictKind.UNDECIDED
    assert verdict.reasons == ("too few acknowledgements in 3 s for a trend; increase trial.duration",)


def test_too_few_outputs_for_a_latency_trend_are_undecided() -> None:
    verdict = judge(recording(), objective("latency-trend", "<=", 0.01))
    assert verdict.kind is VerdictKind.UNDECIDED
    assert "too few outputs in 60 s" in verdict.reasons[0]


def test_a_queue_at_its_bound_is_overloaded_also_when_nothing_else_is_clear() -> None:
    verdict = judge(recording([5.0, 5.0, 5.0], ending="queue-full", detail="more than 1M events waited"))
    assert verdict.kind is VerdictKind.OVERLOADED
    assert verdict.reasons == ("the queue reached its limit (more than 1M events waited) at 100k/s; lower the load",)


@pytest.mark.parametrize(
    ("ending", "said"),
    [("crashed", "crashed"), ("stalled", "stalled"), ("dropped", "closed its connection to the queue")],
)
def test_a_system_that_breaks_down_at_a_load_has_failed_there_and_shows_its_log(ending: Ending, said: str) -> None:
    log = tuple(f"line {i}" for i in range(9))
    verdict = judge(recording(ending=ending, detail="exit code 137", log_tail=log))
    assert (verdict.kind, verdict.holds, verdict.stops_run) == (VerdictKind.FAILED, False, False)
    assert verdict.reasons[0] == f"the system under test {said} at 100k/s: exit code 137"
    assert verdict.reasons[1:] == tuple(f"its log: line {i}" for i in range(4, 9))


def test_a_system_that_fails_before_the_load_stops_a_search_over_the_load_and_shows_its_log() -> None:
    why = "it did not start: spark (process 7) ended with exit code 1 before it was ready"
    crashed = recording(ending="crashed", detail=why, log_tail=("no such option",))
    crashed = replace(crashed, outcome=replace(crashed.outcome, unready=True))
    verdict = judge(crashed)
    assert verdict.kind is VerdictKind.FAILED
    assert verdict.reasons == (
        f"the system under test failed before the load started: {why}",
        "its log: no such option",
    )
    assert verdict.stops_run, "no other load would change it"
    other = replace(crashed, trial=replace(crashed.trial, ask=replace(crashed.trial.ask, dimension="window")))
    assert not judge(other).stops_run, "another window might"


def test_an_error_in_the_users_code_is_theirs_however_busy_the_machine_was() -> None:
    why = "your function failed at my_job.py:28: ValueError: no price like 6832"
    crashed = recording(ending="crashed", detail=why, log_tail=("raise ValueError",), disturbances=("a hog ran",))
    assert judge(crashed).kind is VerdictKind.INVALID
    verdict = judge(replace(crashed, outcome=replace(crashed.outcome, users_fault=True)))
    assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)
    assert verdict.reasons == (why, "trace: raise ValueError")


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (replace(CHECKED, lost=7, observed=9993), "7 of 10k outputs were lost"),
        (replace(CHECKED, wrong=12), "12 of 10k outputs were wrong"),
        (replace(CHECKED, duplicate=3, observed=10_003), "3 of 10k outputs were duplicated"),
    ],
)
def test_lost_wrong_and_doubled_outputs_fail_and_stop_the_run_also_where_no_objective_names_them(
    account: Account, said: str
) -> None:
    verdict = judge(recording(account=account), LAG)
    assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)
    assert verdict.reasons[0].startswith(said)


@pytest.mark.parametrize("metric", ["lost", "duplicate", "wrong", "late"])
def test_an_objective_that_names_a_fault_decides_how_much_of_it_is_allowed(metric: Metric) -> None:
    account = Account(10_000, 10_000, checked=True)
    faulty = {"lost": replace(account, lost=50), "duplicate": replace(account, duplicate=50)}
    faulty |= {"wrong": replace(account, wrong=50), "late": replace(account, late=50)}
    happened = recording(account=faulty[metric])
    for limit in (objective(metric, "<=", 0.01, relative=True), objective(metric, "<=", 50)):
        assert judge(happened, LAG, limit).kind is VerdictKind.SUSTAINED
    for limit in (
        objective(metric, "<=", 0.001, relative=True),
        objective(metric, "==", 0),
        objective(metric, "<", 50),
    ):
        verdict = judge(happened, LAG, limit)
        assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)
        assert verdict.reasons[0].startswith("50 outputs ")


def test_no_output_at_all_fails_and_stops_the_run() -> None:
    verdict = judge(recording(account=Account(expected=400, checked=True)))
    assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)
    assert verdict.reasons == (
        "the system under test read its input at 100k/s but produced none of the 400 expected outputs",
    )


def test_outputs_that_were_not_checked_do_not_count_as_missing() -> None:
    assert judge(recording(account=Account(expected=400)), LAG).kind is VerdictKind.SUSTAINED


FAULTS = {
    "generator short": (recording(published=0.99 * LOAD), "sent 99.00 % of the planned events (minimum 99.5 %)"),
    "send delay": (recording(send_delay=180e6), "p99 send delay 180.1 ms (limit 150 ms for lag-trend <= 1%)"),
    "standstill": (recording(schedule_lag=300e6), "send delay 300 ms (limit 250 ms): the load generator paused"),
    "clock step": (recording(clock_step=2 * SECOND), "the wall clock jumped by 2 s"),
    "clock step back": (recording(clock_step=-2 * SECOND), "the wall clock jumped by 2 s"),
    "run delay": (recording(walk(0.5), run_delay=0.2 * SECOND), "waited for a CPU 20 % of the time (limit 10 %)"),
    "driver failed": (
        recording(account=Account(), ending="driver-failed", detail="no memory"),
        "the load driver failed: no memory",
    ),
    "disturbance": (recording(disturbances=("the broker died after 3 s",)), "the broker died after 3 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_the_driver_or_the_machine_did_wrong_makes_the_trial_invalid(fault: str) -> None:
    happened, said = FAULTS[fault]
    verdict = judge(happened)
    assert (verdict.kind, verdict.holds, verdict.estimate) == (VerdictKind.INVALID, None, None)
    (why,) = verdict.reasons
    assert said in why


def test_what_is_within_the_bounds_does_not_make_a_trial_invalid() -> None:
    near = recording(
        published=0.9951 * LOAD,
        send_delay=49e6,
        schedule_lag=249e6,
        clock_step=9e6,
        run_delay=0.09 * SECOND,
        foreign=49_000,
    )
    assert judge(near).kind is VerdictKind.SUSTAINED


@pytest.mark.parametrize("ending", ["crashed", "stalled", "dropped"])
def test_a_system_that_ended_while_the_machine_was_disturbed_is_invalid_with_its_counts(ending: Ending) -> None:
    awful = Account(expected=100, lost=100, checked=True)
    happened = recording(walk(0.5), ending=ending, account=awful, clock_step=SECOND, run_delay=SECOND)
    verdict = judge(happened)
    assert (verdict.kind, verdict.stops_run) == (VerdictKind.INVALID, False)
    assert verdict.reasons[2:] == (
        "outputs compared with the reference result: 100 lost, 0 duplicate, 0 wrong of 100 expected",
    )


def test_wrong_output_wins_over_an_overload() -> None:
    assert judge(recording(walk(0.5), account=replace(CHECKED, wrong=1))).kind is VerdictKind.FAILED


def test_one_broken_objective_is_enough_and_only_it_is_named() -> None:
    verdict = judge(recording(walk(0.0), kinds={"event-time": rows(3 * SECOND)}, firings=10), LAG, p("p99", 2.0))
    assert verdict.kind is VerdictKind.OVERLOADED
    (why,) = verdict.reasons
    assert why == "event-time p99 3 s over 600 window results, 600 of them above the limit (objective < 2 s): missed"
    assert [c.state for c in verdict.checks] == ["holds", "broken"]


def test_a_broken_objective_decides_also_when_another_is_unclear() -> None:
    happened = recording(walk(0.012, noise=0.05), kinds={"event-time": rows(3 * SECOND)}, firings=10)
    assert judge(happened, LAG, p("p99", 2.0)).kind is VerdictKind.OVERLOADED


def test_an_unclear_objective_is_never_called_sustained() -> None:
    happened = recording(walk(0.012, noise=0.05), kinds={"event-time": rows(SECOND)}, firings=10)
    assert judge(happened, LAG, p("p99", 2.0)).kind is VerdictKind.UNDECIDED


@pytest.mark.parametrize("relative", [True, False])
def test_a_lag_trend_is_allowed_as_a_share_of_the_load_or_in_events_per_second(relative: bool) -> None:
    strict = objective("lag-trend", "<=", 0.03 if relative else 3000, relative=relative)
    mild = objective("lag-trend", "<=", 0.07 if relative else 7000, relative=relative)
    happened = recording(walk(0.05))
    assert judge(happened, strict).kind is VerdictKind.OVERLOADED
    assert judge(happened, mild).kind is VerdictKind.SUSTAINED
    estimate = judge(happened, strict).estimate
    assert estimate is not None
    assert estimate.boundary == pytest.approx(95_000 / 0.97 if relative else 98_000, rel=0.005)


@pytest.mark.parametrize(("allowed", "kind"), [(0.3, VerdictKind.SUSTAINED), (0.26, VerdictKind.OVERLOADED)])
def test_an_objective_that_allows_much_growth_is_not_overruled_by_growth_that_it_allows(
    allowed: float, kind: VerdictKind
) -> None:
    """A queue that grows by a quarter of the load or more runs away, unless the objective allows as much."""
    happened = recording(walk(0.28, noise=0.0))
    assert measure(happened).runaway
    verdict = judge(happened, objective("lag-trend", "<=", allowed, relative=True))
    assert verdict.kind is kind
    assert verdict.reasons[0].endswith("objective met") == (kind is VerdictKind.SUSTAINED)
    assert judge(happened, objective("queue", "<=", 100, relative=True)).kind is VerdictKind.OVERLOADED


def test_a_latency_trend_is_seconds_gained_per_second() -> None:
    grows = latencies([(s, 10**9 + s * 20_000_000 + (s % 3) * 1_000_000, 10) for s in range(60)])
    happened = recording(kinds={"event-time": grows}, firings=1)
    verdict = judge(happened, objective("latency-trend", "<=", 0.01))
    assert verdict.kind is VerdictKind.OVERLOADED
    assert verdict.reasons[0].startswith("growth of the event-time latency 20")
    assert judge(happened, objective("latency-trend", "<=", 0.03)).kind is VerdictKind.SUSTAINED


@pytest.mark.parametrize(("allowed", "kind"), [(0.05, VerdictKind.SUSTAINED), (0.02, VerdictKind.OVERLOADED)])
def test_an_output_error_is_how_far_the_number_of_outputs_is_off(allowed: float, kind: VerdictKind) -> None:
    happened = recording(account=Account(expected=1000, observed=970, checked=True))
    verdict = judge(happened, objective("output-error", "<=", allowed))
    assert verdict.kind is kind
    outcome = "met" if kind is VerdictKind.SUSTAINED else "missed"
    shown = "970 outputs instead of 1000, a difference of 3 %"
    assert verdict.reasons == (f"{shown} (objective output-error <= {allowed}): {outcome}",)


def test_an_output_error_of_nothing_expected_is_undecided() -> None:
    verdict = judge(recording(account=Account(checked=True)), objective("output-error", "<=", 0.1))
    assert verdict.kind is VerdictKind.UNDECIDED


def test_lag_growth_is_the_lag_at_the_end_less_that_at_the_beginning() -> None:
    happened = recording(walk(0.01, noise=0.0))
    for relative, base in ((True, 1.0), (False, LOAD)):
        assert judge(happened, objective("lag-growth", "<=", 0.6 * base, relative=relative)).holds is True
        assert judge(happened, objective("lag-growth", "<=", 0.5 * base, relative=relative)).holds is False
    assert "59k events" in judge(happened, objective("lag-growth", "<=", 0)).reasons[0]


def test_the_queue_is_the_longest_one_of_the_judged_seconds() -> None:
    happened = recording([*([9e5] * 10), *([2e5] * 50)], of=trial(warmup=10))
    for relative, base in ((True, 1.0), (False, LOAD)):
        assert judge(happened, objective("queue", "<=", 2 * base, relative=relative)).holds is True
        assert judge(happened, objective("queue", "<", 2 * base, relative=relative)).holds is False
    assert "up to 200k events (2 s of load) waited" in judge(happened, objective("queue", "<", 1)).reasons[0]


def test_drops_are_counted_over_the_whole_trial() -> None:
    verdict = judge(recording(drops=1), objective("drops", "==", 0))
    assert verdict.kind is VerdictKind.OVERLOADED
    assert "closed its connection to the queue 60 times" in verdict.reasons[0]
    assert judge(recording(drops=0), objective("drops", "==", 0)).kind is VerdictKind.SUSTAINED


def p(statistic: str, limit: float, metric: Metric = "event-time") -> Objective:
    return replace(objective(metric, "<", limit * SECOND), statistic=statistic)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["event-time", "processing-time"])
@pytest.mark.parametrize(
    ("statistic", "value"),
    [
        *(("avg", 0.505), ("min", 0.01), ("max", 1.0), ("p5", 0.05), ("p50", 0.5)),
        *(("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 1.0)),
    ],
)
def test_every_statistic_of_a_latency_is_compared_with_its_limit(
    kind: Literal["event-time", "processing-time"], statistic: str, value: float
) -> None:
    happened = recording(kinds=spread(kind=kind), firings=100)
    assert judge(happened, p(statistic, value * 1.01, kind)).kind is VerdictKind.SUSTAINED
    broken = judge(happened, p(statistic, value * 0.99, kind))
    assert broken.kind is VerdictKind.OVERLOADED
    assert broken.reasons[0].startswith(f"{kind} {statistic} ")


def test_outputs_without_latencies_are_undecided_and_the_sentence_states_what_to_put_out() -> None:
    verdict = judge(recording(), p("p99", 2.0))
    assert verdict.kind is VerdictKind.UNDECIDED
    assert "the outputs have no columns max_due" in verdict.reasons[0]


def test_a_trial_that_ends_early_is_judged_by_the_rule_of_short_trials() -> None:
    lag = walk(0.0, 30, noise=0.002)
    probe = Recording(trial(purpose="probe"), seconds(lag))
    assert judge(probe, LAG).kind is VerdictKind.SUSTAINED
    steep = Recording(trial(purpose="probe"), seconds(walk(0.5, 12)))
    assert judge(steep, LAG).kind is VerdictKind.OVERLOADED


def test_every_reason_contains_a_number() -> None:
    happened = [recording(walk(g)) for g in (0.0, 0.012, 0.3)] + [f for f, _ in FAULTS.values()]
    for verdict in map(judge, happened):
        assert verdict.reasons
        for reason in verdict.reasons:
            assert any(c.isdigit() for c in reason) or "no memory" in reason


def test_case_11_micro_batches_that_settle_at_a_finite_lag_are_not_overloaded() -> None:
    """A cost of a + b·load: lag grows by a third of the load per second until the batches are large enough."""
    settles = np.concatenate([np.linspace(1, 10, 15), np.full(15, 10.0)]) * LOAD
    assert measure(recording(settles)).runaway
    assert judge(recording(settles), LAG).kind is VerdictKind.UNDECIDED
    assert judge(recording(np.linspace(1, 10, 30) * LOAD), LAG).kind is VerdictKind.OVERLOADED


def test_case_11_a_latency_that_settles_is_not_overloaded() -> None:
    """It grows by 40 ms per second in the first half of a minute only, and by 20 ms in the mean."""
    settles = [(s, 10**9 + min(s, 30) * 40_000_000 + (s % 3) * 1_000_000, 10) for s in range(60)]
    grows = [(s, 10**9 + s * 20_000_000 + (s % 3) * 1_000_000, 10) for s in range(60)]
    allowed = objective("latency-trend", "<=", 0.01)
    verdicts = [
        judge(recording(kinds={"event-time": latencies(rows)}, firings=1), allowed).kind for rows in (settles, grows)
    ]
    assert verdicts == [VerdictKind.UNDECIDED, VerdictKind.OVERLOADED]
