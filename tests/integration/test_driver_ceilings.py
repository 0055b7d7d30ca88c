"""The ceilings that calibration measures, on the real processes. Short here: the numbers are for `make bench`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import Placement
from streamgauge.run.calibrate.calibrate import Site, _capacity, _latency
from streamgauge.run.calibrate.max_load import collector_ceiling, queue_ceiling, schedule_lag


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as made:
        yield made


def test_the_queue_has_a_ceiling(launcher: Launcher, tmp_path: Path) -> None:
    assert queue_ceiling(launcher, tmp_path / "queue", Placement(), seconds=0.5) > 100_000


def test_the_collector_has_a_ceiling(launcher: Launcher, tmp_path: Path) -> None:
    assert collector_ceiling(launcher, tmp_path / "collector", Placement(), seconds=0.5) > 10_000


def test_the_schedule_lag_is_measured_after_the_first_second(launcher: Launcher, tmp_path: Path) -> None:
    lag = schedule_lag(launcher, tmp_path / "lag", Placement(), 100_000.0, seconds=0.5)
    assert lag.ticks == 100
    assert 0 < lag.p50 <= lag.p99 <= lag.worst <= lag.most
    assert lag.achieved == pytest.approx(100_000.0, rel=0.5)


def test_a_trial_of_a_calibration_that_could_not_begin_is_a_row_with_its_reason(tmp_path: Path) -> None:
    """The log of the driver is a folder, so the driver cannot start."""
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        at = Site(tmp_path, Placement(), lambda _: None, Path(short))
        for name in ("capacity-50000", "delay-5000000"):
            (tmp_path / name / "driver-0.log").mkdir(parents=True)
        rows = (_capacity(at, tmp_path, rate=50e3), _latency(at, tmp_path, delay=5_000_000))
    assert [row.verdict for row in rows] == ["INVALID", "INVALID"]
    assert all("driver 0 was never started" in row.reasons[0] for row in rows)
