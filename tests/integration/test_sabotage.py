"""Every way in which a trial can go wrong, provoked on real processes: each has its verdict and its sentence.

Trials are as short as the sentence allows; `make soak` has each fault by itself and at every moment.
"""

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
from cli_session import CommandResult, start, write
from real_run import EXPERIMENT, calibrated
from real_trial import (
    COLLECTOR,
    DRIVER,
    ENGINE,
    MILLI,
    PLACEMENT,
    Sabotage,
    as_if_quiet,
    child,
    hogs,
    play,
    stop_for,
    trial,
    valid_or_disturbed,
)

from streamgauge.engines.contract import Deployment, Host, JobRun, Layout, System
from streamgauge.engines.reference.engine import ReferenceEngine, ReferenceOptions
from streamgauge.engines.reference.ground_truth import read_ground_truth
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import RunningProcess
from streamgauge.run.monitor.monitor import available

pytestmark = pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores")

FAILED, INVALID, OVERLOADED, SUSTAINED = (
    VerdictKind.FAILED,
    VerdictKind.INVALID,
    VerdictKind.OVERLOADED,
    VerdictKind.SUSTAINED,
)
LONG: dict[str, Any] = {"duration": 6 * SECOND, "limit": 6 * SECOND}
"""Long enough for a trend."""
ENDLESS: dict[str, Any] = {"duration": 60 * SECOND, "limit": 60 * SECOND}
"""Longer than what ends it takes."""


def test_a_load_that_the_system_holds_is_sustained(tmp_path: Path) -> None:
    played = play(trial(**LONG), tmp_path)
    account = played.recording.outcome.account
    assert (account.checked, account.lost, account.duplicate, account.wrong) == (True, 0, 0, 0)
    assert account.observed == account.expected - account.not_reached > 3_000
    if valid_or_disturbed(played, SUSTAINED):
        assert "objective met" in played.reasons


def test_a_load_over_the_capacity_is_overloaded_and_the_capacity_is_read_from_it(tmp_path: Path) -> None:
    played = play(trial(400e3, {"capacity": "300k/s"}, **LONG), tmp_path)
    if valid_or_disturbed(played, OVERLOADED):
        assert "objective missed" in played.reasons
        assert played.measured.capacity is not None
        assert played.measured.capacity.mean == pytest.approx(read_ground_truth(tmp_path).capacity(), rel=0.02)


# The driver or the machine: INVALID.


def test_a_generator_that_is_too_slow_for_its_plan_makes_a_trial_invalid(tmp_path: Path) -> None:
    over = threading.Event()

    def slow_down() -> None:
        pid = child(DRIVER)

        def starve() -> None:
            while not over.wait(0.002):
                os.kill(pid, signal.SIGSTOP)
                over.wait(0.1)
                os.kill(pid, signal.SIGCONT)

        threading.Thread(target=starve, daemon=True).start()

    longer = trial(1e6, {"capacity": "4M/s"}, duration=3 * SECOND, limit=3 * SECOND)
    played = play(longer, tmp_path, {1: slow_down, 4: over.set})
    played.is_(INVALID, "of the planned events (minimum 99.5 %); give the load driver more cores")


def test_a_generator_that_stands_still_and_a_step_of_the_wall_clock_make_a_trial_invalid(tmp_path: Path) -> None:
    step = {"wall_step_at_ns": 1_500 * MILLI, "wall_step_ns": -100 * MILLI}
    stop: dict[int, Sabotage] = {1: lambda: stop_for(child(DRIVER), 0.5)}
    played = play(trial(), tmp_path, stop, step)
    played.is_(INVALID, "longest send delay ", "(limit 250 ms): the load generator paused")
    assert 0.4 * SECOND < played.measured.schedule_lag_worst < 0.8 * SECOND
    played.is_(INVALID, "the wall clock jumped by", "stop the process that sets it")
    assert played.measured.clock_step == pytest.approx(100 * MILLI, abs=30 * MILLI)


def test_others_on_the_drivers_core_make_a_trial_invalid(tmp_path: Path) -> None:
    with hogs(PLACEMENT.driver[0], 2):
        played = play(trial(), tmp_path)
    played.is_(INVALID, "the load driver waited for a CPU", "keep other work off its cores")
    assert played.measured.run_delay_share > 0.2


