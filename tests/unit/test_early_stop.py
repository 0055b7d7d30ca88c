"""The sequential rule on growing trials: who may end early, who never does, and who is given more time."""

from dataclasses import replace

import numpy as np
import pytest
from judge_samples import LAG, LOAD, Floats, latencies, objective, seconds, trial, walk, windowed

from benches.early_stop import CAPACITY, FULL, RATIOS, decide_once, trial_at
from streamgauge.engines.simulated import SimulatedOptions, simulated
from streamgauge.judge import EarlyStopRule, decide, measure, trend_rules
from streamgauge.judge.measure import measure_trends
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Seconds, join
from streamgauge.model.trial import Outcome, Purpose, Recording, Trial
from streamgauge.model.units import SECOND

SHORT: tuple[Purpose, ...] = ("probe", "estimate")


def ends(of: Trial, whole: Seconds, *objectives: Objective, stretch: int = 1) -> int | None:
    """After how many seconds the watch lets the trial stop; None: not within what there is."""
    rule = EarlyStopRule(of, objectives or (LAG,))
    for stop in range(stretch, len(whole) + 1, stretch):
        if rule.due(stop) and rule.decided(whole.between(0, stop)):
            return stop
    return None


def trace(growth: float, length: int = 400, noise: float = 0.02, seed: int = 1) -> Seconds:
    """Lag that grows by a share of the load, or stays near zero."""
    shock = noise * np.random.default_rng(seed).standard_normal(length)
    steps = growth + shock - (shock.mean() if growth > 0 else 0.0)
    level = np.concatenate([[0.0], np.cumsum(steps)])
    reflected: Floats = (level - np.minimum.accumulate(np.minimum(level, 0.0)))[1:]
    return seconds(LOAD * reflected)


def simulated_seconds(of: Trial) -> Seconds:
    return join(simulated.simulate(of, 1.0).seconds())


@pytest.mark.parametrize("warmup", [0, 15, None])
@pytest.mark.parametrize("early", ["confirm", "measure"])
def test_a_full_length_trial_never_ends_before_its_full_length(early: Purpose, warmup: int | None) -> None:
    rng = np.random.default_rng(3)
    for seed in range(60):
        of = trial(purpose=early, warmup=warmup)
        most = 1.5 if early == "measure" else 0.2
        whole = trace(float(rng.uniform(-0.5, most)), noise=float(rng.uniform(0, 0.1)), seed=seed)
        stop = ends(of, whole)
        assert stop is not None
        assert measure_trends(of, whole.between(0, stop)).judged_seconds >= 60
        assert stop >= 60 + (warmup or 0)


def test_a_confirmation_of_a_simulated_system_never_ends_before_its_full_length() -> None:
    for seed in range(8):
        for ratio in (0.5, 0.97, 1.03, 1.2):
            of = trial_at(ratio, seed, "confirm")
            whole = simulated_seconds(of)
            stop = ends(of, whole)
            assert stop is not None
            assert measure_trends(of, whole.between(0, stop)).judged_seconds >= FULL


def test_a_confirmation_whose_lag_runs_away_ends_after_half_of_its_length() -> None:
    stops = [ends(trial(purpose="confirm"), trace(0.5, seed=seed)) for seed in range(30)]
    assert set(stops) <= set(range(30, 36))


def test_a_clear_trial_with_a_fixed_warm_up_ends_with_its_full_length() -> None:
    for warmup in (0, 5, 15):
        assert ends(trial(warmup=warmup), trace(-0.5)) == 60 + warmup


def test_a_failing_confirmation_ends_early_where_the_search_needs_no_estimate_from_it() -> None:
    def stop(growth: float, exact: bool) -> int:
        rule, whole = EarlyStopRule(trial(warmup=5, limit=120), (LAG,), exact), trace(growth)
        return next(s for s in range(1, 200) if rule.due(s) and rule.decided(whole.between(0, s)))

    assert stop(0.1, exact=True) >= 65
    assert stop(0.1, exact=False) == 35
    assert stop(-0.5, exact=False) == 65, "one that holds has its full length"


