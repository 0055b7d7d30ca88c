"""The table of ten quickstarts: what is counted, and what is wanted."""

from pathlib import Path

from benches._ten_quickstarts import Row, row, summary


def ran(middle: float, width: float = 0.04, seconds: float = 200.0) -> Row:
    holds = middle / (1 + width / 2)
    return Row(seconds, holds, holds * (1 + width), "3 OVERLOADED", 0.0, 0.0, 0)


def test_the_trial_at_90_percent_is_not_counted(tmp_path: Path) -> None:
    measured = {"measured": {"steal_share": 0.01, "foreign_share": 0.02}}
    verdicts = (("confirm", "SUSTAINED"), ("confirm", "OVERLOADED"), ("measure", "SUSTAINED"))
    trials = [{"number": n, "purpose": p, "verdict": v, **measured} for n, (p, v) in enumerate(verdicts, 1)]
    for trial in trials:
        (folder := tmp_path / "a" / "trials" / f"{trial['number']:03}").mkdir(parents=True)
        (folder / "manifest.json").touch()
    done = (tmp_path / "a" / "trials" / "002" / "manifest.json").stat().st_mtime
    finding = {"holds": {"value": 100.0}, "fails": {"value": 104.0}}
    found = row({"run": "a", "exit_code": 0, "trials": trials, "findings": [finding]}, tmp_path, done - 180, done + 50)
    assert round(found.seconds) == 180
    assert (found.verdicts, found.steal, found.foreign) == ("1 OVERLOADED, 1 SUSTAINED", 0.01, 0.02)
    assert (found.middle, round(found.width or 0, 3)) == (102.0, 0.04)


def test_a_run_without_bounds_counts_as_wide_and_apart() -> None:
    none = Row(300.0, 90.0, None, "1 SUSTAINED", 0.0, 0.0, 6)
    said = summary([ran(100.0), ran(101.0), ran(120.0), ran(99.0, width=0.2), none])
    assert "median time to the bounds: 3.33 minutes" in said[0]
    assert "at most 5% wide: 3 of 5" in said[1]
    assert "3 of 5" in said[2]


def test_a_run_that_wrote_no_document_has_no_bounds(tmp_path: Path) -> None:
    found = row({"exit_code": 70}, tmp_path, 0.0, 12.0)
    assert (found.middle, found.seconds, found.exit_code) == (None, 12.0, 70)
