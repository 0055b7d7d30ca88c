"""Objectives on percentiles of a latency, judged by the number of window results above the limit.

All rows of a window result leave the system together, so they are not independent. Window results are the samples, not
rows, and each has the largest latency of its rows. If a share p of them
must be at or below the limit, the number above it among n is at most binomial with 1 − p. The objective is missed if
the observed number has a probability of at most ``MAX_PROBABILITY``. It is met if there are at least 1/(1 − p) window
results and at most the share 1 − p of them is above the limit. Otherwise it is not decided.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc

from streamgauge.model.measurement import Check, LatencySummary, ObjectiveState
from streamgauge.model.objective import SHARES, Objective
from streamgauge.model.units import duration_text, format_count, share_text
from streamgauge.stats import buckets

MAX_PROBABILITY = 0.01


def min_results(share: float) -> int:
    """The minimum number of window results for an objective on this percentile."""
    return math.ceil(1 / (1 - share) - 1e-9)


@dataclass(frozen=True, slots=True)
class ResultsAbove:
    """The number of window results above the limit, and of all."""

    above: int
    total: int

    def state(self, share: float) -> ObjectiveState:
        """The state of an objective on the percentile ``share``."""
        if self.above and bdtrc(self.above - 1, self.total, 1 - share) <= MAX_PROBABILITY:
            return "broken"
        enough = self.total >= min_results(share)
        return "holds" if enough and self.above <= (1 - share) * self.total + 1e-9 else "unclear"


def count_above(objective: Objective, summary: LatencySummary) -> ResultsAbove:
    """The window results above the limit of an objective."""
    bucket, count = np.array(summary.results, np.int64).reshape(-1, 2).T
    met = [objective.holds(each * 1000.0, objective.threshold) for each in buckets.highest(bucket).tolist()]
    return ResultsAbove(int(count[~np.array(met, bool)].sum()), int(count.sum()))


def judge_percentile(objective: Objective, summary: LatencySummary, seconds: int) -> Check:
    """The state of an objective on a percentile after so many judged seconds."""
    name = objective.statistic or "p99"
    share, counted = SHARES[name], count_above(objective, summary)
    state, limit = counted.state(share), duration_text(objective.threshold)
    bucket, count = np.array(summary.results, np.int64).reshape(-1, 2).T
    value = buckets.quantile(bucket, count, share) * 1000.0
    all_of_them = "1 window result" if counted.total == 1 else f"{format_count(counted.total)} window results"
    text = (
        f"{objective.metric} {name} {duration_text(value)} over {all_of_them}, {format_count(counted.above)} of them "
    )
    text += f"above the limit (objective {objective.operator} {limit})"
    outcome = _advice(counted, share, name, seconds) if state == "unclear" else "met" if state == "holds" else "missed"
    return Check(objective.text, state, value, objective.threshold, f"{text}: {outcome}")


def _advice(counted: ResultsAbove, share: float, name: str, seconds: int) -> str:
    if counted.total < min_results(share):
        length = math.ceil(seconds * min_results(share) / max(counted.total, 1))
        few = f"a {name} needs at least {min_results(share)} window results"
        return f"{few}, so set trial.limit to at least {length}s, or use a lower percentile"
    chance = f"more than {share_text(1 - share)} of them, and so few that it may be chance"
    return f"that is {chance}; increase trial.limit"
