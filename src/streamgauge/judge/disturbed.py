"""What others took from the system under test, and which seconds of a trial that spoils.

A disturbance has a direction: a system that holds its load although others used its cores holds it all the more. Only
a missed objective may be their fault. A short burst is cut out, up to the moment at which lag is back at its floor:
by then everything that the burst left is done.
"""

import numpy as np
import numpy.typing as npt

from streamgauge.judge.measure import floor_level, lag_samples, warmup
from streamgauge.model.measurement import SLIGHTLY_TAKEN, Measurement
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND

Mask = npt.NDArray[np.bool_]

MOST_TAKEN = 0.05
"""Share of the system's cores that others may take before a missed objective proves nothing."""
MOST_RUN_DELAY = 0.10
"""Share of the time that threads of the load driver may wait for a CPU because of others."""
_BURST = 1 / 3
"""A burst lasts less than this share of the judged seconds."""


def slowed(m: Measurement) -> bool:
    """Whether others took so much from the system or the driver that latencies are upper bounds only."""
    return m.foreign_share > MOST_TAKEN or m.run_delay_share > MOST_RUN_DELAY


def burst(trial: Trial, seconds: Seconds) -> Mask | None:
    """The seconds in which others took much, if they are few and not negligible; None: there was no burst."""
    warm, _ = warmup(trial, seconds)
    taken = np.maximum(seconds["foreign"], seconds["steal"]) / 1e6
    judged = taken[warm - seconds.start :]
    much = judged > MOST_TAKEN
    few = 0 < np.count_nonzero(much) < _BURST * len(judged)
    if not few or float(judged.mean()) <= SLIGHTLY_TAKEN:
        return None
    return np.concatenate([np.zeros(len(taken) - len(judged), bool), much])


def until_renewal(trial: Trial, seconds: Seconds, much: Mask) -> Mask | None:
    """The seconds of a burst and those after it until lag is back at its floor; None: it is not, after one of them."""
    warm, _ = warmup(trial, seconds)
    time, lag = lag_samples(seconds)
    load = trial.profile.mean_between(warm * SECOND, seconds.stop * SECOND)
    judged = time >= warm
    if not load or not judged.any():
        return None
    level = floor_level(lag[judged] / load, trial.trigger / SECOND)
    back = time[judged & (lag / load <= level)]
    cut = much.copy()
    for second in np.flatnonzero(much):
        after = int(np.searchsorted(back, seconds.start + second + 1))
        if after == len(back):
            return None
        cut[second : int(np.ceil(back[after])) - seconds.start] = True
    return cut
