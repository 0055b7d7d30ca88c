"""Latency of each stage of a pipeline: that of the pipeline cut after it, minus that of the one cut before it.

The difference of medians is what van Dongen et al. print. Their latency counts from the mean publication of the events
that an output was made from, so that kind is shown if the outputs of all stages have it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.model.finding import Finding
from streamgauge.model.measurement import LatencySummary, Verdict
from streamgauge.model.seconds import Kind
from streamgauge.report.view import paper_figures
from streamgauge.report.view.latency import UNSUPPORTED, format_latency
from streamgauge.report.view.run_report import JudgedTrial, RunReport, failing_trial, holding_trial, trials_of

PERCENTILES = ("p5", "p50", "p75", "p95")
"""Those of the paper's figure."""
TEXTS = 2
"""How many columns of the table have texts; the others have numbers."""
KINDS: tuple[Kind, ...] = ("publication-time", "event-time")
"""The kinds of latency that can be compared, the preferred one first."""


@dataclass(frozen=True, slots=True)
class StageLatency:
    """The pipeline up to one stage. Latencies in nanoseconds; None: not known."""

    stage: int
    name: str
    trial: int | None
    verdict: str
    percentiles: dict[str, float]
    added: float | None
    """Median minus the median without this stage; of the first stage, its median. None unless both trials passed."""
    published: float | None
    """The same of Flink in van Dongen's paper."""


@dataclass(frozen=True, slots=True)
class StageTable:
    """All stages on one engine."""

    engine: str
    kind: Kind
    rows: tuple[StageLatency, ...]

    @property
    def has_published(self) -> bool:
        """Whether published figures belong to these stages."""
        return any(row.published is not None for row in self.rows)


def stage_tables(report: RunReport) -> tuple[StageTable, ...]:
    """A table for each engine; none if the run measured no stages."""
    asked = report.asked
    if asked is None or asked.what != "stages":
        return ()
    return tuple(_table(report, choice.label) for choice in asked.engines)


def _table(report: RunReport, engine: str) -> StageTable:
    assert report.asked is not None
    findings = [f for f in report.findings if f.engine == engine]
    measured = [_measured(findings, stage, report) for stage in range(len(report.asked.stages))]
    kind = next((kind for kind in KINDS if all(kind in t.measurement.latencies for t in measured if t)), KINDS[-1])
    published = report.asked.workload.name == paper_figures.STAGES_WORKLOAD
    rows, before = list[StageLatency](), 0.0
    complete = True
    for stage, (name, judged) in enumerate(zip(report.asked.stages, measured, strict=True)):
        summary = judged.measurement.latencies.get(kind) if judged else None
        median = _median(summary, judged.verdict if judged else None)
        added = median - before if median is not None and complete else None
        complete, before = median is not None, median or 0.0
        rows.append(
            StageLatency(
                stage=stage,
                name=name,
                trial=judged.number if judged else None,
                verdict=judged.verdict.kind.value if judged else "",
                percentiles={p: summary.percentiles[p] for p in PERCENTILES if p in summary.percentiles}
                if summary
                else {},
                added=added,
                published=paper_figures.STAGE_ADDED_MS[stage] * 1e6 if published else None,
            )
        )
    return StageTable(engine, kind, tuple(rows))


def _measured(findings: Sequence[Finding], stage: int, report: RunReport) -> JudgedTrial | None:
    """The trial of a stage: the one behind its result, or the last one if there is none."""
    own = next((f for f in findings if f.line.endswith(f"{f.dimension}={stage:g}")), None)
    if own is None:
        return None
    trials = trials_of(own, report.trials)
    return holding_trial(own, trials) or failing_trial(own, trials) or next(reversed(trials), None)


def _median(summary: LatencySummary | None, verdict: Verdict | None) -> float | None:
    """The median of a trial that passed. With a growing queue, it depends on the length of the trial."""
    return summary.percentiles.get("p50") if summary and verdict and verdict.holds else None


def shown(latency: float | None) -> str:
    """A latency, or a dash if it is not known."""
    return UNSUPPORTED if latency is None else format_latency(latency)


def shown_difference(latency: float | None, first: bool) -> str:
    """What a stage adds, with its sign; the first stage is the baseline."""
    if latency is None:
        return UNSUPPORTED
    return f"{'' if first else '+' if latency >= 0 else '−'}{format_latency(abs(latency))}"


def columns(table: StageTable) -> tuple[str, ...]:
    """The heads of the table: two texts, then numbers."""
    return ("stage", "verdict", *PERCENTILES, "adds", *(["van Dongen: Flink"] if table.has_published else []))


def cells(table: StageTable) -> list[tuple[str, ...]]:
    """The lines of the table."""
    return [_cells(row, table.has_published) for row in table.rows]


def _cells(row: StageLatency, published: bool) -> tuple[str, ...]:
    added = [row.added, *([row.published] if published else [])]
    return (
        f"{row.stage} {row.name}",
        row.verdict or UNSUPPORTED,
        *(shown(row.percentiles.get(name)) for name in PERCENTILES),
        *(shown_difference(each, first=row.stage == 0) for each in added),
    )


def note(table: StageTable) -> str:
    """What the table shows and what is missing."""
    start = {
        "publication-time": "the mean time of publication of the events that an output was made from",
        "event-time": "the due time of the newest event of an output",
    }[table.kind]
    text = f"Latency from {start}. A stage adds the difference of two medians"
    missing = [row.name for row in table.rows if row.added is None]
    return f"{text}; it is unknown for {', '.join(missing)}, because a trial did not pass." if missing else f"{text}."
