"""Warm a new system up before anything is judged, and estimate where its limit is.

The warm-up is a fixed load, until the CPU time that an event costs has stopped falling. Then the load grows until
the system falls behind: the CPU time of an event on the way shows where a search begins.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from streamgauge.engines.contract import Traits
from streamgauge.model.profile import constant, steps
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.stats.steady import is_flat

_SPAN = 5
"""Seconds of a stretch whose cost per event is compared with that of the stretch before."""
_FIRST, _DOUBLES, _LONGEST = 3.5, 8, 48
"""A growing load begins at so many times that of the warm-up, doubles in so many seconds, ends after so many."""
_ESTIMATE_AFTER, _END_AFTER = 3, 4
"""Acknowledgements from which a cost can be estimated, because the first micro-batch of a query is slow; and after
which the load may end. A load that is far too high from its beginning ends otherwise, without many of them."""
_WARMER = 1.05
"""What the cores can process in trials, as a multiple of what they process on the way: the compiler of a virtual
machine continues for minutes. Measured values: 1.04 to 1.11."""
_BEHIND = 1.5
"""Triggers of load that wait to be taken when it has fallen behind; one trigger waits while it keeps up."""


@dataclass(slots=True)
class WarmUpWatch:
    """Watches a warm-up: it is over when an event costs what it cost before."""

    limit: int
    minimum: int = 0
    costs: list[float] = field(default_factory=list)
    silence: int = 0
    stalled: bool = False

    def due(self, stop: int) -> bool:
        """Every second: the decision costs little."""
        return True

    def decided(self, seconds: Seconds) -> bool:
        """True once the last stretches cost what those before them did, or the limit is reached."""
        events, used = seconds["acknowledged"], seconds["sut_cpu"]
        self.costs = [
            _cost(float(used[i : i + _SPAN].sum()), float(events[i : i + _SPAN].sum()))
            for i in range(len(events) % _SPAN, len(events), _SPAN)
        ]
        lasted = seconds.stop * SECOND
        return lasted >= self.limit or (lasted >= self.minimum and is_flat(self.costs))

    @property
    def finite_costs(self) -> tuple[float, ...]:
        """Microseconds of CPU time per event, from one part of the warm-up to the next."""
        return tuple(round(cost, 3) for cost in self.costs if math.isfinite(cost))

    @property
    def steady(self) -> bool:
        """Whether this cost became stable."""
        return is_flat(self.costs)


@dataclass(slots=True)
class LimitProbe:
    """Watches a load that grows: it is over when the system has fallen behind.

    ``estimate`` is what its cores can process, by the CPU time that an event cost on the way. The load that it kept up
    with last shows less: micro-batches differ by a tenth from one to the next.
    """

    trigger: float
    """Seconds between two acknowledgements while it keeps up."""
    cores: int
    estimate: float = 0.0
    silence: int = 0
    stalled: bool = False

    def due(self, stop: int) -> bool:
        """Every second: the decision costs little."""
        return True

    def decided(self, seconds: Seconds) -> bool:
        """True once some triggers of load are in the queue."""
        acked = np.flatnonzero(seconds["ack_time"] >= 0)
        if len(acked) >= _ESTIMATE_AFTER:
            done, used = np.cumsum(seconds["acknowledged"])[acked], np.concatenate([[0], np.cumsum(seconds["sut_cpu"])])
            spent = np.interp(seconds["ack_time"][acked] / SECOND, np.arange(len(used)), used) / 1e6
            cost = _cost(float(spent[-1] - spent[1]), float(done[-1] - done[1]))
            self.estimate = _WARMER * self.cores / cost if math.isfinite(cost) else self.estimate
        behind = float(seconds["queue"][-1]) >= _BEHIND * self.trigger * float(seconds["published"][-1])
        return behind and len(acked) > _END_AFTER


def _cost(used: float, events: float) -> float:
    """CPU time per event; infinite if there are no events or no CPU time."""
    return used / events if used > 0 and events > 0 else math.inf


def warm_up_trial(trial: Trial, traits: Traits) -> Trial:
    """The same job under a load that is not judged."""
    changed = replace(trial, profile=constant(traits.warm_load), options={**trial.options, **traits.warm_options})
    return _unjudged(changed, traits.warm_load, traits.warm_limit_ns)


def growing_load_trial(trial: Trial, traits: Traits) -> Trial:
    """The same job under a load that grows."""
    levels = [(SECOND, _FIRST * traits.warm_load * 2 ** (second / _DOUBLES)) for second in range(_LONGEST)]
    return _unjudged(replace(trial, profile=steps(levels)), traits.warm_load, _LONGEST * SECOND)


def _unjudged(trial: Trial, load: float, length: int) -> Trial:
    request = TrialRequest("load", load, "measure")
    return replace(trial, number=0, ask=request, duration=length, limit=length, stall=length, warmup=0, queue_bound=0)
