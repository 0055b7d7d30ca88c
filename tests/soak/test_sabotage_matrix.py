"""Every fault by itself and at every moment. Every change must pass tests/integration/test_sabotage.py."""

import os
import signal
from pathlib import Path

import pytest
from real_trial import COLLECTOR, DRIVER, MILLI, PLACEMENT, as_if_quiet, child, play, stop_for, trial

from streamgauge.model.measurement import VerdictKind
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores"),
]


@pytest.mark.parametrize("step", [100 * MILLI, -100 * MILLI])
def test_a_step_of_the_wall_clock_makes_a_trial_invalid(step: int, tmp_path: Path) -> None:
    changes = {"wall_step_at_ns": 1_500 * MILLI, "wall_step_ns": step}
    played = play(trial(), tmp_path, driver_changes=changes)
    played.is_(VerdictKind.INVALID, "the wall clock jumped by", "stop the process that sets it")
    assert played.measured.clock_step == pytest.approx(100 * MILLI, abs=30 * MILLI)


def test_a_generator_that_is_stopped_for_half_a_second_makes_a_trial_invalid(tmp_path: Path) -> None:
    played = play(trial(), tmp_path, {1: lambda: stop_for(child(DRIVER), 0.5)})
    played.is_(VerdictKind.INVALID, "longest send delay 4", "(limit 250 ms): the load generator paused")
    assert 0.4 * SECOND < played.measured.schedule_lag_worst < 0.8 * SECOND


@pytest.mark.parametrize("second", [2, 3], ids=["under load", "in the drain phase"])
@pytest.mark.parametrize("role", [DRIVER, COLLECTOR])
def test_a_driver_or_collector_that_is_killed_makes_a_trial_invalid(role: str, second: int, tmp_path: Path) -> None:
    played = play(trial(), tmp_path, {second: lambda: os.kill(child(role), signal.SIGKILL)})
    played.is_(
        VerdictKind.INVALID, "the load driver failed: ", "driver 0 ended" if role == DRIVER else "collector ended"
    )
    assert not played.verdict.stops_run, "a load driver that ended says nothing about the outputs"


@pytest.mark.parametrize(
    ("fault", "count", "sentence"),
    [
        ("lose", "lost", "1 output was lost (objective lost == 0): missed"),
        ("duplicate", "duplicate", "outputs was duplicated, so the results of the system under test are incorrect"),
        ("alter", "wrong", "outputs was wrong, so the results of the system under test are incorrect"),
    ],
)
def test_one_spoilt_output_fails_a_trial_and_stops_the_run(
    fault: str, count: str, sentence: str, tmp_path: Path
) -> None:
    played = as_if_quiet(play(trial(options={fault: 1}), tmp_path))
    account = played.recording.outcome.account
    assert {name: getattr(account, name) for name in ("lost", "duplicate", "wrong")} == (
        {"lost": 0, "duplicate": 0, "wrong": 0} | {count: 1}
    )
    played.is_(VerdictKind.FAILED, sentence)
    assert played.verdict.stops_run
