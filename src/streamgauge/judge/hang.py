"""Whether the system under test had stopped acknowledging at the end of its trial.

Lag is sampled at acknowledgements, so there is no sample of a system that hangs. If events wait and the last
acknowledgement is older than two typical gaps between acknowledgements, the trial is extended until the next one.
"""

import numpy as np

from streamgauge.model.seconds import Seconds
from streamgauge.model.units import SECOND

_GAPS = 2


def last_acknowledgement(seconds: Seconds) -> int:
    """The time of the last acknowledgement, in nanoseconds since the load began; 0 if there is none."""
    return int(seconds["ack_time"].max(initial=0))


def typical_gap(seconds: Seconds, trigger: int) -> int:
    """The median number of nanoseconds between two acknowledgements, at least a second.

    Only the last acknowledgement of each second is recorded, so shorter gaps are unknown.
    """
    times = seconds["ack_time"]
    gaps = np.diff(np.concatenate([[0], times[times >= 0]]))
    return max(int(np.median(gaps)) if len(gaps) else 0, trigger, SECOND)


def unacknowledged_time(seconds: Seconds, trigger: int) -> int:
    """Nanoseconds since the last acknowledgement, if it is older than two typical gaps and events wait; otherwise 0."""
    waiting = int(seconds["published"].sum()) - int(seconds["acknowledged"].sum())
    since = seconds.stop * SECOND - last_acknowledgement(seconds)
    return since if waiting > 0 and since > _GAPS * typical_gap(seconds, trigger) else 0
