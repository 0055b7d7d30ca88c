"""The view model: a run as it is shown, before anybody decides where. Pure: values in, values out."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.model.finding import End, Finding
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.trial import Ask, Trial
from streamgauge.model.units import format_count, format_duration, format_rate, format_share


@dataclass(frozen=True, slots=True)
class Judged:
    """A finished trial: what was asked, what came out, and how many seconds it took."""

    trial: Trial
    measurement: Measurement
    verdict: Verdict
    seconds: int


@dataclass(frozen=True, slots=True)
class Story:
    """A run as a report is given it."""

    run: str
    experiment: str
    findings: Sequence[Finding]
    trials: Sequence[Judged]
    ended: str = ""
    """Why it ended early; empty if it did not."""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One line of the table of trials."""

    number: int
    purpose: str
    value: str
    load: str
    verdict: str
    seconds: int
    latency: str
    reason: str
    proves: str
    """``holds`` or ``fails`` if this trial proves an end of the bracket."""


@dataclass(frozen=True, slots=True)
class FindingView:
    """One answer with its proof."""

    title: str
    dimension: str
    sentence: str
    status: str
    holds: str
    fails: str
    precision: str
    notes: tuple[str, ...]
    rows: tuple[TrialRow, ...]
    time: str


@dataclass(frozen=True, slots=True)
class RunView:
    """A whole run."""

    id: str
    name: str
    ended: str
    findings: tuple[FindingView, ...]
    exit_code: int


def view_run(story: Story) -> RunView:
    """Everything that is shown of a run, findings first."""
    findings = tuple(_finding(f, story) for f in story.findings)
    return RunView(story.run, story.experiment, story.ended, findings, story.exit_code)


def format_value(value: float, unit: str) -> str:
    """A value of a dimension for a person, by the kind of its unit."""
    if unit == "rate":
        return format_rate(value)
    if unit == "duration":
        return format_duration(value)
    return format_share(value) if unit == "share" else format_count(value)


def trials_of(finding: Finding, trials: Sequence[Judged]) -> list[Judged]:
    """The trials of a finding's line, in the order they were made."""
    return [t for t in trials if t.trial.engine == finding.engine and finding.line in _lines(t.trial.ask)]


def _lines(ask: Ask) -> tuple[str, str]:
    """What a trial's line may be called: where nothing is searched, every value is one of its own."""
    point = f"{ask.dimension}={ask.value:g}"
    return ask.line, f"{ask.line}, {point}" if ask.line else point


def _finding(finding: Finding, story: Story) -> FindingView:
    own = trials_of(finding, story.trials)
    several = len({f.engine for f in story.findings}) > 1
    title = " · ".join(part for part in (finding.engine if several else "", finding.line) if part)
    return FindingView(
        title=title,
        dimension=finding.dimension,
        sentence=finding.sentence,
        status=finding.status,
        holds=_end(finding.holds, finding.unit),
        fails=_end(finding.fails, finding.unit),
        precision="" if finding.width is None else format_share(finding.width),
        notes=finding.notes,
        rows=tuple(_row(t, finding) for t in own),
        time=format_duration(sum(t.seconds for t in own) * 1e9),
    )


def _end(end: End | None, unit: str) -> str:
    if end is None:
        return ""
    proof = ", ".join(str(n) for n in end.trials)
    return f"{format_value(end.value, unit)} (trial {proof})" if proof else format_value(end.value, unit)


def _row(judged: Judged, finding: Finding) -> TrialRow:
    trial, verdict = judged.trial, judged.verdict
    event_time = judged.measurement.latencies.get("event-time")
    proves = [
        name
        for name, end in (("holds", finding.holds), ("fails", finding.fails))
        if end is not None and trial.number in end.trials
    ]
    return TrialRow(
        number=trial.number,
        purpose=trial.ask.purpose,
        value=format_value(trial.ask.value, finding.unit),
        load=format_rate(trial.load),
        verdict=verdict.kind.value,
        seconds=judged.seconds,
        latency=format_duration(event_time.average) if event_time and event_time.rows else "–",
        reason=verdict.reasons[0] if verdict.reasons else "",
        proves=proves[0] if proves else "",
    )
