"""Objectives on percentiles of a latency, judged by how many window results are above the bound.

All rows of one window result share their fate, so window results are the samples, not rows. If a share p of them may
be at or below the bound, the number above it among n is at most binomial with 1 − p. The objective is broken as soon as
so many above it have a probability of at most ``IMPROBABLE``. It holds if there are at least 1/(1 − p) window results
and no larger share of them than 1 − p is above the bound. In between the trial is undecided.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from streamgauge.model.measurement import Check, Holding, LatencySummary
from streamgauge.model.objective import SHARES, Objective
from streamgauge.model.units import format_count, format_duration, format_share
from streamgauge.stats import buckets

IMPROBABLE = 0.01


def needed(share: float) -> int:
    """How many window results an objective on this percentile needs at least to hold."""
    return math.ceil(1 / (1 - share) - 1e-9)


@dataclass(frozen=True, slots=True)
class Above:
    """Window results above the bound, of how many."""

    above: int
    of: int

    def state(self, share: float) -> Holding:
        """What they say of the percentile ``share``."""
        if self.above and bdtrc(self.above - 1, self.of, 1 - share) <= IMPROBABLE:
            return "broken"
        enough = self.of >= needed(share)
        return "holds" if enough and self.above <= (1 - share) * self.of + 1e-9 else "unclear"


def counted(objective: Objective, summary: LatencySummary) -> Above:
    """The window results above the bound of an objective."""
    bucket, count = np.array(summary.results, np.int64).reshape(-1, 2).T
    met = [objective.holds(each * 1000.0, objective.threshold) for each in buckets.highest(bucket).tolist()]
    return Above(int(count[~np.array(met, bool)].sum()), int(count.sum()))


def judge_percentile(objective: Objective, summary: LatencySummary, seconds: int) -> Check:
    """One objective on a percentile, after so many judged seconds."""
    name = objective.statistic or "p99"
    share, seen = SHARES[name], counted(objective, summary)
    state, limit = seen.state(share), format_duration(objective.threshold)
    bucket, count = np.array(summary.results, np.int64).reshape(-1, 2).T
    value = buckets.quantile(bucket, count, share) * 1000.0
    all_of_them = "1 window result" if seen.of == 1 else f"{format_count(seen.of)} window results"
    shown = (
        f"{objective.metric} {name} {format_duration(value)} over {all_of_them}, {format_count(seen.above)} of them "
    )
    shown += f"above the limit (objective {objective.operator} {limit})"
    ending = _way_out(seen, share, name, seconds) if state == "unclear" else "met" if state == "holds" else "missed"
    return Check(objective.text, state, value, objective.threshold, f"{shown}: {ending}")


def _way_out(seen: Above, share: float, name: str, seconds: int) -> str:
    if seen.of < needed(share):
        length = math.ceil(seconds * needed(share) / max(seen.of, 1))
        few = f"a {name} needs at least {needed(share)} window results"
        return f"{few}, so set trial.limit to at least {length}s, or use a lower percentile"
    chance = f"more than {format_share(1 - share)} of them, and so few that it may be chance"
    return f"that is {chance}; increase trial.limit"
