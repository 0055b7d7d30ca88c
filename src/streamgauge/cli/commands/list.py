"""``streamgauge list``: the runs of the results folder."""

from typing import TYPE_CHECKING, Any

from streamgauge.cli.console import CliOutput
from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.model.text import on_one_line

if TYPE_CHECKING:
    from streamgauge.store import RunSummary


def command(out: Out = RUNS, json: Json = False) -> None:
    """List the runs, oldest first, with the result of each."""
    output = CliOutput(json)

    from rich.table import Table
    from rich.text import Text

    from streamgauge.cli.inputs import open_store
    from streamgauge.report.render.json import document

    known = open_store(out).runs()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", no_wrap=True, overflow="fold")
    table.add_column("trials", justify="right")
    table.add_column("result", ratio=1)
    for run in known:
        table.add_row(Text(on_one_line(run.id)), Text(str(run.trials)), Text(_found(run)))
    if known:
        output.print(table)
    else:
        output.note(f"There are no runs in {out}. Start one with: streamgauge run quickstart")
    output.exit(document(0, runs=[_row(run) for run in known]))


def _found(run: "RunSummary") -> str:
    """The results of a run, one line each, with the engine and the series if there are several."""
    from streamgauge.model.finding import title_text

    titled = [(title_text(*pair), pair[1]) for pair in zip(run.titles, run.sentences, strict=True)]
    lines = [f"{title}: {sentence}" if title else sentence for title, sentence in titled]
    return "\n".join(lines) or run.reason or f"{run.state}: streamgauge resume {run.id}"


def _row(run: "RunSummary") -> dict[str, Any]:
    return {
        "run": run.id,
        "experiment": run.experiment,
        "state": run.state,
        "created": None if run.created is None else run.created.isoformat(),
        "engines": [*run.engines],
        "trials": run.trials,
        "ended": run.ended,
        "run_exit_code": run.exit_code,
        "found": [*run.sentences],
        "titles": [*run.titles],
        "reason": run.reason,
    }
