"""``streamgauge show``: show the result of a run from the files in its folder."""

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from streamgauge.cli.options import RUNS, Json, Out, RunArgument
from streamgauge.cli.talk import Talk
from streamgauge.cli.trouble import Trouble

if TYPE_CHECKING:
    from streamgauge.store import Run

Recompute = Annotated[
    bool,
    typer.Option(
        "--recompute",
        help="Recompute every trial from its raw logs with Spark, and compare it with the stored result.",
    ),
]
Trial = Annotated[
    int | None, typer.Option("--trial", metavar="N", min=1, help="Recompute only this trial; needs --recompute.")
]


def command(
    run: RunArgument = "@last",
    *,
    out: Out = RUNS,
    recompute: Recompute = False,
    trial: Trial = None,
    json: Json = False,
) -> None:
    """Show the result of a run and all its trials."""
    talk = Talk(json)

    from streamgauge.cli.runs import find_run, shown, story_of
    from streamgauge.report.document import run_document
    from streamgauge.report.terminal import render_run
    from streamgauge.report.view import view_run

    found = find_run(out, run)
    if recompute:
        _again(found, trial, talk)
    if trial is not None:
        raise Trouble("--trial needs --recompute. Without --recompute, every trial is shown.")
    known = shown(found)
    story = story_of(found, known)
    talk.show(render_run(view_run(story)))
    if found.report.exists():
        talk.say(f"report: {found.report}")
    talk.end({**run_document(story), "run_exit_code": int(known.exit_code)})


def _again(run: "Run", trial: int | None, talk: Talk) -> NoReturn:
    from rich.text import Text

    from streamgauge.cli.recompute import chosen_trials, line, part_of_document, recomputed
    from streamgauge.report.encode import document
    from streamgauge.run.exits import ExitCode

    trials, parts = chosen_trials(run, trial), []
    real = {stored.trial.number: "placement" in stored.facts for stored in trials}
    for one in recomputed(run, trials, talk):
        talk.show(Text(line(one, real[one.number])))
        for difference in one.differences:
            talk.show(Text(f"  {difference}"))
        parts.append(part_of_document(one))
    code = ExitCode.FINE if all(part["same"] for part in parts) else ExitCode.MISSED
    talk.end(document(code, run=run.id, experiment=run.experiment.name, recomputed=parts), code)
