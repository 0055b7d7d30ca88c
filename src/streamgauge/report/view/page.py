"""The view model of the page: the one of the run, and what only the page shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamgauge
from streamgauge.model.seconds import Seconds
from streamgauge.report.view import paper_figures
from streamgauge.report.view.charts import all_charts, charted_trials
from streamgauge.report.view.findings import RunView, view_run
from streamgauge.report.view.run_report import RunReport
from streamgauge.report.view.setup import Pair, measured_on, settings, subject
from streamgauge.report.view.time_breakdown import TimeBreakdown, time_breakdown


@dataclass(frozen=True, slots=True)
class PageView:
    """Everything that is on the page."""

    run: RunView
    subject: str
    """What the sentence is about: the question, the workload, the system."""
    measured_on: tuple[Pair, ...]
    settings: tuple[tuple[str, tuple[Pair, ...]], ...]
    spent: TimeBreakdown
    charts: list[dict[str, Any]]
    not_charted: int
    """Trials without charts, to keep the page small."""
    paper_note: str
    """How the published tables compare; empty where none belongs to the workload."""
    paper_workload: str
    """The workload whose published tables are shown."""
    paper_system: str
    """The published system that the engine is one of; empty if it is none of them."""
    text: str
    when: str
    command: str
    measured_by: str
    rendered_by: str


def view_page(report: RunReport, recorded: Mapping[int, Seconds]) -> PageView:
    """The page of a run, with the seconds of the trials that ``charted_trials`` names."""
    wanted = charted_trials(report)
    return PageView(
        run=view_run(report),
        subject=subject(report),
        measured_on=measured_on(report),
        settings=settings(report),
        spent=time_breakdown(report),
        charts=all_charts(report, wanted, recorded),
        not_charted=len(report.trials) - len(wanted),
        paper_note=_paper_note(report),
        paper_workload=report.asked.workload.name if report.asked else "",
        paper_system=_paper_system(report),
        text=report.text,
        when="" if report.created is None else f"{report.created:%Y-%m-%d %H:%M} UTC",
        command=" ".join(["streamgauge", *report.command[1:]]) if report.command else "",
        measured_by=report.version,
        rendered_by=streamgauge.__version__,
    )


def _paper_system(report: RunReport) -> str:
    """The published system that an engine of the run is one of."""
    systems = (paper_figures.paper_system_of(t.facts.engine.name) for t in report.trials)
    return next(filter(None, systems), "")


def _paper_note(report: RunReport) -> str:
    """What a reader needs before comparing with the published tables."""
    asked = report.asked
    if asked is None or asked.workload.name not in paper_figures.PUBLISHED:
        return ""
    note = "For orientation only. The hardware, versions and year differ, so do not compare the numbers directly."
    windows = paper_figures.PUBLISHED[asked.workload.name].windows
    if windows is None:
        return f"{note} The paper does not give the windows of this workload."
    params = asked.workload.params
    window = "the same as here" if (params.get("window"), params.get("slide")) == windows else "not those of this run"
    return f"{note} The windows of the paper, 8 s every 4 s, are {window}."
