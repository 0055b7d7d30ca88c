"""A disturbance has a direction: what others took from the system under test never made a trial pass."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from judge_samples import LAG, LOAD, latencies, objective, recording, seconds, trial, walk

from streamgauge.judge import decide, measure
from streamgauge.judge.disturbed import burst
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Account
from streamgauge.model.trial import Ending, Outcome, Recording
from streamgauge.model.units import SECOND

QUEUE = objective("queue", "<=", 0.5, relative=True)
SLOW = objective("event-time", "<", 2e9, statistic="max")


def judge(happened: Recording, *objectives: Objective) -> Verdict:
    return decide(happened, measure(happened), objectives or (LAG,))


def foreign_load(lag: npt.ArrayLike, share: float, start: int, stop: int) -> Recording:
    """Lag in seconds of load; others take a share of the system's cores in some of the seconds."""
    level = np.asarray(lag, np.float64)
    happened = seconds(level * LOAD)
    column = np.zeros(len(level), np.int64)
    column[start:stop] = round(share * 1e6)
    return Recording(trial(limit=len(level)), replace(happened, columns={**happened.columns, "foreign": column}))


def test_case_13_a_load_that_is_sustained_although_others_took_six_percent_stands_with_upper_bounds_of_latencies() -> (
    None
):
    verdict = judge(recording(walk(0.0), foreign=60_000))
    assert verdict.kind is VerdictKind.SUSTAINED
    assert "other processes used 6 % of the CPU" in verdict.reasons[-1]
    assert "latencies are upper bounds" in verdict.reasons[-1]
    assert len(judge(recording(walk(0.0), foreign=40_000)).reasons) == 1


def test_case_13_a_load_that_is_sustained_although_the_driver_waited_for_a_cpu_is_sustained() -> None:
    verdict = judge(recording(walk(0.0), run_delay=0.2 * SECOND))
    assert verdict.kind is VerdictKind.SUSTAINED
    assert verdict.reasons[-1].startswith(
        "the load driver waited for a CPU 20 % of the time; the load was sustained anyway"
    )


@pytest.mark.parametrize(("steal", "said"), [(0, "other processes used"), (80_000, "the hypervisor took")])
def test_case_13_the_verdict_names_who_took_the_cpu(steal: int, said: str) -> None:
    even = judge(recording(walk(0.012, noise=0.05), foreign=80_000, steal=steal))
    assert even.reasons[0].startswith(f"{said} 8 % of the CPU")


def test_case_13_a_load_that_is_sustained_is_invalid_if_the_generator_did_not_meet_its_plan() -> None:
    assert judge(recording(walk(0.0), foreign=60_000, published=0.9 * LOAD)).kind is VerdictKind.INVALID


@pytest.mark.parametrize("share", [0.049, 0.3])
def test_case_13_an_overload_while_others_took_a_share_is_a_failure_at_a_higher_load(share: float) -> None:
    verdict = judge(recording(walk(0.2, noise=0.01), foreign=share * 1e6))
    plain = judge(recording(walk(0.2, noise=0.01)))
    assert (verdict.kind, verdict.holds) == (VerdictKind.OVERLOADED, None)
    assert verdict.taken == pytest.approx(share)
    assert (plain.taken, plain.holds) == (0.0, False)
    assert verdict.estimate is not None
    assert plain.estimate is not None
    assert verdict.estimate.boundary == pytest.approx(plain.estimate.boundary / (1 - share))


def test_case_13_an_overload_while_others_took_one_percent_counts_in_full() -> None:
    assert judge(recording(walk(0.2, noise=0.01), foreign=10_000)).holds is False


