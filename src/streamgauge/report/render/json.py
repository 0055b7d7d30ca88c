"""A run as a document for machines: ``--json``. Versioned; documented in docs/reference/json.md."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Bound, Finding
from streamgauge.model.text import escaped_in_json
from streamgauge.report.view.circumstances import circumstances
from streamgauge.report.view.limits import limits_of
from streamgauge.report.view.run_report import JudgedTrial, RunReport, trials_of
from streamgauge.report.view.stages import stage_tables

FORMAT = 1
"""Version of every document. Keys are added within a version, never renamed or removed."""


def document(exit_code: int, **content: object) -> dict[str, Any]:
    """A document of any verb: its version and exit code first."""
    return {"format": FORMAT, "exit_code": int(exit_code), **content}


def encode(document: dict[str, Any]) -> bytes:
    """One document, indented, in UTF-8, with a newline at its end. Control characters are escaped."""
    text = json.dumps(_strict(document), indent=2, ensure_ascii=False, allow_nan=False)
    return (escaped_in_json(text) + "\n").encode("utf-8")


def _strict(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _strict(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_strict(inner) for inner in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    item = getattr(value, "item", None)  # a number of numpy, which is not imported for this
    return _strict(item()) if callable(item) else str(value)


_UNITS = {"rate": "events/s", "duration": "ns", "share": "share", "count": "count"}


def run_document(report: RunReport) -> dict[str, Any]:
    """The document of ``run``, ``resume`` and ``show``."""
    units = {f.dimension: f.unit for f in report.findings}
    return document(
        report.exit_code,
        run=report.run,
        experiment=report.experiment,
        ended=report.ended,
        seconds=sum(t.seconds for t in report.trials),
        findings=[_finding(f, report.trials, report.asked) for f in report.findings],
        trials=[_trial(t, units) for t in report.trials],
        **_stages(report),
    )


def _stages(report: RunReport) -> dict[str, Any]:
    """The latency of each stage, in nanoseconds; nothing if the run measured no stages."""
    tables = stage_tables(report)
    return {"stages": [asdict(table) for table in tables]} if tables else {}


def _finding(finding: Finding, trials: Sequence[JudgedTrial], asked: Experiment | None) -> dict[str, Any]:
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
        "why": _why(finding, own),
        "also": [{"share": share, "trial": trial} for share, trial in finding.also],
        "circumstances": asdict(circumstances(finding, own, asked)),
        "starts": [asdict(start) for start in finding.starts],
        "spread": finding.spread,
        "trials": len(own),
        "seconds": sum(t.seconds for t in own),
    }


def _why(finding: Finding, own: Sequence[JudgedTrial]) -> dict[str, Any] | None:
    found = limits_of(finding, own)
    if found is None:
        return None
    return {"trial": found.trial, "end": found.where, "limits": [asdict(limit) for limit in found.limits]}


def unit_name(unit: str) -> str:
    """The unit of a value in a document: rates in events/s, durations in ns, the rest plain numbers."""
    return _UNITS.get(unit, unit)


def _end(end: Bound | None, unit: str) -> dict[str, Any] | None:
    if end is None:
        return None
    return {"value": end.value, "unit": unit_name(unit), "trials": list(end.trials)}


def _trial(judged: JudgedTrial, units: dict[str, str]) -> dict[str, Any]:
    trial, verdict = judged.trial, judged.verdict
    return {
        "number": trial.number,
        "engine": trial.engine,
        "line": trial.ask.line,
        "dimension": trial.ask.dimension,
        "value": trial.ask.value,
        "unit": unit_name(units.get(trial.ask.dimension, "")),
        "load": judged.load,
        "instances": trial.instances,
        "purpose": trial.ask.purpose,
        "repetition": trial.ask.repetition,
        "start": trial.ask.start + 1,
        "seed": trial.seed,
        "verdict": verdict.kind.value,
        "reasons": list(verdict.reasons),
        "checks": [asdict(check) for check in verdict.checks],
        "seconds": judged.seconds,
        "measured": asdict(judged.measurement),
    }
