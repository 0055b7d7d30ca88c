"""One objective against one measurement: holds, broken or unclear, and the sentence that says it."""

import math
from collections.abc import Sequence

from streamgauge.judge import rule
from streamgauge.judge.measure import Trends
from streamgauge.model.measurement import Check, Holding, Interval, LatencySummary, Measurement
from streamgauge.model.objective import Objective, Statistic
from streamgauge.model.seconds import Kind
from streamgauge.model.units import SECOND, format_count, format_duration, format_rate, format_share

COUNTED = ("lost", "duplicate", "wrong", "late")
TRENDS = ("lag-trend", "latency-trend")
_FEW_FIRINGS = 100
_ORDER: tuple[Statistic, ...] = ("min", "p5", "p50", "p75", "p90", "p95", "p99", "p99.9", "max")
"""Statistics of a latency in ascending order; the average has no place among them."""


def check(objective: Objective, measured: Measurement, lean: rule.Lean = rule.lean_full) -> Check:
    """Judge one objective, a trend by the rule ``lean``."""
    metric = objective.metric
    if metric in TRENDS:
        return _trend(objective, measured, lean)
    if metric == "event-time" or metric == "processing-time":  # noqa: PLR1714 (spelled out for the type checker)
        return _latency(objective, measured, metric)
    return _plain(objective, measured)


def _plain(objective: Objective, measured: Measurement) -> Check:
    metric = objective.metric
    if metric in COUNTED:
        value, base = float(getattr(measured.account, metric)), float(measured.account.expected)
        return _compared(objective, value, base, f"{format_count(value)} outputs {_PAST[metric]}")
    if metric == "output-error":
        return _output_error(objective, measured)
    if metric == "lag-growth":
        value = measured.lag_end - measured.lag_start
        return _compared(objective, value, measured.load, f"the lag grew by {format_count(value)} events")
    if metric == "queue":
        value = float(measured.longest_queue)
        of_load = f" ({format_duration(value / measured.load * SECOND)} of load)" if measured.load else ""
        shown = f"up to {format_count(value)} events{of_load} waited in the queue"
        return _compared(objective, value, measured.load, shown)
    return _compared(
        objective, float(measured.drops), 0.0, f"the connection to the queue was dropped {measured.drops} ×"
    )


_PAST = {"lost": "were lost", "duplicate": "came twice", "wrong": "were wrong", "late": "came late"}


def evidence(objective: Objective, measured: Measurement | Trends) -> rule.Evidence | None:
    """The trend that this objective is about, with its threshold in the trend's own unit."""
    lag = objective.metric == "lag-trend"
    trend = measured.lag_trend if lag else measured.latency_trend
    runaway = lag and runs_away([objective], measured)
    if trend is None and not runaway:
        return None
    scale = measured.load if lag else 1.0
    limit = _limit(objective, scale)
    corridor = measured.lag_corridor if lag else measured.latency_corridor
    steady = rule.level_error(measured.lag_spread, measured.lag_seconds) if lag else math.inf
    returns = measured.lag_reversion if lag else 0.0
    late, floor = (measured.lag_late, measured.lag_floor) if lag else (None, None)
    judged = float(measured.judged_seconds)
    return rule.Evidence(trend, limit, scale, judged, corridor, steady, returns, runaway, late, floor)


def runs_away(objectives: Sequence[Objective], measured: Measurement | Trends) -> bool:
    """Whether the lag runs away, does not settle, and no objective on its trend allows so much growth."""
    if not measured.runaway:
        return False
    grown = (measured.lag_end - measured.lag_start) / measured.lag_seconds
    late = grown if measured.lag_late is None else measured.lag_late
    limits = [_limit(o, measured.load) for o in objectives if o.metric == "lag-trend"]
    return late > 0 and all(min(grown, late) > limit for limit in limits)


def _limit(objective: Objective, scale: float) -> float:
    return objective.threshold * scale if objective.relative else objective.threshold


def _trend(objective: Objective, measured: Measurement, lean: rule.Lean) -> Check:
    seen = evidence(objective, measured)
    lag = objective.metric == "lag-trend"
    if seen is None:
        what = "acknowledgements" if lag else "outputs"
        sentence = f"too few {what} in {measured.judged_seconds} s for a trend; lengthen trial.duration"
        return Check(objective.text, "unclear", float("nan"), float("nan"), sentence)
    state = lean(seen)
    if seen.trend is None:
        grown = format_count(measured.lag_end - measured.lag_start)
        shown = f"the queue ran away: {grown} more events waited after {measured.judged_seconds} s, too few "
        shown += "acknowledgements for an interval and far more than the objective allows"
        return Check(objective.text, state, measured.lag_end - measured.lag_start, seen.threshold, shown)
    shown = _growth(seen.trend, seen.threshold, measured.load) if lag else _slower(seen.trend, seen.threshold)
    ending = {
        "holds": "within the objective" + _despite(seen),
        "broken": "more than the objective allows",
        "unclear": f"{measured.judged_seconds} s of measurement are not enough to decide at this noise level",
    }[state]
    return Check(objective.text, state, seen.trend.mean, seen.threshold, f"{shown}: {ending}")


