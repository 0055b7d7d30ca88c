"""The view model: the content of every report of a run. Pure: values in, values out."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.model.finding import Bound, Finding, title_text, titles
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.seconds import Account
from streamgauge.model.units import (
    duration_text,
    format_count,
    format_duration,
    format_rate,
    format_share,
    format_value,
)
from streamgauge.report.view.circumstances import circumstances
from streamgauge.report.view.latency import LatencyLine, early, latency_lines, no_latency, updates
from streamgauge.report.view.limits import LimitingFactors, limits_of
from streamgauge.report.view.run_report import JudgedTrial, RunReport, trials_of
from streamgauge.report.view.setup import transport
from streamgauge.report.view.stages import StageTable, stage_tables

NO_ANSWER = "there is no reference result for this workload or pipeline to compare them with"


def outputs_checked(trials: Sequence[JudgedTrial]) -> str:
    """What was compared with which result, or why nothing was."""
    if not trials:
        return "Correctness is unchecked: no trial was finished."
    valid = [t for t in trials if t.verdict.kind is not VerdictKind.INVALID]
    if not valid:
        return (
            "Correctness is unchecked: every trial was INVALID, so nothing is known about the outputs."
            f"{_invalid(trials)}"
        )
    done = [t for t in valid if _compared(t.outcome.account)]
    if not done and (early := [t for t in valid if t.outcome.account.checked]):
        return f"Correctness is unchecked: no output was due before the trial ended ({early[-1].outcome.ending})."
    if not done:
        return f"Correctness is unchecked: {_why_not(valid)}. Counts and latency are still judged."
    accounts = [t.outcome.account for t in done]
    rows = sum(a.observed for a in accounts)
    counts = [(sum(getattr(a, name) for a in accounts), name) for name in ("lost", "duplicate", "wrong", "late")]
    bad = ", ".join(f"{format_count(n)} {name}" for n, name in counts)
    spoilt = _invalid(trials)
    where = f"{len(done)} trial{'' if len(done) == 1 else 's'}"
    left = len(valid) - len(done)
    rest = "" if not left else f" {left} trial{'' if left == 1 else 's'} could not be checked."
    if all(t.virtual for t in done):
        return (
            f"No outputs were checked (simulated run: outputs are modelled, nothing was computed). The model has "
            f"{format_count(rows)} rows in {where}: {bad}.{rest}{spoilt}"
        )
    return (
        f"Outputs were checked: {format_count(rows)} rows of {where} were compared with the reference result: "
        f"{bad}.{rest}{spoilt}"
    )


def _invalid(trials: Sequence[JudgedTrial]) -> str:
    """What was found in the outputs of INVALID trials; nothing if nothing was."""
    accounts = [t.outcome.account for t in trials if t.verdict.kind is VerdictKind.INVALID]
    counts = [(sum(getattr(a, name) for a in accounts), name) for name in ("lost", "duplicate", "wrong")]
    if not any(n for n, _ in counts):
        return ""
    shown = ", ".join(f"{format_count(n)} {name}" for n, name in counts)
    return f" Outputs of INVALID trials, whose cause is unknown: {shown}."


def _compared(account: Account) -> bool:
    """Whether there was anything to compare: an output that came, or one that had to."""
    return account.checked and (account.observed > 0 or account.expected > account.not_reached)


def _why_not(trials: Sequence[JudgedTrial]) -> str:
    if any(t.facts.engine.unchecked_job for t in trials):
        return "the job is your own function, and engine.reference names no function that computes its expected results"
    broken = [t.outcome.ending for t in trials]
    if all(ending not in ("completed", "decided") for ending in broken):
        return f"no trial ran to its end ({broken[-1]})"
    return NO_ANSWER


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One line of the table of trials."""

    number: int
    purpose: str
    at: float
    """The requested value, as a number, for the chart."""
    value: str
    load: str
    verdict: str
    seconds: int
    latency: str
    trend: str
    """Growth of the lag as a share of the load."""
    reason: str
    start: int
    """Which start of the system it is of, from one."""
    proves: str
    """``holds`` or ``fails`` if this trial is one of the bounds, its share if it measures a share of the result."""
    log: tuple[str, ...] = ()
    """The last lines of the system under test, where it crashed or stalled."""

    @property
    def role(self) -> str:
        """What the trial is in the result, in words; empty if it only guided the search."""
        roles = {"holds": "passed bound", "fails": "failed bound"}
        return roles.get(self.proves) or (f"{self.proves.removesuffix('%')} % of the result" if self.proves else "")


