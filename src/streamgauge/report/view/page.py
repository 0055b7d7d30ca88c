"""The view model of the page: the run's own, and what only the page has room for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamgauge
from streamgauge.model.seconds import Seconds
from streamgauge.model.units import SECOND
from streamgauge.report.view import paper_figures
from streamgauge.report.view.charts import all_charts, wanted_trials
from streamgauge.report.view.findings import RunView, view_run
from streamgauge.report.view.run_report import Story
from streamgauge.report.view.setup import Pair, measured_on, settings, subject
from streamgauge.report.view.time_breakdown import Spent, where_time_went


@dataclass(frozen=True, slots=True)
class PageView:
    """Everything that is on the page."""

    run: RunView
    about: str
    """What the sentence is about: the question, the workload, the system."""
    on: tuple[Pair, ...]
    settings: tuple[tuple[str, tuple[Pair, ...]], ...]
    spent: Spent
    charts: list[dict[str, Any]]
    not_charted: int
    """Trials whose charts were left out, to keep the page small."""
    beside: str
    """How the published tables compare; empty where none belongs to the workload."""
    same: str
    """The published system that the engine is one of; empty if it is none of them."""
    text: str
    when: str
    command: str
    measured_by: str
    rendered_by: str


def view_page(story: Story, recorded: Mapping[int, Seconds]) -> PageView:
    """The page of a run, with the seconds of the trials that ``wanted_trials`` names."""
    wanted = wanted_trials(story)
    return PageView(
        run=view_run(story),
        about=subject(story),
        on=measured_on(story),
        settings=settings(story),
        spent=where_time_went(story),
        charts=all_charts(story, wanted, recorded),
        not_charted=len(story.trials) - len(wanted),
        beside=_beside(story),
        same=next((system for t in story.trials if (system := paper_figures.like(t.facts.engine.name))), ""),
        text=story.text,
        when="" if story.created is None else f"{story.created:%Y-%m-%d %H:%M} UTC",
        command=" ".join(["streamgauge", *story.command[1:]]) if story.command else "",
        measured_by=story.version,
        rendered_by=streamgauge.__version__,
    )


def _beside(story: Story) -> str:
    """What a reader must know before comparing with the published tables."""
    asked = story.asked
    if asked is None or asked.workload.name != paper_figures.WORKLOAD:
        return ""
    params = asked.workload.params
    same = (params.get("window"), params.get("slide")) == (8 * SECOND, 4 * SECOND)
    window = "the same as here" if same else "not those of this run"
    return (
        "For orientation only. The hardware, versions and year differ, so do not compare the numbers directly. "
        f"The windows of the paper, 8 s every 4 s, are {window}."
    )
