"""A run as a document for machines: ``--json``. Versioned; documented in docs/reference/json.md."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from streamgauge.model.finding import End, Finding
from streamgauge.model.measurement import Interval, Measurement
from streamgauge.report.encode import document
from streamgauge.report.view import Judged, Story, trials_of

_UNITS = {"rate": "events/s", "duration": "ns", "share": "share", "count": "count"}


def run_document(story: Story) -> dict[str, Any]:
    """The document of ``run``, ``resume`` and ``show``."""
    units = {f.dimension: f.unit for f in story.findings}
    return document(
        story.exit_code,
        run=story.run,
        experiment=story.experiment,
        ended=story.ended,
        seconds=sum(t.seconds for t in story.trials),
        findings=[_finding(f, story.trials) for f in story.findings],
        trials=[_trial(t, units) for t in story.trials],
    )


def _finding(finding: Finding, trials: Sequence[Judged]) -> dict[str, Any]:
    own = trials_of(finding, trials)
    return {
        "engine": finding.engine,
        "line": finding.line,
        "dimension": finding.dimension,
        "unit": unit_name(finding.unit),
        "status": finding.status,
        "holds": _end(finding.holds, finding.unit),
        "fails": _end(finding.fails, finding.unit),
        "precision": finding.width,
        "sentence": finding.sentence,
        "notes": list(finding.notes),
        "trials": len(own),
        "seconds": sum(t.seconds for t in own),
    }


def unit_name(unit: str) -> str:
    """The unit of a value in a document: rates in events/s, durations in ns, the rest plain numbers."""
    return _UNITS.get(unit, unit)


def _end(end: End | None, unit: str) -> dict[str, Any] | None:
    if end is None:
        return None
    return {"value": end.value, "unit": unit_name(unit), "trials": list(end.trials)}


def _trial(judged: Judged, units: dict[str, str]) -> dict[str, Any]:
    trial, verdict = judged.trial, judged.verdict
    return {
        "number": trial.number,
        "engine": trial.engine,
        "line": trial.ask.line,
        "dimension": trial.ask.dimension,
        "value": trial.ask.value,
        "unit": unit_name(units.get(trial.ask.dimension, "")),
        "load": trial.load,
        "instances": trial.instances,
        "purpose": trial.ask.purpose,
        "repetition": trial.ask.repetition,
        "seed": trial.seed,
        "verdict": verdict.kind.value,
        "reasons": list(verdict.reasons),
        "checks": [asdict(check) for check in verdict.checks],
        "seconds": judged.seconds,
        "measured": _measured(judged.measurement),
    }


def _measured(found: Measurement) -> dict[str, Any]:
    """The numbers of a trial: rates in events/s, latencies in nanoseconds."""
    return {
        "published_rate": found.published_rate,
        "served_rate": found.served_rate,
        "warmup_seconds": found.warmup_seconds,
        "judged_seconds": found.judged_seconds,
        "steady": found.steady,
        "lag_trend": _interval(found.lag_trend),
        "latency_trend": _interval(found.latency_trend),
        "capacity": _interval(found.capacity),
        "lag_start": found.lag_start,
        "lag_end": found.lag_end,
        "lag_corridor": found.lag_corridor,
        "latency_corridor": found.latency_corridor,
        "longest_queue": found.longest_queue,
        "drops": found.drops,
        "latencies": {kind: asdict(summary) for kind, summary in found.latencies.items()},
        "account": asdict(found.account),
    }


def _interval(found: Interval | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"mean": found.mean, "low": found.low, "high": found.high, "error": found.error, "samples": found.samples}
