"""``streamgauge show``: one run again, from its folder alone."""

from streamgauge.cli.options import RUNS, Json, Out, RunArgument
from streamgauge.cli.talk import Talk


def command(run: RunArgument = "@last", out: Out = RUNS, json: Json = False) -> None:
    """Show what a run found and every trial that proves it."""
    talk = Talk(json)

    from streamgauge.cli.runs import find_run, judged, shown
    from streamgauge.report.document import run_document
    from streamgauge.report.terminal import render_run
    from streamgauge.report.view import Story, view_run

    found = find_run(out, run)
    known = shown(found)
    story = Story(found.id, found.experiment.name, known.findings, judged(found), known.ended)
    talk.show(render_run(view_run(story)))
    talk.end({**run_document(story), "run_exit_code": int(known.exit_code)})
