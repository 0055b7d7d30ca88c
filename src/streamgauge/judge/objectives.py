"""Evaluates one objective on one measurement: holds, broken or unclear, and a sentence with the numbers."""

import math
from collections.abc import Sequence

from streamgauge.judge import trend_rules
from streamgauge.judge.measure import Trends
from streamgauge.judge.percentiles import judge_percentile
from streamgauge.model.measurement import Check, Interval, Measurement, ObjectiveState
from streamgauge.model.objective import SHARES, Objective
from streamgauge.model.seconds import Kind
from streamgauge.model.units import SECOND, duration_text, format_count, share_text

INCORRECT = ("lost", "duplicate", "wrong")
COUNTED = (*INCORRECT, "late")
TRENDS = ("lag-trend", "latency-trend")


def evaluate(
    objective: Objective, measured: Measurement, rule: trend_rules.TrendRule = trend_rules.classify_full
) -> Check:
    """The state of one objective; ``rule`` decides objectives on trends."""
    metric = objective.metric
    if metric in TRENDS:
        return _evaluate_trend(objective, measured, rule)
    if metric == "event-time" or metric == "processing-time":  # noqa: PLR1714 (spelled out for the type checker)
        return _evaluate_latency(objective, measured, metric)
    return _evaluate_count(objective, measured)


def _evaluate_count(objective: Objective, measured: Measurement) -> Check:
    metric = objective.metric
    if metric in COUNTED:
        value, base = float(getattr(measured.account, metric)), float(measured.account.expected)
        outputs = "output was" if value == 1 else "outputs were"
        return _compared(objective, value, base, f"{format_count(value)} {outputs} {_PARTICIPLE[metric]}")
    if metric == "output-error":
        return _evaluate_output_error(objective, measured)
    if metric == "lag-growth":
        value = measured.lag_end - measured.lag_start
        return _compared(objective, value, measured.load, f"the lag grew by {format_count(value)} events")
    if metric == "queue":
        value = float(measured.longest_queue)
        of_load = f" ({duration_text(value / measured.load * SECOND)} of load)" if measured.load else ""
        text = f"up to {format_count(value)} events{of_load} waited in the queue"
        return _compared(objective, value, measured.load, text)
    times = "once" if measured.drops == 1 else f"{measured.drops} times"
    text = f"the system under test closed its connection to the queue {times}"
    return _compared(objective, float(measured.drops), 0.0, text)


_PARTICIPLE = {"lost": "lost", "duplicate": "duplicated", "wrong": "wrong", "late": "late"}
_OUTCOME: dict[ObjectiveState, str] = {"holds": "met", "broken": "missed"}


def trend_evidence(objective: Objective, measured: Measurement | Trends) -> trend_rules.TrendEvidence | None:
    """The trend that an objective limits, with the threshold in the unit of the trend; None: unknown."""
    lag = objective.metric == "lag-trend"
    trend = measured.lag_trend if lag else measured.latency_trend
    runaway = lag and has_runaway_lag([objective], measured)
    if trend is None and not runaway:
        return None
    scale = measured.load if lag else 1.0
    limit = _limit(objective, scale)
    corridor = measured.lag_corridor if lag else measured.latency_corridor
    steady = trend_rules.level_error(measured.lag_spread, measured.lag_seconds) if lag else math.inf
    returns = measured.lag_reversion if lag else 0.0
    late = measured.lag_late if lag else measured.latency_late
    recent, floor = (measured.lag_recent, measured.lag_floor) if lag else (None, None)
    judged = float(measured.judged_seconds)
    return trend_rules.TrendEvidence(
        trend, limit, scale, judged, corridor, steady, returns, runaway, late, recent, floor
    )


def has_runaway_lag(objectives: Sequence[Objective], measured: Measurement | Trends) -> bool:
    """Whether lag grows without bound, also in the second half, and no objective on its trend allows so much."""
    if not measured.runaway:
        return False
    grown = (measured.lag_end - measured.lag_start) / measured.lag_seconds
    late = grown if measured.lag_late is None else measured.lag_late
    limits = [_limit(o, measured.load) for o in objectives if o.metric == "lag-trend"]
    return late > 0 and all(min(grown, late) > limit for limit in limits)


def _limit(objective: Objective, scale: float) -> float:
    return objective.threshold * scale if objective.relative else objective.threshold


