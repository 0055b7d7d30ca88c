"""Faults of the load driver and the broker, with limits that follow from the objectives that they can affect.

*Late events* (sent or appended after they were due) count in lag and in event-time latency. So 99 % of them may be late
by at most a share of an objective: a tenth of a latency, a quarter of the growth of the lag.
*Pauses* have a separate limit, because a few hundred late events do not change a percentile.
*Starved processes* (hiccups) record late: acknowledgements in the load driver, outputs in the collector. They can only
make a trial look worse, so they matter if an objective was missed by no more than they explain.
*Partitions that are apart* by more than the watermark make a correct system drop events as late.
"""

from collections.abc import Sequence
from dataclasses import replace

from streamgauge.model.measurement import Check, Measurement, Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.trial import INTACT, Recording, Trial
from streamgauge.model.units import SECOND, duration_text, format_duration

MIN_ACHIEVED = 0.995
"""The smallest share of the planned events that must be sent."""
MAX_SEND_DELAY = SECOND // 20
"""The limit without an objective on a latency or a trend, and for the trend of a trial of a few seconds."""
MIN_DELAY_LIMIT = SECOND // 200
"""The smallest limit: the send interval of the queue."""
MAX_PAUSE = SECOND // 4
SHARE_OF_LATENCY, SHARE_OF_TREND = 0.1, 0.25
_LATENCIES = ("event-time", "processing-time")
_TRENDS = ("lag-trend", "latency-trend")
_OF_WORKLOAD = ("watermark", "workload.watermark")


def max_delay(objectives: Sequence[Objective], load: float, seconds: float) -> tuple[float, str]:
    """How late 99 % of the events may be, in nanoseconds, and the objective from which this limit follows."""
    limits = [
        (_delay_limit(o, load, seconds), o.text or o.metric) for o in objectives if o.metric in _LATENCIES + _TRENDS
    ]
    tightest, text = min(limits, default=(float(MAX_SEND_DELAY), ""))
    return min(max(tightest, float(MIN_DELAY_LIMIT)), float(MAX_PAUSE)), text


def _delay_limit(objective: Objective, load: float, seconds: float) -> float:
    if objective.metric in _LATENCIES:
        return SHARE_OF_LATENCY * objective.threshold
    absolute = objective.metric == "lag-trend" and not objective.relative
    growth = objective.threshold / load if absolute and load else objective.threshold  # seconds of load per second
    return max(SHARE_OF_TREND * growth * seconds * SECOND, float(MAX_SEND_DELAY))


def generator_faults(trial: Trial, m: Measurement, objectives: Sequence[Objective]) -> list[str]:
    """A reason for each way in which the load generator, or the broker, did not follow the plan."""
    max_ns, objective_text = max_delay(objectives, m.load, float(m.judged_seconds))
    limit = duration_text(max_ns) + (f" for {objective_text}" if objective_text else "")
    late_generator = m.schedule_lag_p99 > max_ns or m.schedule_lag_worst > MAX_PAUSE
    # a broker that pauses delays the generator too, when it accepts all waiting events together
    held_up = m.append_delay_p99 - m.schedule_lag_p99 > max_ns
    broker = trial.transport.broker and (held_up or not late_generator)
    faults = []
    if m.judged_seconds and m.achieved_share < MIN_ACHIEVED:
        who = "the broker confirmed" if broker else "the load generator sent"
        hint = "give the broker more cores" if broker else "give the load driver more cores"
        faults.append(
            f"{who} {m.achieved_share * 100:.2f} % of the planned events (minimum {MIN_ACHIEVED * 100:.1f} %); "
            f"{hint} or lower the load"
        )
    if broker:
        found = (m.append_delay_p99, m.append_delay_worst)
        faults += _late_events("delay until the broker appended events", "the broker", *found, (max_ns, limit))
    return faults + _late_events(
        "send delay", "the load generator", m.schedule_lag_p99, m.schedule_lag_worst, (max_ns, limit)
    )


