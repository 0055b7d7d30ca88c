"""Whether the system under test had stopped acknowledging when its trial came to an end.

Lag is sampled at acknowledgements, so a system that hangs leaves no sample. If the last acknowledgement is older than
two usual gaps between acknowledgements while events wait, the trial goes on until the next one.
"""

import numpy as np

from streamgauge.model.seconds import Seconds
from streamgauge.model.units import SECOND

_GAPS = 2


def last_heard(seconds: Seconds) -> int:
    """When the last acknowledgement came, in nanoseconds since the load began; 0 if none did."""
    return int(seconds["ack_time"].max(initial=0))


def usual_gap(seconds: Seconds, trigger: int) -> int:
    """Nanoseconds that usually pass between two acknowledgements: the median, and never less than a second.

    Seconds keep the last acknowledgement of each, so shorter gaps are not seen.
    """
    times = seconds["ack_time"]
    gaps = np.diff(np.concatenate([[0], times[times >= 0]]))
    return max(int(np.median(gaps)) if len(gaps) else 0, trigger, SECOND)


def silence(seconds: Seconds, trigger: int) -> int:
    """Nanoseconds since the last acknowledgement, if that is more than two usual gaps and events wait; else 0."""
    waiting = int(seconds["published"].sum()) - int(seconds["acknowledged"].sum())
    since = seconds.stop * SECOND - last_heard(seconds)
    return since if waiting > 0 and since > _GAPS * usual_gap(seconds, trigger) else 0