@pytest.mark.parametrize(
    ("role", "said", "second", "counts"),
    [
        (DRIVER, "driver 0 ended", 2, "they were not compared with a reference result"),
        (COLLECTOR, "collector ended", 3, "compared with the reference result: 0 duplicate, 0 wrong, lost unknown"),
    ],
    ids=["the driver under load", "the collector in the tail"],
)
def test_a_driver_or_collector_that_is_killed_makes_a_trial_invalid(
    role: str, said: str, second: int, counts: str, tmp_path: Path
) -> None:
    played = play(trial(), tmp_path, {second: lambda: os.kill(child(role), signal.SIGKILL)})
    played.is_(INVALID, "the load driver failed: ", said, "outputs were stored before that; ", counts)
    account = played.measured.account
    assert account.observed > 0
    assert account.checked is (role == COLLECTOR)
    assert not played.verdict.stops_run, "a driver that died says nothing of the outputs"


def fill_the_disk_of_the_monitor(folder: Path) -> None:
    """The next row of the monitor goes where no space is left."""
    full = os.open("/dev/full", os.O_WRONLY)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):  # the folder's own, which is closed by now
            if Path("/proc/self/fd", name).readlink() == folder / "monitor-cores.arrows":
                os.dup2(full, int(name))
    os.close(full)


def test_a_monitor_that_stops_makes_a_trial_invalid(tmp_path: Path) -> None:
    played = play(trial(**LONG), tmp_path, {2: lambda: fill_the_disk_of_the_monitor(tmp_path)})
    played.is_(INVALID, "the monitor stopped (", "No space left on device", "s are not recorded; repeat the trial")


@pytest.mark.parametrize(("role", "said"), [(DRIVER, "driver 0 ended unexpectedly")], ids=["driver"])
def test_a_disk_that_is_full_for_a_process_of_the_load_driver_makes_a_trial_invalid(
    role: str, said: str, tmp_path: Path
) -> None:
    def fill() -> None:
        # its log still fits, its journals do not
        psutil.Process(child(role)).rlimit(psutil.RLIMIT_FSIZE, (4096, 4096))

    played = play(trial(**ENDLESS), tmp_path, {1: fill})
    played.is_(INVALID, "the load driver failed: ", said, "File too large")


When = Literal["while it starts", "once it is ready"]


class KillingEngine(ReferenceEngine):
    """The reference engine, and a process of the load driver is killed before the load begins."""

    def __init__(self, role: str, when: When) -> None:
        self._role, self._when = role, when

    @contextmanager
    def start(self, layout: Layout, options: ReferenceOptions, host: Host) -> Iterator[System]:
        with super().start(layout, options, host) as system:
            yield KillingSystem(system, self._role, self._when)


class KillingSystem:
    """A system, and a process of the load driver is killed while a job starts, or once it is ready."""

    def __init__(self, system: System, role: str, when: When) -> None:
        self._system, self._role, self._when = system, role, when

    @contextmanager
    def deploy(self, run: JobRun[Any]) -> Iterator[Deployment]:
        if self._when == "while it starts":
            self._kill()
        with self._system.deploy(run) as deployment:
            if self._when == "once it is ready":
                self._kill()
            yield deployment

    def alive(self) -> bool:
        return self._system.alive()

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        return self._system.processes()

    def leftovers(self) -> Sequence[str]:
        return self._system.leftovers()

    def _kill(self) -> None:
        victim = psutil.Process(child(self._role))
        victim.kill()
        psutil.wait_procs([victim], timeout=10)


@pytest.mark.parametrize(
    ("role", "said", "when"),
    [
        (DRIVER, "driver 0 ended", "once it is ready"),
        (COLLECTOR, "collector ended", "once it is ready"),
        (DRIVER, "driver 0 ended", "while it starts"),
    ],
    ids=["the driver", "the collector", "the driver, while the system starts"],
)
def test_a_driver_or_collector_that_dies_before_the_load_begins_makes_a_trial_invalid(
    role: str, said: str, when: When, tmp_path: Path
) -> None:
    played = play(trial(), tmp_path, engine=KillingEngine(role, when))
    played.is_(INVALID, "the load driver failed: ", said, "unexpectedly with exit code -9")


