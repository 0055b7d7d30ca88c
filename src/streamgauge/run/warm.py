"""Warm a new system up before anything is judged, and see about where its limit is.

The warm-up is a fixed load, until the CPU time that an event costs has stopped falling. Then the load grows until
the system falls behind: what it gets done then is where a search begins.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from streamgauge.engines.base import Warming
from streamgauge.model.profile import constant, steps
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Ask, Trial
from streamgauge.model.units import SECOND
from streamgauge.stats.flat import flat

_SPAN = 5
"""Seconds of a stretch whose cost per event is compared with that of the stretch before."""
_FIRST, _DOUBLES, _LONGEST = 5.0, 10, 48
"""A growing load begins at so many times that of the warm-up, doubles in so many seconds, ends after so many."""
_LATE = 1.03
"""Triggers that a micro-batch takes when the next has to wait for it."""
_LAST = 4
"""Micro-batches that are looked at, the last that were late. One alone says little: they differ by a tenth."""
_SHORTER = 0.93
"""What one that is in time gets done, against one that is half as long again: each has its fixed cost."""
_BEHIND = 3.0
"""Triggers of load that wait when it has fallen behind."""


@dataclass(slots=True)
class Warmth:
    """Watches a warm-up: it is over when an event costs what it cost before."""

    limit: int
    least: int = 0
    costs: list[float] = field(default_factory=list)

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once the last stretches cost what those before them did, or the limit is reached."""
        events, used = seconds["acknowledged"], seconds["sut_cpu"]
        self.costs = [
            float(used[i : i + _SPAN].sum()) / done if (done := float(events[i : i + _SPAN].sum())) else math.inf
            for i in range(len(events) % _SPAN, len(events), _SPAN)
        ]
        lasted = seconds.stop * SECOND
        return lasted >= self.limit or (lasted >= self.least and flat(self.costs))

    def said(self) -> dict[str, object]:
        """For the manifest: microseconds of CPU per event, stretch after stretch, and whether they came to rest."""
        costs = [round(cost, 3) for cost in self.costs if math.isfinite(cost)]
        return {"microseconds_per_event": costs, "flat": flat(self.costs)}


@dataclass(slots=True)
class Reach:
    """Watches a load that grows: it is over when the system has fallen behind.

    ``rate`` is what it gets done once its micro-batches take longer than their trigger, less what their greater
    length is worth. A moment's pause at a lower load is made up for, and counts as one micro-batch of several.
    """

    trigger: float
    """Seconds between two acknowledgements while it keeps up."""
    rate: float = 0.0

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once the queue holds some triggers of load."""
        published = np.concatenate([[0], np.cumsum(seconds["published"])])
        acked = np.flatnonzero((seconds["ack_time"] >= 0) & (seconds["acknowledged"] > 0))
        done = np.cumsum(seconds["acknowledged"])[acked]
        at = seconds["ack_time"][acked] / SECOND
        # a micro-batch takes all that there is: it began when as much was published as it acknowledges
        took = at - np.interp(done, published, np.arange(len(published)))
        rates = np.diff(done, prepend=0) / np.maximum(took, 1e-9)
        late = (took > _LATE * self.trigger) & (seconds["acks"][acked] == 1)
        if late.any():
            self.rate = float(np.median(rates[late][-_LAST:])) * _SHORTER
        else:
            self.rate = float(seconds["published"][-round(self.trigger) :].mean())
        return float(seconds["queue"][-1]) >= _BEHIND * self.trigger * float(seconds["published"][-1])


def warm_trial(trial: Trial, warming: Warming) -> Trial:
    """The same job under a load that is not judged."""
    changed = replace(trial, profile=constant(warming.load), options=trial.options | warming.options)
    return _unjudged(changed, warming.load, warming.limit)


def reach_trial(trial: Trial, warming: Warming) -> Trial:
    """The same job under a load that grows."""
    levels = [(SECOND, _FIRST * warming.load * 2 ** (second / _DOUBLES)) for second in range(_LONGEST)]
    return _unjudged(replace(trial, profile=steps(levels)), warming.load, _LONGEST * SECOND)


def _unjudged(trial: Trial, load: float, length: int) -> Trial:
    ask = Ask("load", load, "measure")
    return replace(trial, number=0, ask=ask, duration=length, limit=length, stall=length, warmup=0, queue_bound=0)
