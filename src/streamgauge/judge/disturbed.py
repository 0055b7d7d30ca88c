"""CPU time that other processes used on the cores of the system under test, and the seconds that it disturbs.

A disturbance can only make a trial look worse: a system that sustains its load in spite of it also sustains it without.
Only a missed objective may be caused by it. The seconds of a short burst are excluded, up to the moment at which lag is
back at its floor. By then, the system has processed everything that waited because of the burst.
"""

import numpy as np
import numpy.typing as npt

from streamgauge.judge.hang import last_acknowledgement
from streamgauge.judge.measure import floor_level, lag_samples, warmup
from streamgauge.model.measurement import NEGLIGIBLE_SHARE, Measurement
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND

Mask = npt.NDArray[np.bool_]

MAX_FOREIGN_SHARE = 0.05
"""If other processes used more than this share of the system's cores, a missed objective shows nothing."""
MAX_RUN_DELAY_SHARE = 0.10
"""The largest share of the time for which threads of the load driver may wait for a CPU."""
_BURST = 1 / 3
"""A burst lasts less than this share of the judged seconds."""
_NEIGHBOURS = 3
"""Seconds over which the CPU time of other processes must be high on average too. Counters are read one after
another, so one second shows too much and the next one too little: up to 10 % of a core without any other process."""


def was_slowed(m: Measurement) -> bool:
    """Whether other processes used so much CPU time that latencies are only upper bounds."""
    return m.foreign_share > MAX_FOREIGN_SHARE or m.run_delay_share > MAX_RUN_DELAY_SHARE


def taken_while_silent(seconds: Seconds) -> float:
    """The share of the system's cores that other processes used since the second of the last acknowledgement."""
    silent = seconds.between(max(last_acknowledgement(seconds) - 1, 0) // SECOND, seconds.stop)
    return max(float(silent[name].mean()) for name in ("foreign", "steal")) / 1e6 if len(silent) else 0.0


def burst(trial: Trial, seconds: Seconds) -> Mask | None:
    """The seconds in which other processes used too much, if they are few and not negligible; None: no burst."""
    first, _ = warmup(trial, seconds)
    others = np.minimum(seconds["foreign"], _averaged(seconds["foreign"]))
    foreign = np.maximum(others, seconds["steal"]) / 1e6
    judged = foreign[first - seconds.start :]
    disturbed = judged > MAX_FOREIGN_SHARE
    few = 0 < np.count_nonzero(disturbed) < _BURST * len(judged)
    if not few or float(judged.mean()) <= NEGLIGIBLE_SHARE:
        return None
    return np.concatenate([np.zeros(len(foreign) - len(judged), bool), disturbed])


def _averaged(column: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Each second with its neighbours, so that errors of neighbouring seconds cancel."""
    if not len(column):
        return column.astype(np.float64)
    window = np.ones(min(_NEIGHBOURS, len(column)))
    return np.convolve(column, window, "same") / np.convolve(np.ones(len(column)), window, "same")


def until_renewal(trial: Trial, seconds: Seconds, disturbed: Mask) -> Mask | None:
    """The seconds of a burst and those after it until lag is back at its floor; None if it does not return to it."""
    first, _ = warmup(trial, seconds)
    time, lag = lag_samples(seconds)
    load = trial.profile.mean_between(first * SECOND, seconds.stop * SECOND)
    judged = time >= first
    if not load or not judged.any():
        return None
    level = floor_level(lag[judged] / load, trial.trigger / SECOND)
    returns = time[judged & (lag / load <= level)]
    excluded = disturbed.copy()
    for second in np.flatnonzero(disturbed):
        after = int(np.searchsorted(returns, seconds.start + second + 1))
        if after == len(returns):
            return None
        excluded[second : int(np.ceil(returns[after])) - seconds.start] = True
    return excluded
