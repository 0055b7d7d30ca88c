"""What the load driver and the broker did wrong, each judged for what it can spoil.

*Late events* (sent or appended after they were due) count in lag and in event-time latency, so 99 % of them may be late
by a share of what is judged: a tenth of a latency objective, a quarter of what the lag may grow by.
*Standstills* have a bound of their own: a few hundred late events do not move a percentile.
*Starved processes* (hiccups) delay what they stamp: acknowledgements in the driver, outputs in the collector. They can
only make a trial look worse, so they matter where an objective was missed by no more than they explain.
*Partitions that are apart* by more than the watermark make a correct system drop events as late.
"""

from collections.abc import Sequence
from dataclasses import replace

from streamgauge.model.measurement import Check, Measurement, Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND, format_duration

LEAST_ACHIEVED = 0.995
MOST_SEND_DELAY = SECOND // 20
"""Where neither a latency nor a trend is judged, and for the trend of a trial of a few seconds."""
LEAST_BOUND = SECOND // 200
"""No bound is below this: it is the send interval of the queue."""
MOST_STANDSTILL = SECOND // 4
OF_LATENCY, OF_TREND = 0.1, 0.25
_LATENCIES = ("event-time", "processing-time")
_TRENDS = ("lag-trend", "latency-trend")


def most_delay(objectives: Sequence[Objective], load: float, seconds: float) -> tuple[float, str]:
    """How late 99 % of the events may be, in nanoseconds, and what would be spoilt if they were later."""
    bounds = [(_spoils(o, load, seconds), o.text or o.metric) for o in objectives if o.metric in _LATENCIES + _TRENDS]
    tightest, text = min(bounds, default=(float(MOST_SEND_DELAY), ""))
    return min(max(tightest, float(LEAST_BOUND)), float(MOST_STANDSTILL)), text


def _spoils(objective: Objective, load: float, seconds: float) -> float:
    if objective.metric in _LATENCIES:
        return OF_LATENCY * objective.threshold
    absolute = objective.metric == "lag-trend" and not objective.relative
    growth = objective.threshold / load if absolute and load else objective.threshold  # seconds of load per second
    return max(OF_TREND * growth * seconds * SECOND, float(MOST_SEND_DELAY))


def generator_faults(trial: Trial, m: Measurement, objectives: Sequence[Objective]) -> list[str]:
    """Sentences on a generator, or a broker behind it, that did not follow the plan."""
    most, spoilt = most_delay(objectives, m.load, float(m.judged_seconds))
    limit = format_duration(most) + (f" for {spoilt}" if spoilt else "")
    late_generator = m.schedule_lag_p99 > most or m.schedule_lag_worst > MOST_STANDSTILL
    # a broker that stands still holds the generator up too, when it takes in all at once afterwards
    held_up = m.append_delay_p99 - m.schedule_lag_p99 > most
    broker = trial.transport.has_broker and (held_up or not late_generator)
    faults = []
    if m.judged_seconds and m.achieved_share < LEAST_ACHIEVED:
        who = "the broker confirmed" if broker else "the load generator sent"
        hint = "give the broker more cores" if broker else "give the load driver more cores"
        faults.append(
            f"{who} {m.achieved_share:.2%} of the planned events (minimum {LEAST_ACHIEVED:.1%}); "
            f"{hint} or lower the load"
        )
    if broker:
        found = (m.append_delay_p99, m.append_delay_worst)
        faults += _late("delay until the broker appended events", "the broker", *found, (most, limit))
    return faults + _late("send delay", "the load generator", m.schedule_lag_p99, m.schedule_lag_worst, (most, limit))


def _late(what: str, who: str, p99: float, worst: float, limit: tuple[float, str]) -> list[str]:
    faults = []
    if p99 > limit[0]:
        faults.append(
            f"p99 {what} {format_duration(p99)} (limit {limit[1]}): {who} was behind schedule; "
            "keep other work off the cores of the load driver, or lower the load"
        )
    if worst > MOST_STANDSTILL:
        faults.append(
            f"longest {what} {format_duration(worst)} (limit {format_duration(MOST_STANDSTILL)}): {who} paused; "
            "keep other work off the cores of the load driver"
        )
    return faults


def unless_spoilt(
    recording: Recording, measured: Measurement, objectives: Sequence[Objective], verdict: Verdict
) -> Verdict:
    """INVALID instead of a verdict against the system that a starved process or partitions far apart explain."""
    whys = list[str]()
    if verdict.kind is VerdictKind.OVERLOADED:
        whys = _starved(recording, measured, objectives, verdict)
    elif verdict.kind is VerdictKind.FAILED:
        whys = _apart(recording, measured)
    return (
        replace(verdict, kind=VerdictKind.INVALID, reasons=(*whys, *verdict.reasons), stops_run=False)
        if whys
        else verdict
    )


def _apart(recording: Recording, measured: Measurement) -> list[str]:
    """Events of a partition that came after the watermark had passed them are dropped by a correct system."""
    watermark, account = float(recording.trial.params.get("watermark", 0)), measured.account
    if not recording.trial.transport.has_broker or not (account.lost or account.wrong) or measured.skew <= watermark:
        return []
    return [
        f"the broker's partitions were {format_duration(measured.skew)} of event time apart (watermark "
        f"{format_duration(watermark)}), so a correct system may have dropped events as late; "
        f"set workload.watermark to more than {format_duration(measured.skew)}"
    ]


def _starved(
    recording: Recording, measured: Measurement, objectives: Sequence[Objective], verdict: Verdict
) -> list[str]:
    """A sentence for each missed objective, if starved processes explain all of them."""
    broken = [(o, c) for o, c in zip(objectives, verdict.checks, strict=True) if c.state == "broken"]
    if recording.outcome.ending == "queue-full" or not broken or measured.runaway:
        return []
    found = [_explained(recording.trial, measured, o, c) for o, c in broken]
    return [why for why in found if why] if all(found) else []


def _explained(trial: Trial, m: Measurement, objective: Objective, check: Check) -> str:
    """Why a missed objective says nothing; nothing if it does."""
    over = _excess(m, objective, check)
    at = objective.statistic or "max" if objective.metric in _LATENCIES else "max"
    collects = objective.metric in _LATENCIES and not trial.transport.has_broker  # a broker stamps outputs itself
    starved = {"load driver": m.hiccups, "collector": m.collector_hiccups if collects else {}}
    for who, pauses in starved.items():
        pause = pauses.get(at, 0.0)
        if over is not None and pause >= max(over, float(LEAST_BOUND)):
            return (
                f"the process of the {who} got no CPU for {format_duration(pause)}, and {objective.text} was missed by "
                f"only {format_duration(over)}, so the miss proves nothing; keep other work off the cores of the load "
                "driver"
            )
    return ""


def _excess(m: Measurement, objective: Objective, check: Check) -> float | None:
    """By how much an objective was missed, in nanoseconds; None if no delay explains it."""
    over = check.value - check.threshold
    if objective.metric in _LATENCIES:
        return over
    if not m.load:
        return None
    if objective.metric in ("queue", "lag-growth"):
        return over / m.load * SECOND
    return over * m.lag_seconds / m.load * SECOND if objective.metric == "lag-trend" else None
