"""Warm a new system up before anything is judged, and see about where its limit is.

The warm-up is a fixed load, until the CPU time that an event costs has stopped falling. Then the load grows until
the system falls behind: what an event cost on the way says where a search begins.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from streamgauge.engines.contract import Warming
from streamgauge.model.profile import constant, steps
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Ask, Trial
from streamgauge.model.units import SECOND
from streamgauge.stats.steady import flat

_SPAN = 5
"""Seconds of a stretch whose cost per event is compared with that of the stretch before."""
_FIRST, _DOUBLES, _LONGEST = 3.5, 8, 48
"""A growing load begins at so many times that of the warm-up, doubles in so many seconds, ends after so many."""
_TELL, _FEW = 3, 4
"""Acknowledgements from which a cost can be told, for the first micro-batch of a query is slow; and after which the
load may end. A load that is far too high from its beginning on ends otherwise, without many of them."""
_WARMER = 1.05
"""What the cores will carry in trials, as a multiple of what they carry on the way: the compiler of a virtual machine
goes on for minutes. Measured on Spark: 1.04 to 1.11."""
_BEHIND = 1.5
"""Triggers of load that wait to be taken when it has fallen behind; one trigger waits while it keeps up."""


@dataclass(slots=True)
class Warmth:
    """Watches a warm-up: it is over when an event costs what it cost before."""

    limit: int
    least: int = 0
    costs: list[float] = field(default_factory=list)
    silence: int = 0
    stalled: bool = False

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once the last stretches cost what those before them did, or the limit is reached."""
        events, used = seconds["acknowledged"], seconds["sut_cpu"]
        self.costs = [
            _cost(float(used[i : i + _SPAN].sum()), float(events[i : i + _SPAN].sum()))
            for i in range(len(events) % _SPAN, len(events), _SPAN)
        ]
        lasted = seconds.stop * SECOND
        return lasted >= self.limit or (lasted >= self.least and flat(self.costs))

    @property
    def cost_us(self) -> tuple[float, ...]:
        """Microseconds of CPU time per event, from one part of the warm-up to the next."""
        return tuple(round(cost, 3) for cost in self.costs if math.isfinite(cost))

    @property
    def steady(self) -> bool:
        """Whether an event costs what it cost before."""
        return flat(self.costs)


@dataclass(slots=True)
class Reach:
    """Watches a load that grows: it is over when the system has fallen behind.

    ``rate`` is what its cores will carry, by the CPU time that an event cost on the way. The load that it kept up with
    last says less: micro-batches differ by a tenth from one to the next.
    """

    trigger: float
    """Seconds between two acknowledgements while it keeps up."""
    cores: int
    rate: float = 0.0
    silence: int = 0
    stalled: bool = False

    def wants(self, stop: int) -> bool:
        """Every second: the answer is cheap."""
        return True

    def look(self, seconds: Seconds) -> bool:
        """True once the queue holds some triggers of load."""
        acked = np.flatnonzero(seconds["ack_time"] >= 0)
        if len(acked) >= _TELL:
            done, used = np.cumsum(seconds["acknowledged"])[acked], np.concatenate([[0], np.cumsum(seconds["sut_cpu"])])
            spent = np.interp(seconds["ack_time"][acked] / SECOND, np.arange(len(used)), used) / 1e6
            cost = _cost(float(spent[-1] - spent[1]), float(done[-1] - done[1]))
            self.rate = _WARMER * self.cores / cost if math.isfinite(cost) else self.rate
        behind = float(seconds["queue"][-1]) >= _BEHIND * self.trigger * float(seconds["published"][-1])
        return behind and len(acked) > _FEW


def _cost(used: float, events: float) -> float:
    """CPU time per event; without any of either nothing is known of it."""
    return used / events if used > 0 and events > 0 else math.inf


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
