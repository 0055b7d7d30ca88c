"""Clean trials, one after the other: none may be INVALID unless the machine itself shows why.

``STREAMGAUGE_CLEAN`` says how many; the default of 200 takes about twenty minutes.
"""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from real_trial import PLACEMENT, disturbance, play, trial

from streamgauge.model.measurement import VerdictKind
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="supervision needs /proc and two cores"),
]

CLEAN = int(os.environ.get("STREAMGAUGE_CLEAN", "200"))
MOST_UNEXPLAINED = 0.01


def test_a_clean_trial_is_invalid_only_for_a_cause_that_the_machine_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = trial(warmup=SECOND, duration=2 * SECOND, limit=2 * SECOND)
    kinds, causes, unexplained = Counter[str](), list[str](), list[str]()
    for number in range(CLEAN):
        played = play(asked, tmp_path / str(number))
        kinds[played.verdict.kind] += 1
        assert played.verdict.kind in (VerdictKind.SUSTAINED, VerdictKind.UNDECIDED, VerdictKind.INVALID), played
        assert (played.measured.account.checked, played.measured.account.lost) == (True, 0), played
        if played.verdict.kind is VerdictKind.INVALID:
            cause = disturbance(played.folder, played.recording.seconds.stop)
            causes.append(f"{played.verdict.reasons[0].partition(';')[0]}: {cause or 'no cause is visible'}")
            unexplained += [] if cause else [str(played)]
        shutil.rmtree(played.folder)
    with capsys.disabled():
        invalid, counts = kinds[VerdictKind.INVALID], ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
        print(f"\n{CLEAN} clean trials: {counts}; {len(unexplained)} of {invalid} INVALID without a visible cause")
        print(*(f"  {cause}" for cause in causes), sep="\n")
    assert len(unexplained) <= MOST_UNEXPLAINED * CLEAN, "\n\n".join(unexplained)