@pytest.mark.parametrize(("share", "kind"), [(0.06, VerdictKind.INVALID), (0.04, VerdictKind.OVERLOADED)])
def test_case_13_a_latency_queue_or_lag_growth_that_failed_proves_nothing_if_more_than_five_percent_was_taken(
    share: float, kind: VerdictKind
) -> None:
    rows = latencies([(s, 3 * SECOND, 10) for s in range(60)])
    happened = recording(walk(0.0), kinds={"event-time": rows}, firings=10, foreign=share * 1e6)
    assert judge(happened, LAG, QUEUE).kind is kind
    assert judge(happened, LAG, SLOW).kind is kind
    assert judge(happened, LAG, objective("lag-growth", "<", -1e9)).kind is kind


@pytest.mark.parametrize("ending", ["crashed", "dropped"])
def test_case_13_a_system_that_crashed_or_disconnected_failed_whatever_others_took(ending: Ending) -> None:
    verdict = judge(recording(walk(0.0), ending=ending, foreign=200_000))
    assert (verdict.kind, verdict.holds, verdict.stops_run) == (VerdictKind.FAILED, False, False)
    assert verdict.reasons[-1] == (
        "other processes used 20 % of the CPU of the system under test, which does not explain the failure"
    )
    assert len(judge(recording(walk(0.0), ending=ending, foreign=9_000)).reasons) == 1
    starved = judge(recording(walk(0.0), ending=ending, run_delay=0.2 * SECOND))
    assert starved.kind is VerdictKind.FAILED
    assert starved.reasons[-1].startswith("also: the load driver waited for a CPU 20 % of the time")


def test_case_13_a_queue_that_was_full_while_others_took_much_is_invalid() -> None:
    assert judge(recording(walk(0.0), ending="queue-full", foreign=200_000)).kind is VerdictKind.INVALID


@pytest.mark.parametrize("ending", ["crashed", "dropped"])
def test_case_13_a_system_that_crashed_after_a_short_burst_failed(ending: Ending) -> None:
    """Its lag does not return to its floor after the burst, because it is gone."""
    lag = np.concatenate([np.zeros(50), np.linspace(0.4, 4, 10)])
    happened = replace(foreign_load(lag, 0.3, 50, 53), outcome=Outcome(ending, "exit code 137"))
    assert burst(happened.trial, happened.seconds) is not None
    assert judge(happened).kind is VerdictKind.FAILED


def stalled(share: float, start: int, stop: int, silent: int = 30) -> Recording:
    """A minute in which the system acknowledged nothing after ``silent`` seconds; others took a share in some."""
    level = np.concatenate([np.zeros(silent), np.arange(1.0, 61 - silent)])
    happened = foreign_load(level, share, start, stop)
    columns = {name: column.copy() for name, column in happened.seconds.columns.items()}
    columns["ack_time"][silent:] = -1
    columns["acks"][silent:] = columns["acknowledged"][silent:] = 0
    return replace(happened, seconds=replace(happened.seconds, columns=columns), outcome=Outcome("stalled"))


@pytest.mark.parametrize(
    ("share", "start", "stop", "kind"),
    [
        (0.3, 30, 33, VerdictKind.FAILED),  # a burst at the moment at which it stalled: 2.9 % on average
        (0.3, 20, 30, VerdictKind.FAILED),  # before it stalled
        (0.9, 0, 29, VerdictKind.FAILED),
        (0.04, 0, 60, VerdictKind.FAILED),
        (0.06, 0, 60, VerdictKind.INVALID),
        (0.3, 30, 60, VerdictKind.INVALID),
    ],
)
def test_case_13_a_stall_proves_nothing_only_if_others_took_much_while_nothing_was_acknowledged(
    share: float, start: int, stop: int, kind: VerdictKind
) -> None:
    verdict = judge(stalled(share, start, stop))
    assert verdict.kind is kind
    if kind is VerdictKind.INVALID:
        assert "while it acknowledged nothing (limit 5 %), so the stall proves nothing" in verdict.reasons[0]


def test_case_13_a_burst_does_not_excuse_lost_outputs_on_the_queue() -> None:
    lag = np.concatenate([np.zeros(40), np.linspace(0.4, 4, 10), np.linspace(3.9, 3, 10)])
    account = Account(expected=100, observed=99, lost=1, checked=True)
    verdict = judge(replace(foreign_load(lag, 0.5, 40, 50), outcome=Outcome(account=account)))
    assert (verdict.kind, verdict.stops_run) == (VerdictKind.FAILED, True)