# The system under test: FAILED, or OVERLOADED immediately.


def test_one_spoilt_output_of_each_kind_is_found_fails_a_trial_and_stops_the_run(tmp_path: Path) -> None:
    played = as_if_quiet(play(trial(options={"lose": 1, "duplicate": 1, "alter": 1}), tmp_path))
    account = played.recording.outcome.account
    assert (account.lost, account.duplicate, account.wrong) == (1, 1, 1)
    incorrect = [f"outputs was {what}, so the results of the system" for what in ("duplicated", "wrong")]
    played.is_(FAILED, "1 output was lost (objective lost == 0): missed", *incorrect)
    assert played.verdict.stops_run


def test_a_system_that_consumes_and_puts_out_nothing_fails_and_stops_the_run(tmp_path: Path) -> None:
    played = as_if_quiet(play(trial(options={"silent": True}), tmp_path))
    played.is_(FAILED, "read its input at 200k/s but produced none of the ", "expected outputs")
    assert played.verdict.stops_run


def test_a_full_queue_ends_a_trial_immediately_as_overloaded(tmp_path: Path) -> None:
    asked = trial(450e3, {"capacity": "300k/s"}, queue_bound=400_000, **ENDLESS)
    played = as_if_quiet(play(asked, tmp_path))
    played.is_(OVERLOADED, "the queue reached its limit (", "at 450k/s; lower the load")
    assert played.recording.outcome.ending == "queue-full"
    assert len(played.recording.seconds) <= 5, "150k/s more than it can do fill 400k in 2.7 s"


def test_a_dropped_connection_fails_a_trial(tmp_path: Path) -> None:
    asked = trial(500e3, {"drop_after": "1s"}, partitions=2, **ENDLESS)
    played = as_if_quiet(play(asked, tmp_path, driver_changes={"retry_ns": SECOND}))
    played.is_(FAILED, "closed its connection to the queue at 500k/s: it closed a stream before its end")
    assert not played.verdict.stops_run, "a lower load may hold"


def test_a_crash_fails_a_trial_and_shows_the_last_lines_of_the_log(tmp_path: Path) -> None:
    played = as_if_quiet(play(trial(options={"crash_after": "1s"}), tmp_path))
    played.is_(
        FAILED, "the system under test crashed at 200k/s: its process ended with exit code 1", "crashed, as configured"
    )
    assert "its log: " in played.reasons
    assert not played.verdict.stops_run


def test_a_crash_after_the_judged_seconds_is_a_crash_too(tmp_path: Path) -> None:
    played = as_if_quiet(play(trial(), tmp_path, {3: lambda: os.kill(child(ENGINE), signal.SIGKILL)}))
    played.is_(FAILED, "the system under test crashed at 200k/s: its process ended with exit code -9")


def test_a_stall_fails_a_trial(tmp_path: Path) -> None:
    asked = trial(options={"stall_after": "1s", "stall": "60s"}, stall=3 * SECOND, **ENDLESS)
    played = as_if_quiet(play(asked, tmp_path))
    played.is_(FAILED, "stalled at 200k/s: no acknowledgement for 3 s while events waited", "stalls, as configured")


# The whole way.


@pytest.mark.soak
def test_others_on_the_systems_core_make_every_trial_invalid_and_the_run_ends_with_exit_code_3(tmp_path: Path) -> None:
    short = EXPERIMENT.replace("duration: 3s, limit: 3s", "duration: 2s, limit: 2s")
    file = write(tmp_path, short.replace("invalid_retries: 0", "invalid_retries: 1"))
    with hogs(PLACEMENT.sut[0], longest=120.0):
        process = start("run", file, "--out", calibrated(tmp_path / "runs"), "--json")
        said = CommandResult(process.returncode, *process.communicate(timeout=120))
    assert process.returncode == 3, said.err
    trials = said.document["trials"]
    assert len(trials) == 2, "it is repeated as often as the file says, once"
    for each in trials:
        assert each["verdict"] == "INVALID"
        reasons = " ".join(each["reasons"])
        assert "of the CPU of the system under test" in reasons
        assert "so a missed objective proves nothing; stop other work on these cores" in reasons
        assert each["measured"]["foreign_share"] > 0.4, "all that the system itself leaves free"