def test_an_overloaded_probe_ends_early() -> None:
    stops = [ends(trial(purpose="probe"), trace(0.5, seed=seed)) for seed in range(30)]
    assert set(stops) <= set(range(trend_rules.BROKEN_SECONDS, 15))


def test_a_sustained_probe_ends_early() -> None:
    stops = [ends(trial(purpose="probe"), trace(-0.2, seed=seed)) for seed in range(30)]
    assert set(stops) <= set(range(trend_rules.HOLDS_SECONDS, 30))


def test_the_clearer_an_overload_is_the_sooner_it_is_seen() -> None:
    means = []
    for growth in (0.6, 0.2, 0.08, 0.04):
        stops = [ends(trial(purpose="probe"), trace(growth, noise=0.05, seed=seed)) or 400 for seed in range(20)]
        means.append(np.mean(stops))
    assert means == sorted(means)
    assert means[-1] > 1.5 * means[0]


def test_an_unclear_probe_is_given_twice_its_length_and_no_more() -> None:
    # it grows by just what is allowed: no noise makes that clear
    assert ends(trial(purpose="probe"), trace(0.01, noise=0.05)) in range(120, 130)


def test_an_unclear_confirmation_is_extended_up_to_its_limit() -> None:
    assert ends(trial(limit=200), trace(0.01, noise=0.05)) in range(200, 235)
    assert ends(trial(limit=90), trace(0.01, noise=0.05)) in range(90, 105)


def test_a_confirmation_that_is_clear_after_some_more_seconds_ends_then() -> None:
    whole = trace(0.018, noise=0.03, seed=5)
    stop = ends(trial(), whole)
    assert stop is not None
    assert 60 < stop < 300
    of = trial()
    happened = [Recording(of, whole.between(0, end)) for end in (60, stop)]
    kinds = [decide(r, measure(r), (LAG,)).kind for r in happened]
    assert kinds == [VerdictKind.UNDECIDED, VerdictKind.OVERLOADED]


def test_a_plain_measurement_that_is_undecided_is_extended_up_to_its_limit_and_a_clear_one_is_not() -> None:
    assert ends(trial(purpose="measure", limit=200), trace(0.01, noise=0.05)) in range(200, 235)
    for growth in (-0.2, 0.5):
        assert ends(trial(purpose="measure"), trace(growth, noise=0.05)) == 60


def test_a_full_length_trial_is_extended_until_it_has_window_results_enough_for_its_percentile() -> None:
    """One window result every 4 s: a p90 needs ten of them."""
    p90 = replace(objective("event-time", "<", 2 * SECOND), statistic="p90")
    seldom = [(s, 10 * SECOND if s == 3 else SECOND, 10) for s in range(3, 400, 4)]
    whole = seconds(walk(0.0, 400, noise=0.0), kinds=windowed(seldom))
    for purpose in ("measure", "confirm"):
        stop = ends(trial(purpose=purpose, duration=20, limit=200), whole, LAG, p90)
        assert stop is not None
        assert 40 <= stop < 60
    assert ends(trial(duration=20, limit=30), whole, LAG, p90) in range(30, 35)


def test_outputs_without_latency_do_not_extend_a_trial() -> None:
    p90 = replace(objective("event-time", "<", 2 * SECOND), statistic="p90")
    assert ends(trial(), seconds(walk(0.0, 400, noise=0.0), outputs=10), LAG, p90) == 60
    assert ends(trial(limit=90), seconds(walk(0.0, 400, noise=0.0)), LAG, p90) in range(90, 105)


def test_an_estimate_ends_when_it_is_sharp() -> None:
    assert ends(trial(purpose="estimate"), trace(0.5, noise=0.01)) in range(trend_rules.HOLDS_SECONDS, 25)


def test_an_estimate_that_stays_blurred_ends_with_its_length() -> None:
    blurred = trace(0.2, noise=0.15)
    assert ends(trial(purpose="estimate"), blurred) in range(60, 65)
    assert ends(trial(purpose="probe"), blurred) in range(trend_rules.BROKEN_SECONDS, 20)


