"""Warm a new system up before anything is judged, and estimate where its limit is.

If a search over the load follows, the load of the warm-up grows until the system falls behind: the CPU time that an
event costs at the end shows where the search begins. Otherwise the load is fixed, and the warm-up lasts until this
CPU time has stopped falling.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from streamgauge.engines.contract import Traits
from streamgauge.model.profile import constant, steps
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Trial, TrialRequest
from streamgauge.model.units import SECOND
from streamgauge.stats.steady import is_flat

_SPAN = 5
"""Seconds of a stretch whose cost per event is compared with that of the stretch before."""
_FIXED, _DOUBLES, _LONGEST = 8, 6, 60
"""Seconds of a growing load: it is fixed for the first, then doubles in the second, and ends after the third at the
latest."""
FIXED_NS = _FIXED * SECOND
"""Time for which a growing load is fixed at first."""
_SHARE_OF_MIN, _PIN_SHARE = 2 / 3, 4 / 9
"""A growing load lasts at least the first share of the shortest warm-up under a fixed load, because it has more events.
After the second share the system is bound to its cores: until then its compiler may use others."""
_ESTIMATE_AFTER, _END_AFTER = 3, 4
"""Acknowledgements from which a cost can be estimated, because the first micro-batch of a query is slow; and after
which the load may end."""
_RECENT = 10
"""The estimate is made from the acknowledgements of so many seconds, because earlier events cost more."""
_WARMER = 1.05
"""What the cores can process in trials, as a multiple of what they process on the way: the compiler of a virtual
machine continues for minutes. Measured values: 1.04 to 1.11."""
_BEHIND, _FAR_BEHIND = 1.5, 10.0
"""Triggers of load that wait to be taken when it has fallen behind; one trigger waits while it keeps up. And seconds of
load that wait if the load was far too high from its beginning: more would only fill the memory."""


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
        self.costs = _stretches(seconds)
        lasted = seconds.stop * SECOND
        return lasted >= self.limit or (lasted >= self.minimum and is_flat(self.costs))

    @property
    def finite_costs(self) -> tuple[float, ...]:
        """Microseconds of CPU time per event, from one part of the warm-up to the next."""
        return _rounded(self.costs)

    @property
    def steady(self) -> bool:
        """Whether this cost became stable."""
        return is_flat(self.costs)


@dataclass(slots=True)
class LimitProbe:
    """Watches a load that grows: it is over when the system is warm and has fallen behind.

    ``estimate`` is what its cores can process, by the CPU time that an event cost in the last seconds. The load that it
    kept up with last shows less: micro-batches differ by a tenth from one to the next.
    """

    trigger: float
    """Seconds between two acknowledgements while it keeps up."""
    cores: int
    minimum: int = 0
    """The shortest growing load, in nanoseconds."""
    bind: Callable[[], None] = lambda: None
    """Binds the system to its cores. It is called once."""
    bind_after: int = 0
    estimate: float = 0.0
    costs: list[float] = field(default_factory=list)
    silence: int = 0
    stalled: bool = False
    _bound: bool = False

    def due(self, stop: int) -> bool:
        """Every second: the decision costs little."""
        return True

    def decided(self, seconds: Seconds) -> bool:
        """True once some triggers of load are in the queue and the system is warm."""
        lasted = seconds.stop * SECOND
        if not self._bound and lasted >= self.bind_after:
            self._bound = True
            self.bind()
        self.costs = _stretches(seconds)
        acked = np.flatnonzero(seconds["ack_time"] >= 0)
        self._estimate(seconds, acked)
        waiting, rate = float(seconds["queue"][-1]), float(seconds["published"][-1])
        if waiting >= _FAR_BEHIND * max(rate, 1.0) and len(acked) >= _ESTIMATE_AFTER:
            return True
        behind = waiting >= _BEHIND * self.trigger * rate
        return behind and len(acked) > _END_AFTER and lasted >= self.minimum

    def _estimate(self, seconds: Seconds, acked: npt.NDArray[np.int64]) -> None:
        """What the cores can process, from the latest acknowledgements; the first one is left out."""
        if len(acked) < _ESTIMATE_AFTER:
            return
        done, used = np.cumsum(seconds["acknowledged"])[acked], np.concatenate([[0], np.cumsum(seconds["sut_cpu"])])
        spent = np.interp(seconds["ack_time"][acked] / SECOND, np.arange(len(used)), used) / 1e6
        begin = min(max(int(np.searchsorted(acked, acked[-1] - _RECENT)), 1), len(acked) - 2)
        cost = _cost(float(spent[-1] - spent[begin]), float(done[-1] - done[begin]))
        self.estimate = _WARMER * self.cores / cost if math.isfinite(cost) else self.estimate

    @property
    def finite_costs(self) -> tuple[float, ...]:
        """Microseconds of CPU time per event, from one part of the growing load to the next."""
        return _rounded(self.costs)


def _stretches(seconds: Seconds) -> list[float]:
    """The CPU time per event of each stretch, counted from the end."""
    events, used = seconds["acknowledged"], seconds["sut_cpu"]
    return [
        _cost(float(used[i : i + _SPAN].sum()), float(events[i : i + _SPAN].sum()))
        for i in range(len(events) % _SPAN, len(events), _SPAN)
    ]


def _rounded(costs: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(cost, 3) for cost in costs if math.isfinite(cost))


def _cost(used: float, events: float) -> float:
    """CPU time per event; infinite if there are no events or no CPU time."""
    return used / events if used > 0 and events > 0 else math.inf


def warm_up_trial(trial: Trial, traits: Traits) -> Trial:
    """The same job under a load that is not judged."""
    changed = replace(trial, profile=constant(traits.warm_load), options={**trial.options, **traits.warm_options})
    return _unjudged(changed, traits.warm_load, traits.warm_limit_ns)


def growing_load_trial(trial: Trial, traits: Traits) -> Trial:
    """The same job under a load that grows from that of a warm-up."""
    grown = range(1, _LONGEST - _FIXED + 1)
    levels = [(_FIXED * SECOND, traits.warm_load)]
    levels += [(SECOND, traits.warm_load * 2 ** (second / _DOUBLES)) for second in grown]
    changed = replace(trial, profile=steps(levels), options={**trial.options, **traits.warm_options})
    return _unjudged(changed, traits.warm_load, _LONGEST * SECOND)


def growing_load_probe(traits: Traits, cores: int, bind: Callable[[], None], *, warm: bool) -> LimitProbe:
    """Watches a growing load on so many cores; ``traits`` are those of the system under this load.

    A system that is ``warm`` already needs no shortest time.
    """
    shortest = 0 if warm else min(traits.warm_min_ns, traits.warm_limit_ns)
    return LimitProbe(
        traits.batch_interval_ns / SECOND,
        max(1, cores),
        minimum=round(_SHARE_OF_MIN * shortest),
        bind=bind,
        bind_after=round(_PIN_SHARE * shortest),
    )


def _unjudged(trial: Trial, load: float, length: int) -> Trial:
    request = TrialRequest("load", load, "measure")
    return replace(trial, number=0, ask=request, duration=length, limit=length, stall=length, warmup=0, queue_bound=0)
