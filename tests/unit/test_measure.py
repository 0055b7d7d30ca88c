"""A trial in numbers: what is left out, what is read, and what the sample does not support."""

from dataclasses import replace

import numpy as np
import pytest
from judge_samples import LAG, LOAD, latencies, recording, seconds, trial, walk, windowed

from streamgauge.judge.measure import lag_samples, latency_samples, measure, measure_trends, warmup
from streamgauge.judge.objectives import evaluate
from streamgauge.model.profile import ramp, steps
from streamgauge.model.seconds import Account, Seconds
from streamgauge.model.trial import Recording
from streamgauge.model.units import SECOND


def test_rates_are_means_over_the_judged_seconds() -> None:
    measured = measure(recording(walk(0.02, noise=0.0), of=trial(warmup=10)))
    assert (measured.load, measured.warmup_seconds, measured.judged_seconds) == (LOAD, 10, 50)
    assert measured.published_rate == LOAD
    assert measured.served_rate == pytest.approx(0.98 * LOAD)
    assert measured.achieved_share == 1.0


def test_the_load_of_a_profile_is_the_mean_of_what_was_planned_for_the_judged_seconds() -> None:
    ramp_up = replace(trial(warmup=10), profile=ramp(100.0, 2000.0, 30 * SECOND))
    assert measure(Recording(ramp_up, seconds(np.zeros(70)))).load == pytest.approx(ramp_up.load)
    assert ramp_up.load == pytest.approx(((100 + 1900 / 3 + 2000) / 2 * 20 + 2000 * 40) / 60)
    # it was extended: the last rate continues
    assert measure(Recording(ramp_up, seconds(np.zeros(310)))).load == pytest.approx((27_333.33 + 2000 * 280) / 300)


def test_a_profile_that_plans_no_events_for_the_judged_seconds_has_a_load_of_zero() -> None:
    silent = replace(trial(warmup=10), profile=steps([(10 * SECOND, 100.0), (SECOND, 0.0)]))
    measured = measure(Recording(silent, seconds(walk(0.02, load=100.0))))
    assert (measured.load, measured.runaway, measured.lag_reversion) == (0.0, False, 0.0)
    assert "lag growth 1.94 events/s (limit 0 events/s)" in evaluate(LAG, measured).sentence


def test_a_fixed_warm_up_is_honoured_whatever_the_series_looks_like() -> None:
    wild = seconds(walk(0.5, noise=0.5))
    assert warmup(trial(warmup=7), wild) == (7, True)
    assert warmup(trial(warmup=0), wild) == (0, True)
    assert warmup(trial(warmup=100), wild) == (60, True)


def test_a_warm_up_without_a_length_ends_where_the_series_is_steady() -> None:
    growth = 0.7 * np.maximum(1 - np.arange(90) / 20, 0.0) ** 2 - 0.05
    found = []
    for seed in range(40):
        noise = 0.01 * np.random.default_rng(seed).standard_normal(90)
        found.append(warmup(trial(warmup=None), seconds(LOAD * (5 + np.cumsum(growth + noise)))))
    assert min(cut for cut, _ in found) >= 10
    assert 15 <= np.median([cut for cut, _ in found]) <= 30
    assert np.mean([steady for _, steady in found]) > 0.9


def test_a_warm_up_without_a_length_is_bounded() -> None:
    growth = 0.7 * np.maximum(1 - np.arange(90) / 40, 0.0) ** 2
    free, _ = warmup(trial(warmup=None), seconds(LOAD * np.cumsum(growth)))
    bounded, _ = warmup(trial(warmup=None, warmup_limit=12), seconds(LOAD * np.cumsum(growth)))
    assert free > 12
    assert bounded == 12


def test_before_there_are_enough_acknowledgements_nothing_is_steady() -> None:
    assert warmup(trial(warmup=None), seconds([1, 2, 3])) == (0, False)


def test_the_lag_trend_is_growth_in_events_per_second() -> None:
    measured = measure(recording(walk(0.02, noise=0.005)))
    assert measured.lag_trend is not None
    assert measured.lag_trend.mean == pytest.approx(0.02 * LOAD, rel=0.1)
    assert measured.lag_trend.low < 0.02 * LOAD < measured.lag_trend.high


def test_growth_begins_at_the_last_acknowledgement_before_the_judged_stretch() -> None:
    moves = measure_trends(trial(warmup=10), seconds(np.arange(1, 61) * 100))
    assert (moves.lag_start, moves.lag_end, moves.lag_seconds) == (1000, 6000, 50)


