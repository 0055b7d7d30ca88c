"""Recorded noise of Spark: what is kept of a trial, what is fitted to it, and how replays are counted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benches._collect_noise import SHARES, load, parsed, question_of, write
from benches.real_noise import counted, fit
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.units import SECOND


def recorded(application: str | None, fixed: float, each: float, rate: float, count: int = 200) -> dict[str, Any]:
    """A trial whose micro-batches take ``fixed + each · events`` seconds, give or take 1 %."""
    rng = np.random.default_rng(int(rate))
    events = np.rint(rate * rng.uniform(0.9, 1.1, count)).astype(np.int64)
    took = (fixed + each * events) * rng.normal(1.0, 0.01, count)
    about = {"transport": "queue", "load": rate, "hog": 0.0, "trigger": 1.0}
    about |= {} if application is None else {"application": application}
    return {
        "about": about,
        "seconds/foreign": np.zeros(count, np.int64),
        "seconds/steal": np.zeros(count, np.int64),
        "batches/time": np.arange(count) * SECOND,
        "batches/input_rows": events,
        "batches/trigger_ms": np.rint(took * 1e3).astype(np.int64),
    }


def test_the_fixed_cost_is_that_of_one_application() -> None:
    trials = [recorded(name, fixed, 1e-6, rate) for name, fixed in (("a", 0.1), ("b", 0.4)) for rate in (2e5, 5e5)]
    trials += [recorded(None, 0.7, 2e-6, rate) for rate in (2e5, 4e5)]
    found = fit(trials, 0.0)
    assert [round(noise.fixed, 1) for noise in found] == [0.1, 0.1, 0.4, 0.4, 0.7, 0.7]
    assert [round(1e6 * noise.each, 1) for noise in found] == [1.0, 1.0, 1.0, 1.0, 2.0, 2.0]


def test_what_was_written_is_loaded_again(tmp_path: Path) -> None:
    trials = [recorded("a", 0.1, 1e-6, rate) for rate in (2e5, 5e5)]
    write(tmp_path / "new" / "noise.npz", trials[:1])
    write(tmp_path / "new" / "noise.npz", trials)
    again = load(tmp_path / "new" / "noise.npz")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["noise.npz"]
    assert [trial["about"] for trial in again] == [trial["about"] for trial in trials]
    assert (again[1]["batches/input_rows"] == trials[1]["batches/input_rows"]).all()


def test_a_recording_has_eight_trials_of_60_s_unless_something_else_is_asked() -> None:
    usual = parsed(["--out", "noise.npz"])
    assert (usual.length, usual.shares, usual.applications, len(SHARES)) == (60, SHARES, 1, 8)
    asked = parsed(["--out", "noise.npz", "--shares", "0.5,1.1", "--trigger", "2s", "--length", "30"])
    question = question_of(asked)
    assert asked.shares == (0.5, 1.1)
    assert (question.engines[0].options["trigger"], question.trial.duration) == (2 * SECOND, 30 * SECOND)


@pytest.mark.parametrize("shares", ["0", "1,-1", "some", "0.5,,1"])
def test_shares_that_are_no_loads_are_refused(shares: str) -> None:
    with pytest.raises(SystemExit):
        parsed(["--out", "noise.npz", "--shares", shares])


@pytest.mark.parametrize(
    ("kind", "ratio", "share", "taken", "counts"),
    [
        ("SUSTAINED", 0.975, 0.0, 0.0, "right"),
        ("SUSTAINED", 1.025, 0.0, 0.0, "wrong"),
        ("SUSTAINED", 1.025, 0.0, 0.2, "right"),  # with all of its CPU the system sustains 1.25 times the boundary
        ("OVERLOADED", 1.025, 0.005, 0.005, "right"),
        ("OVERLOADED", 0.975, 0.005, 0.005, "wrong"),
        ("OVERLOADED", 1.025, 0.0, 0.08, "wrong"),
        ("OVERLOADED", 1.025, 0.2, 0.2, "higher"),
        ("OVERLOADED", 0.9, 0.2, 0.2, "wrong"),
        ("OVERLOADED", 0.9, 0.3, 0.2, "higher"),
        ("FAILED", 0.975, 0.0, 0.0, "wrong"),
        ("UNDECIDED", 1.1, 0.0, 0.0, "UNDECIDED"),
        ("INVALID", 0.9, 0.0, 0.2, "INVALID"),
    ],
)
def test_a_verdict_is_wrong_if_its_claim_is(kind: str, ratio: float, share: float, taken: float, counts: str) -> None:
    verdict = Verdict(VerdictKind(kind), ("the lag grew by so many",), taken=share)
    assert counted(verdict, ratio, taken) == counts
