"""The maximum rates that a calibration measures, on the real processes. Short here: `make bench` shows the numbers."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.model.experiment import TransportChoice
from streamgauge.model.layout import Placement
from streamgauge.processes.launch import Launcher
from streamgauge.run.calibrate.calibrate import CalibrationSetup, _capacity, _latency
from streamgauge.run.calibrate.max_load import LoadSetup, max_input_rate, max_output_rate, send_delay
from streamgauge.run.trial.setup import RunLimits
from streamgauge.transports.queue.transport import OpenQueue


@pytest.fixture
def site() -> Iterator[LoadSetup]:
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        yield LoadSetup(launcher, OpenQueue(launcher.runtime), "queue", Placement())


def test_the_queue_has_a_maximum_rate(site: LoadSetup, tmp_path: Path) -> None:
    assert max_input_rate(site, tmp_path / "queue", seconds=0.5) > 100_000


def test_the_collector_has_a_maximum_rate(site: LoadSetup, tmp_path: Path) -> None:
    assert max_output_rate(site, tmp_path / "collector", seconds=0.5) > 10_000


def test_the_send_delay_is_measured_after_the_first_second(site: LoadSetup, tmp_path: Path) -> None:
    delay = send_delay(site, tmp_path / "lag", 100_000.0, seconds=0.5)
    assert delay.intervals == 100
    assert 0 < delay.p50 <= delay.p99 <= delay.worst <= delay.most
    assert delay.achieved == pytest.approx(100_000.0, rel=0.5)


def test_a_trial_of_a_calibration_that_could_not_begin_is_a_row_with_its_reason(tmp_path: Path) -> None:
    """The log of the driver is a folder, so the driver cannot start."""
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        limits, opened = RunLimits(runtime=Path(short)), OpenQueue(Path(short))
        setup = CalibrationSetup(tmp_path, Placement(), lambda _: None, limits, TransportChoice(), opened)
        for name in ("capacity-50000", "delay-5000000"):
            (tmp_path / name / "driver-0.log").mkdir(parents=True)
        rows = (_capacity(setup, tmp_path, rate=50e3), _latency(setup, tmp_path, delay=5_000_000))
    assert [row.verdict for row in rows] == ["INVALID", "INVALID"]
    assert all("driver 0 was not started" in row.reasons[0] for row in rows)
