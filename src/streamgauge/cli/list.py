"""``streamgauge list``: the runs that are there."""

from typing import TYPE_CHECKING, Any

from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.cli.talk import Talk

if TYPE_CHECKING:
    from streamgauge.store import RunSummary


def command(out: Out = RUNS, json: Json = False) -> None:
    """List the runs, oldest first, each with what it found."""
    talk = Talk(json)

    from rich.table import Table
    from rich.text import Text

    from streamgauge.cli.runs import open_store
    from streamgauge.report.encode import document

    known = open_store(out).runs()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run", no_wrap=True, overflow="fold")
    table.add_column("trials", justify="right")
    table.add_column("found", ratio=1)
    for run in known:
        found = " ".join(run.sentences) or run.reason or f"{run.state}: streamgauge resume {run.id}"
        table.add_row(Text(run.id), Text(str(run.trials)), Text(found))
    if known:
        talk.show(table)
    else:
        talk.say(f"There are no runs in {out}. `streamgauge run quickstart` makes the first one.")
    talk.end(document(0, runs=[_row(run) for run in known]))


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
        "reason": run.reason,
    }
