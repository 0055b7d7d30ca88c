"""``streamgauge clean``: delete files of crashed trials, runs, or topics left on clusters. Lists without --yes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgauge.cli.console import CliOutput
from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.model.units import format_size

if TYPE_CHECKING:
    from streamgauge.store import Run, Store

References = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RUN]...",
        help="Runs to delete: run ids, unique prefixes, experiment names (the latest run), @last or @last~1. "
        "Without this argument, only files left by crashed trials.",
    ),
]

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="EXPERIMENT",
        help="Delete topics on the external cluster of this experiment instead of files: those of the given runs (id, "
        "prefix or @last), or of all runs.",
    ),
]


def command(
    runs: References = None,
    out: Out = RUNS,
    cluster: Cluster = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete the listed items.")] = False,
    json: Json = False,
) -> None:
    """Delete runs, or the files that crashed trials left. Without --yes, only list them."""
    output = CliOutput(json)
    if cluster is not None:
        from streamgauge.cli.leftovers import clean_external

        clean_external(cluster, runs or (), out, yes, output)

    from rich.text import Text

    from streamgauge.cli.inputs import open_store
    from streamgauge.report.render.json import document

    store = open_store(out)
    found = _entire_runs(store, runs) if runs else _leftovers(store, output)
    for item in found:
        output.print(Text(f"{item['path']}  {format_size(item['bytes'])}  {item['what']}"))
    if yes:
        for run in {item["run"].id: item["run"] for item in found}.values():
            _delete(store, run, entire_run=bool(runs))
        output.stored("The listed items were deleted.")
    freed = format_size(sum(item["bytes"] for item in found))
    output.note(_summary(len(found), freed, yes))
    rows = [{**item, "run": item["run"].id, "path": str(item["path"])} for item in found]
    output.exit(document(0, deleted=yes, items=rows))


def _entire_runs(store: "Store", references: list[str]) -> list[dict[str, Any]]:
    named = {run.id: run for run in (store.find(reference) for reference in references)}
    return [{"run": run, "path": run.path, "bytes": store.size(run), "what": _what(run)} for run in named.values()]


def _what(run: "Run") -> str:
    count = run.trial_count()
    trials = f"run with {count} trial{'' if count == 1 else 's'}"
    return f"link to a {trials} in {run.path.resolve()}, which is kept" if run.path.is_symlink() else trials


def _leftovers(store: "Store", output: CliOutput) -> list[dict[str, Any]]:
    """Files that crashed trials left. The unfinished trial of a run in progress is not one of them."""
    from streamgauge.store import RunLocked

    found: list[dict[str, Any]] = []
    for summary in store.runs():
        if summary.state == "unreadable":
            output.note(summary.reason)
            continue
        run = store.find(summary.id)
        try:
            with run.lock():
                found += [_leftover(run, path, "unfinished trial") for path in run.partials()]
                temporary = run.temporary_folders()
                found += [_leftover(run, path, "temporary files of a system under test") for path in temporary]
        except RunLocked as busy:
            output.note(f"{busy}; its files are kept")
    return found


def _leftover(run: "Run", folder: Path, what: str) -> dict[str, Any]:
    from streamgauge.store.durable import size_below

    return {"run": run, "path": folder, "bytes": size_below(folder), "what": what}


def _delete(store: "Store", run: "Run", entire_run: bool) -> None:
    if entire_run:
        store.remove(run)
        return
    with run.lock():
        run.discard_leftovers()


def _summary(count: int, size: str, deleted: bool) -> str:
    if not count:
        return "Nothing to clean."
    things = f"{count} {'folder' if count == 1 else 'folders'}, {size}"
    return f"Deleted {things}." if deleted else f"{things}. Nothing was deleted; add --yes to delete."