@pytest.mark.parametrize("purpose", SHORT)
@pytest.mark.parametrize("warmup", [5, 30, 60])
def test_a_fixed_warm_up_is_honoured(purpose: Purpose, warmup: int) -> None:
    of = trial(purpose=purpose, warmup=warmup)
    for growth in (-0.2, 0.2):
        stop = ends(of, trace(growth))
        assert stop is not None
        assert stop >= warmup + trend_rules.BROKEN_SECONDS
        assert measure_trends(of, trace(growth).between(0, stop)).warmup_seconds == warmup


def test_a_probe_does_not_end_inside_a_warm_up() -> None:
    # an engine that holds once it is warm, and grows a queue until then
    for seed in range(20):
        options = SimulatedOptions.model_validate({"capacity": "100k/s", "noise": "2%", "warmup": "20s"})
        of = replace(trial(0.8 * LOAD, "probe", warmup=None, seed=seed), options=options.model_dump())
        whole = simulated_seconds(of)
        stop = ends(of, whole)
        assert stop is not None
        happened = Recording(of, whole.between(0, stop))
        assert decide(happened, measure(happened), (LAG,)).kind is not VerdictKind.OVERLOADED


def test_if_a_latency_is_judged_a_passing_probe_runs_its_full_length() -> None:
    p99 = replace(objective("event-time", "<", 2 * SECOND), statistic="p99")
    assert ends(trial(purpose="probe"), trace(-0.2), LAG, p99) in range(60, 65)
    assert ends(trial(purpose="probe"), trace(0.5), LAG, p99) in range(trend_rules.BROKEN_SECONDS, 15)


def test_without_any_trend_a_probe_runs_its_full_length() -> None:
    assert ends(trial(purpose="probe"), trace(0.2), objective("lost", "==", 0)) in range(60, 65)


def test_a_queue_over_its_objective_does_not_get_better_with_time() -> None:
    queue = objective("queue", "<=", 2.0, relative=True)
    assert ends(trial(purpose="probe"), trace(0.5), queue) in range(trend_rules.BROKEN_SECONDS, 15)
    assert ends(trial(purpose="probe"), trace(-0.5), queue) in range(60, 65)
    short = objective("queue", "<=", 0.1, relative=True)
    assert ends(trial(limit=200), trace(0.01, noise=0.05), LAG, short) in range(60, 65), "a confirmation: no extension"


def test_a_latency_trend_ends_a_probe_too() -> None:
    grows = latencies([(s, 10**9 + s * 300_000_000 + (s % 3) * 1_000_000, 10) for s in range(200)])
    whole = seconds(walk(0.0, 200), kinds={"event-time": grows}, firings=1)
    stop = ends(trial(purpose="probe"), whole, objective("latency-trend", "<=", 0.01))
    assert stop in range(trend_rules.BROKEN_SECONDS, 20)


def test_all_trends_must_be_met_before_a_probe_ends() -> None:
    both = (objective("lag-trend", "<=", 0.5, relative=True), objective("lag-trend", "<=", 0.01, relative=True))
    assert ends(trial(purpose="probe"), trace(0.01, noise=0.05), *both) in range(120, 130)


def test_a_queue_that_runs_away_ends_a_probe_that_has_too_few_acknowledgements() -> None:
    options = SimulatedOptions.model_validate({"capacity": "10k/s", "batch_interval": "2s"})
    of = replace(trial(5 * 10_000.0, "probe", warmup=None), options=options.model_dump())
    whole = simulated_seconds(of)
    stop = ends(of, whole)
    assert stop is not None
    assert 60 <= stop < 70
    seen = measure_trends(of, whole.between(0, stop))
    assert (seen.lag_trend, seen.runaway) == (None, True)


