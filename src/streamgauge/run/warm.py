"""Warm a new system up before anything is judged, and see about where its limit is.

The warm-up is a fixed load, until the CPU time that an event costs has stopped falling. Then the load grows until
the system falls behind: the last load that it kept up with is where a search begins.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from streamgauge.engines.base import Warming
from streamgauge.model.profile import constant, steps
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Ask, Trial
from streamgauge.model.units import SECOND
from streamgauge.stats.flat import flat

Floats = npt.NDArray[np.float64]

_SPAN = 5
"""Seconds of a stretch whose cost per event is compared with that of the stretch before."""
_FIRST, _DOUBLES, _LONGEST = 3.0, 10, 48
"""A growing load begins at so many times that of the warm-up, doubles in so many seconds, ends after so many."""
_LATE = 1.03
"""Triggers of load that wait at an acknowledgement when a system has begun to take longer than its trigger."""
_BEHIND = 3.0
"""Triggers of load that wait at any time when it has fallen behind."""
_LEAST_BUSY = 0.9
"""Nothing more is concluded from cores that were less busy: the seconds of a micro-batch are not those of the clock."""
_PATIENCE = 15
"""Seconds after which a system that never kept up is believed not to."""


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

    ``rate`` is the load that it kept up with last, and how much more its cores would have carried. A moment's pause
    at a lower load is made up for and forgotten.
    """

    trigger: float
    """Seconds between two acknowledgements while it keeps up."""
    cores: int
    rate: float = 0.0

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once the queue holds some triggers of load."""
        published = np.concatenate([[0], np.cumsum(seconds["published"])])

        def due(at: Floats | float) -> Floats:
            """Events published up to these moments, in seconds."""
            return np.asarray(np.interp(at, np.arange(len(published)), published), np.float64)

        acked = np.flatnonzero(seconds["ack_time"] >= 0)
        at, lag = seconds["ack_time"][acked] / SECOND, seconds["ack_lag"][acked]
        # what waits at an acknowledgement came in while the micro-batch before it was worked on
        kept = at[lag <= _LATE * (due(at) - due(at - self.trigger))]
        kept = kept[kept >= 2 * self.trigger]
        now = float(seconds.stop)
        behind = float(seconds["queue"][-1]) >= _BEHIND * float(due(now) - due(now - self.trigger))
        if not len(kept):  # too much from the beginning: what it gets done is all that can be said
            self.rate = float(seconds["acknowledged"].sum()) / seconds.stop
            return behind and seconds.stop >= _PATIENCE
        done = kept[-1] - self.trigger
        rate = float(due(done) - due(done - self.trigger)) / self.trigger
        self.rate = rate / self._busy(seconds, done)
        return behind

    def _busy(self, seconds: Seconds, begun: float) -> float:
        """How busy its cores were with the last micro-batch that was in time. A pause may have cut the climb short:
        what was left of the cores then says how much further it could have gone."""
        first = int(begun)
        used = seconds["sut_cpu"][first : first + max(1, round(self.trigger))]
        share = float(used.mean()) / 1e6 / self.cores if len(used) else 1.0
        return min(1.0, max(_LEAST_BUSY, share))


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
