"""Warm a new system up before anything is judged, and see about where its limit is.

The warm-up is a fixed load, until the CPU time that an event costs has stopped falling. Then the load doubles every
few seconds until the system falls behind: what it gets done then is where a search begins.
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
"""Seconds of a stretch whose cost per event is compared with that of the stretch before; also of a step."""
_STEPS = 6
_BEHIND = 3.0
"""Seconds of its own work that wait when a system has fallen behind."""


@dataclass(slots=True)
class Warmth:
    """Watches a warm-up: it is over when an event costs what it cost before."""

    limit: int
    costs: list[float] = field(default_factory=list)

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once four stretches in a row cost the same, or the limit is reached."""
        events, used = seconds["acknowledged"], seconds["sut_cpu"]
        self.costs = [
            float(used[i : i + _SPAN].sum()) / done if (done := float(events[i : i + _SPAN].sum())) else math.inf
            for i in range(len(events) % _SPAN, len(events), _SPAN)
        ]
        return flat(self.costs) or seconds.stop * SECOND >= self.limit

    def said(self) -> dict[str, object]:
        """For the manifest: microseconds of CPU per event, stretch after stretch, and whether they came to rest."""
        costs = [round(cost, 3) for cost in self.costs if math.isfinite(cost)]
        return {"microseconds_per_event": costs, "flat": flat(self.costs)}


@dataclass(slots=True)
class Reach:
    """Watches a load that grows: it is over when the system has fallen behind. ``rate`` is what it then gets done."""

    rate: float = 0.0

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once the queue holds some seconds of what the system gets done."""
        at = seconds["ack_time"]
        acked = np.flatnonzero(at >= 0)
        recent = acked[acked >= acked[-1] - _SPAN] if len(acked) else acked
        span = float(at[recent[-1]] - at[recent[0]]) / SECOND if len(recent) > 1 else 0.0
        if span > 0:
            self.rate = max(self.rate, float(seconds["acknowledged"][recent[1:]].sum()) / span)
        return float(seconds["queue"][-1]) >= _BEHIND * self.rate > 0


def warm_trial(trial: Trial, warming: Warming) -> Trial:
    """The same job under a load that is not judged."""
    changed = replace(trial, profile=constant(warming.load), options=trial.options | warming.options)
    return _unjudged(changed, warming.load, warming.limit)


def reach_trial(trial: Trial, warming: Warming) -> Trial:
    """The same job under a load that doubles every few seconds."""
    levels = [(_SPAN * SECOND, warming.load * 2**step) for step in range(1, _STEPS + 1)]
    return _unjudged(replace(trial, profile=steps(levels)), warming.load, _STEPS * _SPAN * SECOND)


def _unjudged(trial: Trial, load: float, length: int) -> Trial:
    ask = Ask("load", load, "measure")
    return replace(trial, number=0, ask=ask, duration=length, limit=length, stall=length, warmup=0, queue_bound=0)
