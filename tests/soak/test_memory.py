"""The driver's memory is flat once the queue is steady.

``STREAMGAUGE_SOAK_SECONDS`` says for how long, ten minutes by default, at a million events a second.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from real_trial import PLACEMENT, play, trial

from streamgauge.model.facts import DRIVER
from streamgauge.model.units import SECOND
from streamgauge.run.monitor.monitor import available
from streamgauge.store.journal import read_rows

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not available() or not PLACEMENT.sut, reason="memory is read through /proc"),
]

SECONDS = int(os.environ.get("STREAMGAUGE_SOAK_SECONDS", "600"))
RATE = 1e6
MEGABYTE = 1_000_000
MOST_SHARE, MOST_BYTES = 0.02, 20 * MEGABYTE


def test_the_drivers_memory_is_flat_at_a_million_events_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = trial(RATE, {"capacity": "2M/s"}, duration=SECONDS * SECOND, limit=SECONDS * SECOND)
    played = play(asked, tmp_path)
    rows = read_rows(tmp_path / "monitor-roles").to_pylist()
    memory = np.array([(r["time"] / SECOND, r["rss_bytes"]) for r in rows if r["role"] == DRIVER])
    memory = memory[memory[:, 0] < played.recording.seconds.stop]
    time, held = memory[memory[:, 0] >= SECONDS / 2].T
    growth = float(np.polyfit(time, held, 1)[0] * (time[-1] - time[0]))
    mean, queue = float(held.mean()), int(played.recording.seconds["queue"].max())
    with capsys.disabled():
        print(
            f"\n{SECONDS} s at {RATE:,.0f} events/s ({played.measured.published_rate:,.0f} published): "
            f"the driver holds {mean / MEGABYTE:.1f} MB in the second half, "
            f"{held.min() / MEGABYTE:.1f} to {held.max() / MEGABYTE:.1f}, "
            f"growth {growth / MEGABYTE:+.2f} MB ({growth / mean:+.2%}); longest queue {queue:,} events; "
            f"{played.verdict.kind}"
        )
    assert played.measured.published_rate > 0.99 * RATE, played
    assert growth < max(MOST_SHARE * mean, MOST_BYTES), played
