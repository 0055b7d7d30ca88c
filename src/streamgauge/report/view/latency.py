"""Latency at the passing load and at shares of it, like Karimov's Table II, with the number of window results."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.judge.disturbed import was_slowed
from streamgauge.model.facts import RowLatencies
from streamgauge.model.finding import Finding
from streamgauge.model.measurement import LatencySummary
from streamgauge.model.seconds import OUTPUT_KINDS, Kind
from streamgauge.model.units import format_duration, format_rate, format_share
from streamgauge.report.view.run_report import JudgedTrial, failing_trial, holding_trial
from streamgauge.search.notes import trial_numbers

PERCENTILES = ("p50", "p90", "p95", "p99")
UNSUPPORTED = "–"
"""In the place of a percentile that so few rows do not have."""


@dataclass(frozen=True, slots=True)
class LatencyLine:
    """One line of the table: one kind of latency of one trial."""

    kind: Kind
    at: str
    """``100%``, ``90%``, or the value where no share is meant."""
    load: str
    trial: int
    average: str
    least: str
    most: str
    percentiles: tuple[str, ...]
    """As in ``PERCENTILES``."""
    rows: int
    firings: int
    upper_bound: bool
    """Others took CPU during the trial, which can only have made latencies longer."""


def format_latency(nanos: float) -> str:
    """A latency in three digits: ``1.35s``, ``507ms``, ``32.1us``."""
    if nanos >= 999.5e9:
        return format_duration(nanos)
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanos >= 0.9995 * size:
            return f"{nanos / size:.3g}{unit}"
    return format_duration(nanos)


def latency_lines(finding: Finding, trials: Sequence[JudgedTrial]) -> tuple[LatencyLine, ...]:
    """Event-time first, then processing-time; each at 100 % and at the shares that were measured."""
    points = latency_points(finding, trials)
    return tuple(
        _line(kind, at, judged, summary)
        for kind in OUTPUT_KINDS
        for at, judged in points
        if (summary := judged.measurement.latencies.get(kind)) is not None and summary.rows
    )


def latency_points(finding: Finding, trials: Sequence[JudgedTrial]) -> list[tuple[str, JudgedTrial]]:
    """The trials whose latency is shown, with their labels."""
    points: list[tuple[str, JudgedTrial]] = []
    if finding.status == "measured":
        only = holding_trial(finding, trials) or failing_trial(finding, trials)
        return [] if only is None else [(format_rate(only.load), only)]
    proof = holding_trial(finding, trials)
    if proof is not None:
        points.append(("100%" if finding.dimension == "load" else format_rate(proof.load), proof))
    numbered = {t.number: t for t in trials}
    return points + [(format_share(share), numbered[n]) for share, n in finding.also if n in numbered]


def no_latency(finding: Finding, trials: Sequence[JudgedTrial]) -> str:
    """Why there is no table of latencies although outputs came; empty if there is one, or no reason."""
    points = latency_points(finding, trials)
    if not points or any(judged.measurement.latencies for _, judged in points):
        return ""
    if not any(judged.outcome.account.observed for _, judged in points):
        return ""
    return (
        "latency is unknown, because the outputs have no columns max_due and max_ingested; only throughput and "
        "lag are judged"
    )


def updates(finding: Finding, trials: Sequence[JudgedTrial]) -> str:
    """Where windows came out many times: the event-time latency of their first rows and of their last ones."""
    shown = []
    for at, judged in latency_points(finding, trials):
        rows = (("first", judged.facts.updates.first), ("last", judged.facts.updates.last))
        if known := [_rows(name, found) for name, found in rows if found]:
            shown.append(f"at {at} {', '.join(known)}")
    if not shown:
        return ""
    return f"windows were emitted at every change; event-time latency {'; '.join(shown)}"


def early(finding: Finding, trials: Sequence[JudgedTrial]) -> str:
    """Why the latencies of a job that emits early cannot be compared with those of other jobs; empty if it does not."""
    points = latency_points(finding, trials)
    if not any(judged.facts.engine.emits_early for _, judged in points):
        return ""
    return (
        "the job emits rows before their window is complete: their latency counts from the newest event of each row "
        "and not from the newest one of its window, so do not compare it with that of jobs that wait for the window"
    )


def _rows(name: str, found: RowLatencies) -> str:
    percentiles = (("p50", found.p50_ms), ("p90", found.p90_ms), ("p99", found.p99_ms))
    shown = " ".join(f"{share} {format_latency(value * 1e6)}" for share, value in percentiles)
    return f"of the {name} row of each window {shown}"


def _line(kind: Kind, at: str, judged: JudgedTrial, summary: LatencySummary) -> LatencyLine:
    known = {name: format_latency(value) for name, value in summary.percentiles.items()}
    return LatencyLine(
        kind=kind,
        at=at,
        load=format_rate(judged.load),
        trial=judged.number,
        average=format_latency(summary.average),
        least=format_latency(summary.least),
        most=format_latency(summary.most),
        percentiles=tuple(known.get(name, UNSUPPORTED) for name in PERCENTILES),
        rows=summary.rows,
        firings=summary.firings,
        upper_bound=was_slowed(judged.measurement),
    )


def footnote(lines: Sequence[LatencyLine]) -> str:
    """Why some percentiles are missing, and which latencies are upper bounds; empty if neither is the case."""
    notes = []
    if any(UNSUPPORTED in line.percentiles for line in lines):
        notes.append(
            f"{UNSUPPORTED}: too few outputs for this percentile (p90 needs 10, p95 20, p99 100); "
            "increase trial.duration or use shorter windows."
        )
    slow = sorted({line.trial for line in lines if line.upper_bound})
    if slow:
        notes.append(f"The latencies of {trial_numbers(slow)} are upper bounds, because other processes used CPU time.")
    return " ".join(notes)