def _despite(seen: rule.Evidence) -> str:
    """Why a trend holds whose interval includes the limit."""
    if seen.trend is None or seen.trend.high <= seen.threshold:
        return ""
    if seen.floor is not None and rule.returned(seen):
        return f", because the queue was back at its floor {seen.floor.visits} times in the second half"
    return ", because the lag keeps returning to its starting level"


def _growth(trend: Interval, threshold: float, load: float) -> str:
    moves = "grows" if trend.mean >= 0 else "shrinks"
    if not load:  # a profile may plan no events for the judged seconds
        return f"the queue {moves} by {format_rate(abs(trend.mean))}, allowed is {format_rate(threshold)}"
    interval = f"{trend.low / load:.2%} … {trend.high / load:.2%}"
    return (
        f"the queue {moves} by {format_rate(abs(trend.mean))} ({trend.mean / load:.2%} of the load, "
        f"95 % interval {interval}), allowed is {threshold / load:.2%}"
    )


def _slower(trend: Interval, threshold: float) -> str:
    low, high = format_duration(trend.low * SECOND), format_duration(trend.high * SECOND)
    return (
        f"event-time latency grows by {format_duration(trend.mean * SECOND)} per second "
        f"(95 % interval {low} … {high}), allowed is {format_duration(threshold * SECOND)}"
    )


def _latency(objective: Objective, measured: Measurement, kind: Kind) -> Check:
    summary = measured.latencies.get(kind)
    name = objective.statistic or "p99"
    if summary is None:
        sentence = f"no output carried a {kind} latency; let the pipeline put out max_due and max_ingested"
        return Check(objective.text, "unclear", float("nan"), objective.threshold, sentence)
    shown = f"{kind} {name}"
    known = _known(summary)
    if name in ("p99", "p99.9") and summary.firings < _FEW_FIRINGS * (1 if name == "p99" else 10):
        value, shown = summary.most, f"{kind} max (too few firings, {summary.firings}, for a {name})"
    elif name in known:
        value = known[name]
    else:
        return _bounded(objective, summary, kind, name)
    state: Holding = "holds" if objective.holds(value, objective.threshold) else "broken"
    return Check(objective.text, state, value, objective.threshold, f"{shown} is {_against(objective, value)}")


def _known(summary: LatencySummary) -> dict[str, float]:
    """Every statistic that the sample supports."""
    return {"avg": summary.average, "min": summary.least, **summary.percentiles, "max": summary.most}


def _bounded(objective: Objective, summary: LatencySummary, kind: Kind, name: Statistic) -> Check:
    """A percentile that the sample does not support, by the nearest statistics on both sides of it.

    It is at most the next higher one and at least the next lower one. Objectives bound latencies from above only.
    """
    known, place = _known(summary), _ORDER.index(name)
    below = next(n for n in reversed(_ORDER[:place]) if n in known)
    above = next(n for n in _ORDER[place:] if n in known)
    least, most = known[below], known[above]
    if objective.holds(most, objective.threshold):
        sentence = f"{kind} {name} is at most {_against(objective, most, above)}"
        return Check(objective.text, "holds", most, objective.threshold, sentence)
    if not objective.holds(least, objective.threshold):
        sentence = f"{kind} {name} is at least {_against(objective, least, below)}"
        return Check(objective.text, "broken", least, objective.threshold, sentence)
    sentence = f"{summary.firings} window results are too few for a {name}: {kind} is between {format_duration(least)} "
    sentence += f"(the {below}) and {_against(objective, most, above)}; lengthen trial.duration"
    return Check(objective.text, "unclear", float("nan"), objective.threshold, sentence)


def _against(objective: Objective, value: float, name: str = "") -> str:
    """A latency beside its limit."""
    named = f" (the {name})" if name else ""
    limit = format_duration(objective.threshold)
    return f"{format_duration(value)}{named}, the objective is {objective.operator} {limit}"


def _output_error(objective: Objective, measured: Measurement) -> Check:
    account = measured.account
    if not account.expected:
        sentence = "no output was expected yet; lengthen trial.duration"
        return Check(objective.text, "unclear", float("nan"), objective.threshold, sentence)
    value = abs(account.observed - account.expected) / account.expected
    shown = f"{account.observed} outputs instead of {account.expected} ({format_share(value)} off)"
    state: Holding = "holds" if objective.holds(value, objective.threshold) else "broken"
    return Check(objective.text, state, value, objective.threshold, shown)


def _compared(objective: Objective, value: float, base: float, shown: str) -> Check:
    limit = objective.threshold * base if objective.relative else objective.threshold
    state: Holding = "holds" if objective.holds(value, limit) else "broken"
    return Check(objective.text, state, value, limit, f"{shown}, the objective is {objective.text}")
