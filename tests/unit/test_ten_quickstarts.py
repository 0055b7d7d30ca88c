"""The table of ten quickstarts: what is counted, and what is wanted."""

import json
from pathlib import Path
from typing import Any

from benches._ten_quickstarts import Row, row, summary


def ran(middle: float, width: float = 0.04, seconds: float = 200.0) -> Row:
    holds = middle / (1 + width / 2)
    return Row(seconds, holds, holds * (1 + width), "3 OVERLOADED", 0.0, 0.0, 0)


def run_of(folder: Path, *verdicts: tuple[str, str], began: float | None = None) -> dict[str, Any]:
    """The document of a run with these trials, which are stored in the folder. ``began``: the load of the first one."""
    trials = []
    for number, (purpose, verdict) in enumerate(verdicts, 1):
        measured = {"measured": {"steal_share": 0.01, "foreign_share": 0.02}}
        told = {"load": 4e6, "reasons": ["the generator was late by 61 ms " + "and more " * 40, "and the disk is full"]}
        trials.append({"number": number, "purpose": purpose, "verdict": verdict, **measured, **told})
        (place := folder / "a" / "trials" / f"{number:03}").mkdir(parents=True)
        facts = {} if began is None else {"wall_ns": int((began + 40 * (number - 1)) * 1e9)}
        (place / "manifest.json").write_text(json.dumps({"facts": facts}))
    finding = {"holds": {"value": 100.0}, "fails": {"value": 104.0}}
    return {"run": "a", "exit_code": 0, "trials": trials, "findings": [finding]}


def test_the_trial_at_90_percent_is_not_counted(tmp_path: Path) -> None:
    verdicts = (("confirm", "SUSTAINED"), ("confirm", "OVERLOADED"), ("measure", "SUSTAINED"))
    document = run_of(tmp_path, *verdicts)
    done = (tmp_path / "a" / "trials" / "002" / "manifest.json").stat().st_mtime
    found = row(document, tmp_path, done - 180, done + 50)
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


def test_the_time_until_the_first_trial_ends_with_its_load(tmp_path: Path) -> None:
    found = row(
        run_of(tmp_path, ("confirm", "SUSTAINED"), ("confirm", "OVERLOADED"), began=95.0), tmp_path, 10.0, 200.0
    )
    assert found.first == 85.0
    assert "    85  " in found.text()
    assert row(run_of(tmp_path / "b", ("confirm", "SUSTAINED")), tmp_path / "b", 10.0, 200.0).first is None


def test_a_trial_that_was_invalid_says_why_in_one_line(tmp_path: Path) -> None:
    found = row(run_of(tmp_path, ("confirm", "INVALID"), ("confirm", "SUSTAINED")), tmp_path, 0.0, 200.0)
    first, second = found.text().splitlines()
    assert "1 INVALID, 1 SUSTAINED" in first
    assert "trial 1 at 4,000,000/s, INVALID: the generator was late by 61 ms" in second
    assert len(second) < 220


def test_a_run_whose_trials_were_all_decided_has_one_line(tmp_path: Path) -> None:
    found = row(run_of(tmp_path, ("confirm", "OVERLOADED"), ("confirm", "SUSTAINED")), tmp_path, 0.0, 200.0)
    assert len(found.text().splitlines()) == 1