def test_case_13_an_undecided_trial_that_was_disturbed_is_invalid_so_that_it_is_repeated() -> None:
    assert judge(recording(walk(0.012, noise=0.05), foreign=80_000)).kind is VerdictKind.INVALID


def test_case_13_a_burst_is_cut_out_up_to_the_moment_at_which_the_lag_is_back_at_its_floor() -> None:
    lag = np.concatenate([np.zeros(20), np.linspace(0.4, 2, 5), np.linspace(1.8, 0, 10), np.zeros(40)])
    assert judge(foreign_load(lag, 0.5, 20, 25), LAG, QUEUE).kind is VerdictKind.SUSTAINED
    assert judge(foreign_load(lag, 0.0, 20, 25), LAG, QUEUE).kind is VerdictKind.OVERLOADED
    assert "15 s were excluded" in judge(foreign_load(lag, 0.5, 20, 25), LAG, QUEUE).reasons[-1]


def test_case_13_a_burst_after_which_the_lag_is_not_back_at_its_floor_makes_the_trial_invalid() -> None:
    lag = np.concatenate([np.zeros(40), np.linspace(0.4, 4, 10), np.linspace(3.9, 3, 10)])
    verdict = judge(foreign_load(lag, 0.5, 40, 50))
    assert verdict.kind is VerdictKind.INVALID
    assert "not back at its floor" in verdict.reasons[0]


def test_case_13_an_overload_that_the_rest_of_the_trial_shows_needs_no_such_moment() -> None:
    lag = 0.1 * np.arange(1, 61) + 0.3 * np.clip(np.arange(60) - 40, 0, 5)
    verdict = judge(foreign_load(lag, 0.5, 40, 45))
    assert (verdict.kind, verdict.holds) == (VerdictKind.OVERLOADED, False)


def test_case_13_other_work_for_a_third_of_the_trial_or_more_is_no_burst() -> None:
    lag = np.concatenate([np.zeros(20), np.linspace(0.4, 4, 20), np.linspace(3.8, 0, 20)])
    assert judge(foreign_load(lag, 0.5, 20, 40), LAG, QUEUE).kind is VerdictKind.INVALID


UNDISTURBED = (
    *(33, -10, 19, 45, -40, -14, 80, 19, 0, -63, 79, -28, 30, -26, 32, 9, -30, 30, 39, 58, -11, -5, 20, -11, 4, 9, -1),
    *(10, 30, 37, -31, 10, 39, 10, -21, 32, 51, -40, 19, 0, -26, -22, 65, 6, 19, 40, -21, 10, 10, -11, 30, -60, 50, 9),
    *(-3, 19, -21, -11, 10, 28, 14, -1, 0, 44, 0, 9, -30, 45, 9, 26, -1, -10, -1, 20, 20, -21, 10, -20, 31, 30, -66),
    *(99, -73, 78, 9, 59, 17, -2, 17, -22, 0),
)
"""Milliseconds of each second that other processes used on the core of Spark over Kafka, as the monitor recorded them
while nothing else ran: 0.9 % on average, and above 5 % in nine single seconds."""


def test_case_13_errors_of_single_seconds_are_no_burst_of_other_processes() -> None:
    lag = np.linspace(0.0, 3.0, len(UNDISTURBED))
    happened = foreign_load(lag, 0.0, 0, 0)
    column = np.array(UNDISTURBED, np.int64) * 1_000
    happened = replace(
        happened, seconds=replace(happened.seconds, columns={**happened.seconds.columns, "foreign": column})
    )
    assert burst(happened.trial, happened.seconds) is None
    for second in range(40, 45):
        column[second] = 300_000
    found = burst(happened.trial, happened.seconds)
    assert found is not None
    assert np.flatnonzero(found).tolist() == [40, 41, 42, 43, 44]