def _evaluate_trend(objective: Objective, measured: Measurement, rule: trend_rules.TrendRule) -> Check:
    evidence = trend_evidence(objective, measured)
    lag = objective.metric == "lag-trend"
    if evidence is None:
        what = "acknowledgements" if lag else "outputs"
        sentence = f"too few {what} in {measured.judged_seconds} s for a trend; increase trial.duration"
        return Check(objective.text, "unclear", float("nan"), float("nan"), sentence)
    state = rule(evidence)
    if evidence.trend is None:
        grown = format_count(measured.lag_end - measured.lag_start)
        text = f"the lag grew by {grown} events in {measured.judged_seconds} s, a clear overload; there were too few "
        text += "acknowledgements for a confidence interval"
        return Check(objective.text, state, measured.lag_end - measured.lag_start, evidence.threshold, text)
    trend, limit = evidence.trend, evidence.threshold
    text = _lag_growth(trend, limit, measured.load) if lag else _latency_growth(trend, limit)
    outcome = {
        "holds": "objective met" + _why_met(evidence),
        "broken": "objective missed" + _why_missed(evidence),
        "unclear": (
            f"{measured.judged_seconds} s of measurement are not enough to decide at this noise level; "
            "increase trial.limit"
        ),
    }[state]
    return Check(objective.text, state, trend.mean, limit, f"{text}: {outcome}")


def _why_met(evidence: trend_rules.TrendEvidence) -> str:
    """Why the objective is met although the interval of the trend includes the limit; empty if it does not."""
    if evidence.trend is None or evidence.trend.high <= evidence.threshold:
        return ""
    if evidence.floor is not None and trend_rules.returned_to_floor(evidence):
        return f", because the lag was back at its floor {evidence.floor.visits} times in the second half"
    if evidence.trend.mean > evidence.threshold:
        return ", because the lag stopped growing in the second half"
    return ", because the lag keeps returning to its starting level"


def _why_missed(evidence: trend_rules.TrendEvidence) -> str:
    """Why the objective is missed although the interval of the trend includes the limit; empty if it does not."""
    if evidence.trend is None or evidence.trend.low > evidence.threshold:
        return ""
    if evidence.recent is None or evidence.scale <= 0:
        return ""
    return f", because it still grows by {_percent(evidence.recent.mean / evidence.scale)} in the second half"


def _lag_growth(trend: Interval, threshold: float, load: float) -> str:
    if not load:  # a profile may plan no events for the judged seconds
        return f"lag growth {format_count(trend.mean)} events/s (limit {format_count(threshold)} events/s)"
    return (
        f"lag growth {format_count(trend.mean)} events/s, {_percent(trend.mean / load)} of the load (95 % confidence "
        f"interval {trend.low / load * 100:.2f} to {_percent(trend.high / load)}, limit {_percent(threshold / load)})"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.2f} %"


def _latency_growth(trend: Interval, threshold: float) -> str:
    low, high = duration_text(trend.low * SECOND), duration_text(trend.high * SECOND)
    return (
        f"growth of the event-time latency {duration_text(trend.mean * SECOND)} per second "
        f"(95 % confidence interval {low} to {high}, limit {duration_text(threshold * SECOND)})"
    )


def _evaluate_latency(objective: Objective, measured: Measurement, kind: Kind) -> Check:
    summary = measured.latencies.get(kind)
    name = objective.statistic or "p99"
    if summary is None:
        sentence = (
            f"the {kind} latency is unknown because the outputs have no columns max_due and max_ingested; add them to "
            "the output of your function"
        )
        return Check(objective.text, "unclear", float("nan"), objective.threshold, sentence)
    if name in SHARES:
        return judge_percentile(objective, summary, measured.judged_seconds)
    value = {"avg": summary.average, "min": summary.least, "max": summary.most}[name]
    state: ObjectiveState = "holds" if objective.holds(value, objective.threshold) else "broken"
    limit = duration_text(objective.threshold)
    sentence = f"{kind} {name} {duration_text(value)} (objective {objective.operator} {limit}): {_OUTCOME[state]}"
    return Check(objective.text, state, value, objective.threshold, sentence)


def _evaluate_output_error(objective: Objective, measured: Measurement) -> Check:
    account = measured.account
    if not account.expected:
        sentence = "no output was expected yet; increase trial.duration"
        return Check(objective.text, "unclear", float("nan"), objective.threshold, sentence)
    value = abs(account.observed - account.expected) / account.expected
    state: ObjectiveState = "holds" if objective.holds(value, objective.threshold) else "broken"
    text = f"{account.observed} outputs instead of {account.expected}, a difference of {share_text(value)}"
    sentence = f"{text} (objective {objective.text}): {_OUTCOME[state]}"
    return Check(objective.text, state, value, objective.threshold, sentence)


def _compared(objective: Objective, value: float, base: float, text: str) -> Check:
    limit = objective.threshold * base if objective.relative else objective.threshold
    state: ObjectiveState = "holds" if objective.holds(value, limit) else "broken"
    return Check(objective.text, state, value, limit, f"{text} (objective {objective.text}): {_OUTCOME[state]}")
