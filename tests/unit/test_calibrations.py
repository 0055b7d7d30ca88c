"""Calibrations are kept per machine and placement, and their workspaces leave nothing behind."""

from pathlib import Path

from streamgauge.model.calibration import Calibration, CapacityRow, Ceilings, LatencyRow
from streamgauge.store.calibrations import abandoned, keep, kept, workspace

CEILINGS = Ceilings(20e6, 3e6, 1e6, 150_000.0, 1_700_000.0, 9_000_000.0)


def made(machine: str = "box, 2 cores", placement: str = "driver on 0", queue: float = 20e6) -> Calibration:
    ceilings = Ceilings(queue, 3e6, 1e6, 150_000.0, 1_700_000.0, 9_000_000.0)
    latency = LatencyRow(5e6, 200, 5.1e6, 5.4e6, 9e6, 9.9e6, "SUSTAINED")
    invalid = CapacityRow(50e3, 49e3, "INVALID", ("others used 20% of the cores",))
    return Calibration(machine, placement, "2026-01-01T00:00:00+00:00", ceilings, (invalid,), (latency,), 120.0)


def test_the_newest_calibration_of_a_machine_and_placement_counts(tmp_path: Path) -> None:
    assert kept(tmp_path, "box, 2 cores", "driver on 0") is None
    keep(tmp_path, made())
    keep(tmp_path, made(queue=30e6))
    keep(tmp_path, made(placement="unpinned", queue=1e6))
    found = kept(tmp_path, "box, 2 cores", "driver on 0")
    assert found == made(queue=30e6)
    assert kept(tmp_path, "another box", "driver on 0") is None


def test_a_search_goes_up_to_four_fifths_of_the_ceiling() -> None:
    assert CEILINGS.most == 16e6


def test_the_error_of_a_capacity_and_the_reasons_of_invalid_trials_are_told() -> None:
    calibration = made()
    assert round(calibration.capacities[0].error, 4) == -0.02
    assert calibration.problems() == [("INVALID", "others used 20% of the cores")]


def test_a_workspace_goes_with_its_calibration_and_an_abandoned_one_with_the_next(tmp_path: Path) -> None:
    with workspace(tmp_path, "aa") as first:
        (first / "journal").write_text("x")
        assert abandoned(tmp_path) == []
    assert not first.exists()
    killed = tmp_path / "calibrations" / ".work-bb"
    killed.mkdir()
    (killed / "lock").touch()
    assert abandoned(tmp_path) == [killed]
    with workspace(tmp_path, "cc"):
        assert not killed.exists()
