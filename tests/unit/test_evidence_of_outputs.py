"""What outputs and their latencies prove: hangs, percentiles, checks against the reference, lost outputs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judge_samples import CHECKED, LAG, LOAD, objective, recording, seconds, trial, walk, windowed

from streamgauge.engines.simulated import SimulatedOptions, simulated
from streamgauge.judge import EarlyStopRule, decide, measure
from streamgauge.judge.percentiles import ResultsAbove, min_results
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.objective import Metric, Objective, Statistic
from streamgauge.model.seconds import Account, Seconds
from streamgauge.model.trial import Ending, Outcome, Recording, Trial
from streamgauge.model.units import SECOND
from streamgauge.report.view.findings import outputs_checked
from streamgauge.report.view.run_report import JudgedTrial
from streamgauge.run.explore import setup_of
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import DiscardingRecorder, RunContext

LOST = objective("lost", "==", 0)


def judge(happened: Recording, *objectives: Objective) -> Verdict:
    return decide(happened, measure(happened), objectives or (LAG,))


def hanging(since: int, until: int, length: int = 90) -> Seconds:
    """A system that keeps up, acknowledges nothing between two seconds, and then all that waits."""
    whole = seconds(np.full(length, 0.1 * LOAD))
    silent = slice(since, until)
    for name, value in (("ack_time", -1), ("ack_lag", -1), ("acks", 0), ("acknowledged", 0)):
        whole.columns[name][silent] = value
    whole.columns["ack_lag"][until : until + 1] = int((until - since) * LOAD)
    return whole


def watched(of: Trial, whole: Seconds) -> tuple[Recording, EarlyStopRule]:
    """The trial as far as the watch lets it go on."""
    watch = EarlyStopRule(of, (LAG,))
    for stop in range(1, len(whole) + 1):
        if watch.due(stop) and watch.decided(whole.between(0, stop)):
            break
    ending: Ending = "stalled" if watch.stalled else "completed"
    return Recording(of, whole.between(0, stop), Outcome(ending, account=CHECKED, silence=watch.silence)), watch


def test_case_1_a_trial_whose_system_hangs_at_its_end_continues_until_the_next_acknowledgement() -> None:
    of = trial(duration=27, warmup=3)
    happened, watch = watched(of, hanging(20, 39))
    assert (happened.seconds.stop, watch.stalled) == (40, False)
    assert watch.silence == 20 * SECOND
    assert measure(happened).lag_end == 19 * LOAD, "the lag at that acknowledgement is the last sample"
    assert judge(happened).kind in (VerdictKind.OVERLOADED, VerdictKind.UNDECIDED)


def test_case_1_a_hang_that_the_trend_does_not_show_is_undecided_and_the_sentence_states_how_long_it_was() -> None:
    of = trial(duration=60, warmup=0)
    whole = hanging(56, 61)
    whole.columns["ack_lag"][61] = int(0.1 * LOAD)
    happened, _ = watched(of, whole)
    verdict = judge(happened)
    assert verdict.kind is VerdictKind.UNDECIDED
    assert "acknowledged nothing for 6 s at the end of the trial" in verdict.reasons[0]


def test_case_1_a_system_that_does_not_come_back_within_the_limit_on_stalls_has_failed() -> None:
    happened, watch = watched(trial(duration=27, warmup=3), hanging(20, 90))
    assert watch.stalled
    assert happened.seconds.stop == 20 + 30 + 1
    assert judge(happened).kind is VerdictKind.FAILED


@pytest.mark.parametrize("gap", [1, 4])
def test_case_1_an_acknowledgement_that_is_no_older_than_two_usual_gaps_is_the_last_sample(gap: int) -> None:
    whole = seconds(np.full(90, 0.1 * LOAD))
    for name in ("ack_time", "ack_lag"):
        whole.columns[name][np.arange(90) % gap != 0] = -1
    happened, watch = watched(trial(duration=59, warmup=0), whole)
    assert (happened.seconds.stop, watch.silence) == (59, 0)


def test_case_1_no_trial_waits_for_a_system_that_has_nothing_to_do() -> None:
    whole = hanging(20, 90)
    whole.columns["published"][20:] = 0
    whole.columns["acknowledged"][19] += int(0.1 * LOAD)
    assert watched(trial(duration=27, warmup=3), whole)[1].silence == 0


@pytest.mark.parametrize("limit", [27, 300])
def test_case_1_a_simulated_system_that_hangs_at_the_end_is_not_sustained(limit: int, tmp_path: Path) -> None:
    """It processes nothing from second 20 on, for 20 s, as the reference engine with stall_after and stall of 20 s."""
    options = SimulatedOptions.model_validate(
        {"capacity": "1M/s", "batch_interval": "1s", "pause_every": "40s", "pause": "20s"}
    )
    of = replace(trial(duration=27, limit=limit, warmup=3), options=options.model_dump(), stall=30 * SECOND)
    rule = EarlyStopRule(of, (LAG,))
    recorded = execute(setup_of(of, simulated, DiscardingRecorder(tmp_path), RunContext(), rule))
    assert recorded.seconds.stop in range(40, 43)
    assert recorded.outcome.silence >= 19 * SECOND
    assert judge(recorded).kind in (VerdictKind.OVERLOADED, VerdictKind.UNDECIDED)


def p(statistic: Statistic, limit: float = 2.0) -> Objective:
    return replace(objective("event-time", "<", limit * SECOND), statistic=statistic)


def slow(above: int, of: int) -> Recording:
    """So many window results, one in a second, of which some are far above two seconds; each has fifty rows."""
    values = [(s, 10 * SECOND if s < above else SECOND, 50) for s in range(of)]
    return recording(walk(0.0, of), kinds=windowed(values))


@pytest.mark.parametrize(("statistic", "least"), [("p90", 10), ("p95", 20), ("p99", 100), ("p99.9", 1000)])
def test_case_7_a_percentile_holds_only_with_enough_window_results(statistic: Statistic, least: int) -> None:
    assert judge(slow(0, least), p(statistic)).kind is VerdictKind.SUSTAINED
    few = judge(slow(0, least - 1), p(statistic))
    assert few.kind is VerdictKind.UNDECIDED
    assert f"a {statistic} needs at least {least} window results, so set trial.limit to at least" in few.reasons[0]


def test_case_7_a_p99_is_not_judged_by_the_maximum_of_sixteen_windows() -> None:
    """One slow window of sixteen has a probability of 15 % if 1 % are slow: undecided."""
    assert judge(slow(1, 16), p("p99")).kind is VerdictKind.UNDECIDED
    broken = judge(slow(2, 16), p("p99"))
    assert broken.kind is VerdictKind.UNDECIDED, "1.1 %"
    assert judge(slow(3, 16), p("p99")).kind is VerdictKind.OVERLOADED


@pytest.mark.parametrize(
    ("above", "of", "share", "state"),
    [
        *((1, 100, 0.99, "holds"), (2, 100, 0.99, "unclear"), (4, 100, 0.99, "unclear"), (5, 100, 0.99, "broken")),
        *((0, 99, 0.99, "unclear"), (0, 299, 0.99, "holds"), (1, 1, 0.999, "broken"), (2, 20, 0.9, "holds")),
        *((6, 20, 0.9, "unclear"), (7, 20, 0.9, "broken"), (0, 0, 0.99, "unclear")),
    ],
)
def test_case_7_too_many_above_the_bound_break_a_percentile_as_soon_as_that_is_improbable(
    above: int, of: int, share: float, state: str
) -> None:
    assert ResultsAbove(above, of).state(share) == state


@pytest.mark.parametrize("results", [2, 5, 16])
@pytest.mark.parametrize("statistic", ["p5", "p50"])
def test_a_low_percentile_is_decided_by_few_window_results_of_which_the_slowest_took_6_ms(
    statistic: Statistic, results: int
) -> None:
    """Issue 12: `event-time p5 < 2s` was UNDECIDED although the maximum was 6 ms."""
    fast = recording(kinds=windowed([(s, 6_000_000 - s * 10_000, 50) for s in range(results)]))
    assert judge(fast, p("max", 0.0062)).kind is VerdictKind.SUSTAINED
    verdict = judge(fast, p(statistic))
    assert [check.state for check in verdict.checks] == ["holds"]
    assert verdict.kind is VerdictKind.SUSTAINED
    missed = judge(recording(kinds=windowed([(s, 3 * SECOND, 50) for s in range(results)])), p(statistic))
    assert missed.kind is not VerdictKind.SUSTAINED, "all of them are above the bound"


@pytest.mark.parametrize("statistic", ["p5", "p50"])
def test_one_window_result_is_too_few_for_the_lowest_percentile(statistic: Statistic) -> None:
    """At least 1/(1 − p) window results are needed, which is more than one for every percentile."""
    one = judge(recording(kinds=windowed([(0, 6_000_000, 50)])), p(statistic))
    assert one.kind is VerdictKind.UNDECIDED
    assert f"a {statistic} needs at least 2 window results, so set trial.limit to at least" in one.reasons[0]


def test_case_7_rows_do_not_make_up_for_window_results() -> None:
    assert min_results(0.99) == 100
    assert judge(slow(0, 50), p("p99")).kind is VerdictKind.UNDECIDED, "2,500 rows of 50 window results"


def test_case_3_a_trial_that_checked_nothing_is_not_sustained() -> None:
    unchecked = Account(expected=900, not_reached=900, checked=True, compared=0, first_close=40 * SECOND)
    verdict = judge(recording(account=unchecked))
    assert verdict.kind is VerdictKind.UNDECIDED
    assert "no output could be compared with the reference result" in verdict.reasons[0]
    assert "increase trial.duration to more than 40s" in verdict.reasons[0]


def test_case_3_an_overload_needs_no_checked_row_and_a_job_without_a_reference_neither() -> None:
    unchecked = Account(expected=900, not_reached=900, checked=True, compared=0)
    assert judge(recording(walk(0.5), account=unchecked)).kind is VerdictKind.OVERLOADED
    assert judge(recording(account=Account(observed=900))).kind is VerdictKind.SUSTAINED


ONE_LOST = replace(CHECKED, observed=9_999, lost=1)


@pytest.mark.parametrize("late", [{"published": 0.99 * LOAD}, {"foreign": 80_000}, {"run_delay": 0.2 * SECOND}])
def test_case_4_on_the_queue_a_lost_output_fails_a_trial_that_was_disturbed(late: dict[str, Any]) -> None:
    for objectives, said in (((LAG,), "1 of 10k outputs was lost"), ((LAG, LOST), "1 output was lost")):
        verdict = judge(recording(account=ONE_LOST, **late), *objectives)
        assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)
        assert verdict.reasons[0].startswith(said)
    allowed = judge(recording(account=ONE_LOST, **late), LAG, objective("lost", "<=", 0.01, relative=True))
    assert allowed.kind is not VerdictKind.FAILED


@pytest.mark.parametrize("late", [{"published": 0.99 * LOAD}, {"foreign": 80_000}, {"run_delay": 0.2 * SECOND}])
@pytest.mark.parametrize(
    ("account", "metric", "unnamed", "named"),
    [
        (replace(CHECKED, observed=10_001, duplicate=1), "duplicate", "duplicated", "1 output was duplicated"),
        (replace(CHECKED, wrong=1), "wrong", "wrong", "1 output was wrong"),
    ],
)
def test_case_4_on_the_queue_a_duplicate_or_wrong_output_fails_a_trial_that_was_disturbed(
    late: dict[str, Any], account: Account, metric: Metric, unnamed: str, named: str
) -> None:
    for objectives, said in (((LAG,), f"1 of 10k outputs was {unnamed}"), ((LAG, objective(metric, "==", 0)), named)):
        verdict = judge(recording(account=account, **late), *objectives)
        assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)
        assert verdict.reasons[0].startswith(said)
    allowed = judge(recording(account=account, **late), LAG, objective(metric, "<=", 0.01, relative=True))
    assert allowed.kind is not VerdictKind.FAILED


def test_case_4_otherwise_and_if_the_audit_differs_the_counts_are_printed() -> None:
    said = "outputs compared with the reference result: 1 lost, 0 duplicate, 0 wrong of 10k expected"
    happened = recording(account=ONE_LOST, published=0.99 * LOAD)
    kafka = over_kafka(happened)
    audit = replace(happened, outcome=replace(happened.outcome, unaccounted=("the collector recorded nothing",)))
    for each in (kafka, audit):
        verdict = judge(each)
        assert (verdict.kind, verdict.reasons[-1]) == (VerdictKind.INVALID, said)


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (Account(), ""),
        (Account(observed=1_200), "they were not compared with a reference result"),
        (
            Account(expected=10_000, observed=1_200, not_reached=8_801, wrong=1, checked=True),
            "compared with the reference result: 0 duplicate, 1 wrong, lost unknown",
        ),
    ],
)
def test_case_4_if_a_driver_or_the_collector_ended_the_counts_of_the_stored_outputs_are_printed(
    account: Account, said: str
) -> None:
    verdict = judge(recording(account=account, ending="driver-failed", detail="no memory"))
    stored = [f"1.2k outputs were stored before that; {said}"] if said else []
    reasons = ["the load driver failed: no memory", *stored]
    assert (verdict.kind, list(verdict.reasons)) == (VerdictKind.INVALID, reasons)


TWICE, WRONG = replace(CHECKED, observed=10_001, duplicate=1), replace(CHECKED, wrong=1)


def over_kafka(happened: Recording) -> Recording:
    kafka = TransportChoice("kafka", {}, broker=True, exact_offsets=False)
    return replace(happened, trial=replace(happened.trial, transport=kafka))


def in_a_burst(account: Account) -> Recording:
    """Others took half of the CPU for five of sixty seconds; the lag was at its floor before and after them."""
    happened = recording(np.full(60, 0.1 * LOAD), account=account)
    foreign = np.zeros(60, np.int64)
    foreign[20:25] = 500_000
    return replace(
        happened, seconds=replace(happened.seconds, columns={**happened.seconds.columns, "foreign": foreign})
    )


@pytest.mark.parametrize(
    ("account", "counts"),
    [
        (ONE_LOST, "1 lost, 0 duplicate, 0 wrong"),
        (TWICE, "0 lost, 1 duplicate, 0 wrong"),
        (WRONG, "0 lost, 0 duplicate, 1 wrong"),
    ],
)
def test_case_4_over_kafka_faulty_outputs_while_others_took_much_are_invalid_with_the_counts(
    account: Account, counts: str
) -> None:
    for happened in (recording(account=account, foreign=80_000), in_a_burst(account)):
        for objectives in ((LAG,), (LAG, LOST)):
            verdict = judge(over_kafka(happened), *objectives)
            assert (verdict.kind, verdict.stops_run) == (VerdictKind.INVALID, False)
            assert verdict.reasons[0].startswith("other processes used")
            assert verdict.reasons[-1] == f"outputs compared with the reference result: {counts} of 10k expected"
        assert judge(happened).kind is VerdictKind.FAILED, "on the queue offsets are exact"


def test_case_4_over_kafka_lost_outputs_of_an_undisturbed_trial_still_fail_it() -> None:
    for foreign in (0, 40_000):
        verdict = judge(over_kafka(recording(account=ONE_LOST, foreign=foreign)))
        assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)


def test_case_4_over_kafka_a_system_that_put_out_nothing_while_others_took_much_is_invalid() -> None:
    nothing = replace(CHECKED, observed=0, lost=10_000)
    verdict = judge(over_kafka(recording(account=nothing, foreign=80_000)))
    assert verdict.kind is VerdictKind.INVALID
    assert "produced none of the 10k expected outputs" in verdict.reasons[1]
    assert judge(over_kafka(recording(account=nothing))).kind is VerdictKind.FAILED


def test_case_4_a_system_that_failed_to_start_while_others_took_much_has_failed_on_every_transport() -> None:
    happened = recording(ending="crashed", detail="no such class", foreign=80_000)
    unready = replace(happened, outcome=replace(happened.outcome, unready=True))
    for each in (unready, over_kafka(unready)):
        assert judge(each).kind is VerdictKind.FAILED


def test_case_4_the_runs_totals_name_the_faulty_outputs_of_a_disturbed_trial_over_kafka() -> None:
    happened = over_kafka(recording(account=ONE_LOST, foreign=80_000))
    measured = measure(happened)
    judged = JudgedTrial(happened.trial, measured, decide(happened, measured, (LAG,)), 60, happened.outcome)
    said = "Outputs of INVALID trials, whose cause is unknown: 1 lost, 0 duplicate, 0 wrong."
    assert outputs_checked([judged]).endswith(said)


def test_case_4_the_counts_of_a_system_that_stalled_while_others_took_much_are_printed() -> None:
    verdict = judge(recording(account=ONE_LOST, ending="stalled", foreign=80_000))
    assert verdict.kind is VerdictKind.INVALID
    assert (
        verdict.reasons[-1]
        == "outputs compared with the reference result: 1 lost, 0 duplicate, 0 wrong of 10k expected"
    )
