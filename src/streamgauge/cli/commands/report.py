"""``streamgauge report``: write the report of a run from the files in its folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.cli.console import CliOutput
from streamgauge.cli.errors import UserError
from streamgauge.cli.options import RUNS, Json, Out, RunArgument, path_from

if TYPE_CHECKING:
    from streamgauge.report.view.run_report import RunReport
    from streamgauge.store import Run

Html = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        parser=path_from,
        help="Write the report to this file. Without this option: report.html in the run's folder.",
    ),
]


def command(run: RunArgument = "@last", html: Html = None, out: Out = RUNS, json: Json = False) -> None:
    """Write the report of a run: a single HTML file that you can share. Nothing is measured again."""
    output = CliOutput(json)

    from rich.text import Text

    from streamgauge.cli.inputs import conclusion_of, find_run, run_report
    from streamgauge.report.render.json import document

    found = find_run(out, run)
    page = render_report(found, run_report(found, conclusion_of(found)))
    path = found.save_report(page) if html is None else _written(html, page)
    output.stored(f"The report is in {path}.")
    output.print(Text(str(path), no_wrap=True))
    output.exit(document(0, run=found.id, path=str(path), bytes=len(page)))


def render_report(run: "Run", report: "RunReport") -> bytes:
    """The report of a run as HTML. Only the recordings that it shows in charts are read."""
    from streamgauge.report.render.html.page import render_page
    from streamgauge.report.view.charts import charted_trials
    from streamgauge.report.view.page import view_page

    recorded = {wanted.number: run.recording(wanted.number).seconds for wanted in charted_trials(report)}
    return render_page(view_page(report, recorded))


def save_report(run: "Run", report: "RunReport", output: CliOutput) -> None:
    """Write the report into the run's folder and print its path. The run counts even if that fails."""
    from streamgauge.store import StoreError

    try:
        path = run.save_report(render_report(run, report))
    except StoreError as error:
        output.note(f"No report was written: {error}. `streamgauge report {run.id} --html FILE` writes it elsewhere.")
    else:
        output.note(f"report: {path}")


def _written(path: Path, page: bytes) -> Path:
    try:
        path.write_bytes(page)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"--html: {path} cannot be written: {reason}. Use a file in an existing folder.") from None
    return path