def _late_events(what: str, who: str, p99: float, worst: float, limit: tuple[float, str]) -> list[str]:
    faults = []
    if p99 > limit[0]:
        faults.append(
            f"p99 {what} {duration_text(p99)} (limit {limit[1]}): {who} was behind schedule; "
            "keep other work off the cores of the load driver, or lower the load"
        )
    if worst > MAX_PAUSE:
        faults.append(
            f"longest {what} {duration_text(worst)} (limit {duration_text(MAX_PAUSE)}): {who} paused; "
            "keep other work off the cores of the load driver"
        )
    return faults


def unless_explained(
    recording: Recording, measured: Measurement, objectives: Sequence[Objective], verdict: Verdict
) -> Verdict:
    """The verdict, or INVALID if a starved process or the distance of partitions explains the failure of the system."""
    reasons = list[str]()
    if verdict.kind is VerdictKind.OVERLOADED:
        reasons = _starvation(recording, measured, objectives, verdict)
    elif verdict.kind is VerdictKind.FAILED:
        reasons = _partitions_apart(recording, measured)
    return (
        replace(verdict, kind=VerdictKind.INVALID, reasons=(*reasons, *verdict.reasons), stops_run=False)
        if reasons
        else verdict
    )


def _partitions_apart(recording: Recording, measured: Measurement) -> list[str]:
    """The reason if partitions were so far apart that a correct system drops events as late.

    The user's own function may have a smaller watermark than the workload, which the query then reports.
    """
    account, outcome = measured.account, recording.outcome
    watermark, reported = float(recording.trial.params.get("watermark", 0)), outcome.watermark
    of_query = reported is not None and reported < watermark
    watermark = float(reported) if reported is not None and of_query else watermark
    excusable = recording.trial.transport.broker and outcome.ending in INTACT and (account.lost or account.wrong)
    if not excusable or measured.skew <= watermark:
        return []
    whose, key = ("watermark of the query", "the watermark of your function") if of_query else _OF_WORKLOAD
    return [
        f"the broker's partitions were {duration_text(measured.skew)} of event time apart ({whose} "
        f"{duration_text(watermark)}), so a correct system may have dropped events as late; "
        f"set {key} to more than {format_duration(measured.skew)}"
    ]


def _starvation(
    recording: Recording, measured: Measurement, objectives: Sequence[Objective], verdict: Verdict
) -> list[str]:
    """A reason for each missed objective, if starved processes explain all of them."""
    broken = [(o, c) for o, c in zip(objectives, verdict.checks, strict=True) if c.state == "broken"]
    if recording.outcome.ending == "queue-full" or not broken or measured.runaway:
        return []
    found = [_explanation(recording.trial, measured, o, c) for o, c in broken]
    return [why for why in found if why] if all(found) else []


def _explanation(trial: Trial, m: Measurement, objective: Objective, check: Check) -> str:
    """Why a starved process explains a missed objective; empty if none does."""
    excess = _excess(m, objective, check)
    at = objective.statistic or "max" if objective.metric in _LATENCIES else "max"
    collects = objective.metric in _LATENCIES and not trial.transport.broker  # a broker records the time of outputs
    starved = {"load driver": m.hiccups, "collector": m.collector_hiccups if collects else {}}
    for who, pauses in starved.items():
        pause = pauses.get(at, 0.0)
        if excess is not None and pause >= max(excess, float(MIN_DELAY_LIMIT)):
            return (
                f"the process of the {who} got no CPU for {duration_text(pause)}, and {objective.text} was missed by "
                f"only {duration_text(excess)}, so the miss proves nothing; keep other work off the cores of the "
                "load driver"
            )
    return ""


def _excess(m: Measurement, objective: Objective, check: Check) -> float | None:
    """By how much an objective was missed, in nanoseconds; None if a delay cannot explain it."""
    excess = check.value - check.threshold
    if objective.metric in _LATENCIES:
        return excess
    if not m.load:
        return None
    if objective.metric in ("queue", "lag-growth"):
        return excess / m.load * SECOND
    return excess * m.lag_seconds / m.load * SECOND if objective.metric == "lag-trend" else None
