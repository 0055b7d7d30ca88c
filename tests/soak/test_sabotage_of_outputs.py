"""Sabotage of the outputs of a system, on real processes: five times each at half and at nearly all of its capacity."""

from pathlib import Path

import pytest
from real_trial import PLACEMENT, hogs, play, trial

from streamgauge.model.measurement import VerdictKind
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores"),
]

CAPACITY = 300_000.0
TIMES = range(5)
LOADS = [0.5, 0.97]


@pytest.mark.parametrize("share", LOADS)
@pytest.mark.parametrize("time", TIMES)
def test_a_system_that_stops_acknowledging_for_the_last_ten_seconds_is_not_sustained(
    share: float, time: int, tmp_path: Path
) -> None:
    options = {"capacity": f"{CAPACITY:.0f}/s", "stall_after": "13s", "stall": "12s"}
    asked = trial(share * CAPACITY, options, warmup=3 * SECOND, duration=20 * SECOND, limit=20 * SECOND, seed=time)
    played = play(asked, tmp_path / "trial")
    print(f"no acknowledgement for the last 10 s at {share:g}: {played.verdict.kind}")
    assert played.verdict.kind is not VerdictKind.SUSTAINED, played
    if played.verdict.kind is not VerdictKind.INVALID:
        assert played.recording.seconds.stop >= 24, played
        assert played.verdict.kind in (VerdictKind.OVERLOADED, VerdictKind.UNDECIDED), played


@pytest.mark.parametrize("share", LOADS)
@pytest.mark.parametrize("time", TIMES)
def test_a_system_that_never_acknowledges_again_has_stalled(share: float, time: int, tmp_path: Path) -> None:
    options = {"capacity": f"{CAPACITY:.0f}/s", "stall_after": "8s", "stall": "60s"}
    lengths = {"warmup": 2 * SECOND, "duration": 10 * SECOND, "limit": 10 * SECOND, "stall": 8 * SECOND}
    played = play(trial(share * CAPACITY, options, seed=time, **lengths), tmp_path / "trial")
    print(f"no acknowledgement ever again at {share:g}: {played.verdict.kind}")
    assert played.verdict.kind in (VerdictKind.FAILED, VerdictKind.INVALID), played
    assert played.recording.outcome.ending == "stalled", played


@pytest.mark.parametrize("share", LOADS)
@pytest.mark.parametrize("time", TIMES)
def test_one_lost_row_in_a_disturbed_trial_fails_it(share: float, time: int, tmp_path: Path) -> None:
    options = {"capacity": f"{CAPACITY:.0f}/s", "lose": 1}
    asked = trial(share * CAPACITY, options, warmup=2 * SECOND, duration=10 * SECOND, limit=10 * SECOND, seed=time)
    with hogs(PLACEMENT.sut[0]):
        played = play(asked, tmp_path / "trial")
    print(f"one lost row in a disturbed trial at {share:g}: {played.verdict.kind}")
    assert played.recording.outcome.account.lost > 0, played
    assert played.verdict.kind is VerdictKind.FAILED, played
    assert "lost" in played.verdict.reasons[0], played