@pytest.mark.parametrize("ratio", [0.5, 0.8, 0.9, 1.1, 1.2, 1.5])
@pytest.mark.parametrize("purpose", ["probe", "confirm"])
def test_looking_every_second_or_in_stretches_of_two_decides_the_same(ratio: float, purpose: Purpose) -> None:
    for seed in range(10):
        of = trial_at(ratio, seed, purpose)
        whole = simulated_seconds(of)
        kinds = []
        for stretch in (1, 2):
            stop = ends(of, whole, stretch=stretch)
            assert stop is not None
            happened = Recording(of, whole.between(0, stop))
            kinds.append(decide(happened, measure(happened), (LAG,)).kind)
        assert kinds[0] is kinds[1]
        assert kinds[0] is (VerdictKind.SUSTAINED if ratio < 1 else VerdictKind.OVERLOADED)


def test_a_look_that_could_not_end_the_trial_is_not_wanted() -> None:
    rule = EarlyStopRule(trial(purpose="measure", warmup=10), (LAG,))
    assert [rule.due(s) for s in (1, 69, 70)] == [False, False, True]
    confirmation = EarlyStopRule(trial(warmup=10), (LAG,))
    assert [confirmation.due(s) for s in (1, 39, 40)] == [False, False, True]
    probe = EarlyStopRule(trial(purpose="probe", warmup=10), (LAG,))
    assert [probe.due(s) for s in (10, 19, 20)] == [False, False, True]


def test_the_early_rule_is_seldom_wrong_and_takes_less_than_half_of_a_full_length_trial() -> None:
    count, took = 60, []
    for ratio in RATIOS:
        answers = [decide_once(ratio, seed) for seed in range(count)]
        right = "SUSTAINED" if ratio * CAPACITY < CAPACITY else "OVERLOADED"
        wrong = sum(kind not in (right, "UNDECIDED") for kind, _ in answers)
        assert wrong <= 0.05 * count, f"{wrong} of {count} wrong at {ratio} of the boundary"
        took.append(np.mean([judged for _, judged in answers]) / FULL)
    assert np.mean(took) <= 0.45


def burst_of(growth: float, drains: float, taken: int, length: int) -> Seconds:
    """Others take half of the cores for some seconds: lag grows, and drains until it is at its floor again."""
    steps = np.concatenate([np.zeros(20), np.full(taken, growth), np.full(length, -drains)])[:length]
    lag = np.maximum(np.cumsum(steps), 0.0) + 0.001
    happened = seconds(LOAD * lag)
    column = np.zeros(length, np.int64)
    column[20 : 20 + taken] = 500_000
    return replace(happened, columns={**happened.columns, "foreign": column})


def test_a_trial_with_a_burst_is_extended_by_what_is_cut_out() -> None:
    queue = objective("queue", "<=", 1.0, relative=True)
    of = trial(duration=60, limit=120)
    stop = ends(of, burst_of(0.4, 0.2, 5, 120), LAG, queue)
    assert stop is not None
    assert 75 <= stop <= 80  # 5 s of other work, and 10 s until the lag was back at its floor
    assert ends(replace(of, limit=70 * SECOND), burst_of(0.4, 0.2, 5, 120), LAG, queue) == 70


def test_case_1_a_hang_at_the_end_is_seen_although_a_burst_broke_an_objective_before() -> None:
    """The queue is over its bound only because of the burst. The system acknowledges nothing from 67 s to 84 s."""
    queue = objective("queue", "<=", 1.0, relative=True)
    whole = burst_of(0.4, 0.2, 5, 90)
    columns = {name: column.copy() for name, column in whole.columns.items()}
    columns["ack_time"][67:84] = -1
    columns["acknowledged"][67:84] = columns["acks"][67:84] = 0
    whole = replace(whole, columns=columns)
    of = trial(duration=60, limit=75)
    rule = EarlyStopRule(of, (LAG, queue))
    stop = next(s for s in range(1, 91) if rule.due(s) and rule.decided(whole.between(0, s)))
    assert stop == 85, "the trial continues until the next acknowledgement"
    assert rule.silence == 18 * SECOND
    happened = Recording(of, whole.between(0, stop), Outcome(silence=rule.silence))
    assert decide(happened, measure(happened), (LAG, queue)).kind is VerdictKind.UNDECIDED
    assert ends(of, replace(whole, columns={**columns, "foreign": 0 * columns["foreign"]}), LAG, queue) == 60