def test_seconds_without_an_acknowledgement_are_no_samples_of_lag() -> None:
    part = Seconds(0, {"ack_time": np.array([-1, 15 * SECOND // 10, -1]), "ack_lag": np.array([-1, 40, -1])})
    time, lag = lag_samples(part)
    assert (time.tolist(), lag.tolist()) == ([1.5], [40.0])


def test_the_latency_of_a_second_is_the_mean_over_its_rows() -> None:
    kinds = latencies([(3, 1_000_000_000, 1), (3, 2_000_000_000, 3), (5, 500_000_000, 2)])
    when, latency = latency_samples(seconds(range(10), kinds={"event-time": kinds}))
    assert when.tolist() == [3.0, 5.0]
    assert latency == pytest.approx([1.75, 0.5], rel=1e-3)


def test_the_latency_trend_is_seconds_per_second() -> None:
    grows = latencies([(s, 10**9 + s * 20_000_000, 10) for s in range(60)])
    measured = measure(recording(kinds={"event-time": grows}, firings=1))
    assert measured.latency_trend is not None
    assert measured.latency_trend.mean == pytest.approx(0.02, rel=0.02)


def test_capacity_is_what_was_processed_while_the_queue_grew() -> None:
    measured = measure(recording(walk(0.25, noise=0.02)))
    assert measured.capacity is not None
    assert measured.capacity.low < 0.75 * LOAD < measured.capacity.high
    assert measured.capacity.mean == pytest.approx(0.75 * LOAD, rel=0.02)


def test_a_system_that_keeps_up_does_not_show_its_capacity() -> None:
    assert measure(recording(walk(0.0))).capacity is None


def test_a_queue_that_ran_away_shows_a_capacity_from_two_acknowledgements() -> None:
    happened = recording(of=trial(LOAD))
    sparse = {n: c.copy() for n, c in happened.seconds.columns.items()}
    observed = np.zeros(60, bool)
    observed[[5, 55]] = True
    sparse["ack_time"][~observed] = -1
    sparse["ack_lag"] = np.where(observed, np.where(np.arange(60) == 5, 0, 25 * 100_000), -1)
    measured = measure(Recording(happened.trial, Seconds(0, sparse)))
    assert measured.lag_trend is None
    assert measured.runaway
    assert measured.capacity is not None
    assert measured.capacity.mean == pytest.approx(0.5 * LOAD)


def test_case_20_percentiles_are_over_rows_with_the_number_of_window_results_beside_them() -> None:
    kinds = windowed([(s, (s + 1) * 100_000_000, 50) for s in range(60)])
    summary = measure(recording(kinds=kinds)).latencies["event-time"]
    assert (summary.rows, summary.firings) == (3000, 60)
    assert set(summary.percentiles) == {"p5", "p50", "p75", "p90", "p95", "p99", "p99.9"}
    assert summary.percentiles["p50"] == pytest.approx(3e9, rel=1e-3)
    assert summary.least == pytest.approx(1e8, rel=1e-3)
    assert summary.most == pytest.approx(6e9, rel=1e-3)
    assert summary.average == pytest.approx(3.05e9, rel=1e-3)


@pytest.mark.parametrize(("rows", "has", "lacks"), [(2, "p99", "p99.9"), (17, "p99.9", None), (1, "p95", "p99")])
def test_no_percentile_is_shown_that_the_rows_do_not_have(rows: int, has: str, lacks: str | None) -> None:
    kinds = latencies([(s, 10**9, rows) for s in range(60)])
    shown = measure(recording(kinds={"event-time": kinds})).latencies["event-time"].percentiles
    assert has in shown
    assert lacks not in shown


def test_case_1_outputs_that_never_came_count_with_what_they_have_waited_at_least() -> None:
    """Windows of 4 s until second 40, then a hang: those due in the last 20 s have waited up to 20 s."""
    came = windowed([(s, 10**9, 10) for s in range(3, 40, 4)])
    never = windowed([(s, (60 - s) * SECOND, 10) for s in range(43, 60, 4)], "missing")
    summary = measure(recording(kinds=came | never)).latencies["event-time"]
    assert (summary.rows, summary.firings, summary.missing) == (150, 15, 50)
    assert summary.most == pytest.approx(17e9, rel=1e-3)
    assert summary.percentiles["p90"] > 10e9
    trend = measure(recording(kinds=came | never)).latency_trend
    assert trend is not None
    assert trend.mean == pytest.approx(0.0, abs=1e-6), "a bound that falls towards the end is no trend"


def test_latencies_of_the_warm_up_do_not_count() -> None:
    kinds = windowed([(s, 10**10 if s < 20 else 10**9, 5) for s in range(60)])
    summary = measure(recording(of=trial(warmup=20), kinds=kinds)).latencies["event-time"]
    assert summary.most == pytest.approx(1e9, rel=1e-3)
    assert (summary.rows, summary.firings) == (200, 40)


def test_a_kind_without_outputs_has_no_summary() -> None:
    assert measure(recording()).latencies == {}


def test_what_the_driver_did_is_in_the_measurement() -> None:
    measured = measure(
        recording(
            send_delay=2e6,
            schedule_lag=3e6,
            run_delay=2e7,
            foreign=30_000,
            clock_step=-5e6,
            sut_cpu=500_000,
            driver_cpu=1000,
        )
    )
    assert (measured.schedule_lag_p99, measured.schedule_lag_worst) == (2e6, 3e6)
    assert measured.run_delay_share == pytest.approx(0.02)
    assert measured.foreign_share == pytest.approx(0.03)
    assert measured.clock_step == 5e6
    assert measured.sut_cpu_seconds == pytest.approx(30.0)
    assert measured.driver_cpu_seconds == pytest.approx(0.06)


def test_a_recording_without_seconds_has_a_measurement_too() -> None:
    empty = replace(recording(), seconds=Seconds(0, {}))
    measured = measure(empty)
    assert (measured.judged_seconds, measured.lag_trend, measured.capacity) == (0, None, None)
    assert measured.achieved_share == 1.0


def test_the_account_of_the_outputs_is_handed_on() -> None:
    account = Account(10, 9, lost=1, checked=True)
    assert measure(recording(account=account)).account == account