@dataclass(frozen=True, slots=True)
class FindingView:
    """One result with the trials behind it."""

    title: str
    engine: str
    dimension: str
    unit: str
    sentence: str
    status: str
    holds: str
    fails: str
    ends: tuple[float | None, float | None]
    precision: str
    notes: tuple[str, ...]
    rows: tuple[TrialRow, ...]
    time: str
    why: LimitingFactors | None
    latencies: tuple[LatencyLine, ...]
    no_latency: str
    updates: str
    """On first and last rows, where windows came out many times."""
    early: str = ""
    """On the latencies of rows that came out before their window was complete."""
    circumstances: tuple[str, ...] = ()
    """How the bounds came about, a sentence each."""

    @property
    def heading(self) -> str:
        """The title, without the series if the sentence names it."""
        return title_text(self.title, self.sentence)


@dataclass(frozen=True, slots=True)
class RunView:
    """A whole run."""

    id: str
    name: str
    ended: str
    findings: tuple[FindingView, ...]
    exit_code: int
    checked: str
    transport: str = ""
    """How events were transported, if not over the queue."""
    stages: tuple[StageTable, ...] = ()
    """The latency of each stage, on each engine, if the run measured stages."""


def view_run(report: RunReport) -> RunView:
    """Everything that is shown of a run, findings first."""
    named = zip(titles(report.findings), report.findings, strict=True)
    findings = tuple(_finding(title_text(title), finding, report) for title, finding in named)
    checked = outputs_checked(report.trials)
    way, stages = transport(report), stage_tables(report)
    return RunView(report.run, report.experiment, report.ended, findings, report.exit_code, checked, way, stages)


def as_sentence(text: str) -> str:
    """A sentence begins with a capital and ends with a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"


def _finding(title: str, finding: Finding, report: RunReport) -> FindingView:
    own = trials_of(finding, report.trials)
    return FindingView(
        title=title,
        engine=finding.engine,
        dimension=finding.dimension,
        unit=finding.unit,
        sentence=finding.sentence,
        status=finding.status,
        holds=_end(finding.holds, finding.unit),
        fails=_end(finding.fails, finding.unit),
        ends=(finding.holds.value if finding.holds else None, finding.fails.value if finding.fails else None),
        precision="" if finding.width is None else f"{finding.width * 100:.1f} %",
        notes=finding.notes,
        rows=tuple(_row(t, finding) for t in own),
        time=duration_text(sum(t.seconds for t in own) * 1e9),
        why=limits_of(finding, own),
        latencies=latency_lines(finding, own),
        no_latency=no_latency(finding, own),
        updates=updates(finding, own),
        early=early(finding, own),
        circumstances=circumstances(finding, own, report.asked).sentences,
    )


def searched_name(finding: FindingView) -> str:
    """What to call the searched values beside the loads that the trials had.

    The load of a profile is known once it is known which seconds were judged; before that, it is the planned one.
    """
    return "planned load" if finding.dimension == "load" else finding.dimension


def _end(end: Bound | None, unit: str) -> str:
    if end is None:
        return ""
    proof = ", ".join(str(n) for n in end.trials)
    return f"{format_value(end.value, unit)} (trial {proof})" if proof else format_value(end.value, unit)


def _row(judged: JudgedTrial, finding: Finding) -> TrialRow:
    trial, verdict = judged.trial, judged.verdict
    event_time = judged.measurement.latencies.get("event-time")
    return TrialRow(
        number=trial.number,
        purpose=trial.ask.purpose,
        at=trial.ask.value,
        value=format_value(trial.ask.value, finding.unit),
        load=format_rate(judged.load),
        verdict=verdict.kind.value,
        seconds=judged.seconds,
        latency=format_duration(event_time.average) if event_time and event_time.rows else "–",
        trend=_trend(judged),
        reason=verdict.reasons[0] if verdict.reasons else "",
        start=trial.ask.start + 1,
        proves=_proves(trial.number, finding),
        log=judged.outcome.log_tail,
    )


def _proves(number: int, finding: Finding) -> str:
    for name, end in (("holds", finding.holds), ("fails", finding.fails)):
        if end is not None and number in end.trials:
            return name
    return next((format_share(share) for share, trial in finding.also if trial == number), "")


def _trend(judged: JudgedTrial) -> str:
    trend, load = judged.measurement.lag_trend, judged.measurement.load
    return "–" if trend is None or not load else f"{trend.mean / load:+.1%}"
