"""Other work that uses 30 % of the system's core, for five seconds and for a whole trial, on real processes.

A disturbance has a direction: what is sustained all the same stands, and what is not is never a plain failure.
"""

import os
from contextlib import ExitStack
from pathlib import Path

import pytest
from real_trial import PLACEMENT, Played, Sabotage, hogs, objectives, play, trial

from streamgauge.judge.decide import driver_faults
from streamgauge.judge.disturbed import MAX_FOREIGN_SHARE, was_slowed
from streamgauge.model.measurement import NEGLIGIBLE_SHARE, VerdictKind
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores"),
]
TIMES = range(int(os.environ.get("STREAMGAUGE_SABOTAGE", "5")))
CAPACITY = 300_000.0
HOG = 0.3
"""Share of the system's core that the other work uses."""
WARM, JUDGED, LIMIT = 3, 20, 40
"""Seconds. Five of twenty are less than a third: a burst, which is cut out while the trial is extended."""
BURST = 5
LENGTHS = ("five seconds", "whole trial")


def asked(share: float, seed: int) -> Trial:
    """A trial at this share of the capacity."""
    return trial(
        share * CAPACITY,
        {"capacity": f"{CAPACITY:.0f}/s"},
        warmup=WARM * SECOND,
        warmup_limit=WARM * SECOND,
        duration=JUDGED * SECOND,
        limit=LIMIT * SECOND,
        seed=seed,
    )


def disturbed(share: float, length: str, seed: int, folder: Path) -> Played:
    """The trial with a hog on the system's core, for five of its judged seconds or from before its start on."""
    core = PLACEMENT.sut[0]
    with ExitStack() as stack:
        if length == "whole trial":
            stack.enter_context(hogs(core, longest=180.0, share=HOG))
            played = play(asked(share, seed), folder)
        else:
            burst: dict[int, Sabotage] = {
                WARM + 4: lambda: stack.enter_context(hogs(core, longest=float(BURST), share=HOG))
            }
            played = play(asked(share, seed), folder, burst)
    m, verdict = played.measured, played.verdict
    print(
        f"hog of {HOG:.0%}, {length}, at {share:g}: {verdict.kind}, {m.foreign_share:.1%} taken, holds {verdict.holds}"
    )
    return played


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("length", LENGTHS)
def test_case_13_half_of_the_capacity_is_sustained_although_others_used_the_systems_core(
    length: str, time: int, tmp_path: Path
) -> None:
    played = disturbed(0.5, length, time, tmp_path / "trial")
    if driver_faults(played.recording, played.measured, objectives()):
        assert played.verdict.kind is VerdictKind.INVALID, played  # it is valid only if the generator met its plan
        return
    assert played.verdict.kind is VerdictKind.SUSTAINED, played
    assert played.measured.foreign_share > NEGLIGIBLE_SHARE, played
    assert ("latencies are upper bounds" in played.reasons) == was_slowed(played.measured), played
    if length == "whole trial":
        assert played.measured.foreign_share > MAX_FOREIGN_SHARE, played


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("length", LENGTHS)
def test_case_13_nearly_all_of_the_capacity_never_fails_plainly_while_others_used_the_systems_core(
    length: str, time: int, tmp_path: Path
) -> None:
    played = disturbed(0.97, length, time, tmp_path / "trial")
    verdict, taken = played.verdict, played.measured.foreign_share
    assert verdict.kind in (VerdictKind.SUSTAINED, VerdictKind.INVALID, VerdictKind.OVERLOADED), played
    assert verdict.holds is not False or taken <= NEGLIGIBLE_SHARE, played
    if verdict.kind is VerdictKind.OVERLOADED and verdict.holds is None:
        assert verdict.taken > NEGLIGIBLE_SHARE, played
        assert "it counts as a failure at" in played.reasons, played
