"""Options that several commands share, so that they have the same text and meaning everywhere."""

from pathlib import Path
from typing import Annotated

import typer

RUNS = Path("runs")


def path_from(text: str | Path) -> Path:
    """A path from the command line, or its default. An empty path is rejected: it would mean the current folder."""
    if isinstance(text, str) and not text.strip():
        raise typer.BadParameter("the name is empty. Name a file or folder, or write . for the current folder.")
    if "\0" in str(text):
        raise typer.BadParameter("the name has a NUL byte, which no file can have. Choose another name.")
    return Path(text)


def experiment_names(incomplete: str) -> list[str]:
    """For the shell: the built-in experiments, and experiment files in the current folder."""
    from streamgauge.parse.shipped import shipped_names

    files = sorted(path.name for path in Path().glob("*.yaml"))
    return [name for name in (*shipped_names(), *files) if name.startswith(incomplete)]


def run_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the shell: the runs of the results folder."""
    from streamgauge.store import Store, StoreError

    try:
        known = [run.id for run in Store(Path(ctx.params.get("out") or RUNS)).runs()]
    except (OSError, ValueError, StoreError):
        known = []
    return [name for name in ("@last", *reversed(known)) if name.startswith(incomplete)]


ExperimentArgument = Annotated[
    str,
    typer.Argument(
        metavar="EXPERIMENT",
        help="An experiment file, or the name of a built-in experiment (`streamgauge experiments` lists them).",
        autocompletion=experiment_names,
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A run: its id, a unique prefix of it, the name of an experiment (its latest run), @last (the latest run) "
        "or @last~1 (the run before it).",
        autocompletion=run_names,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
Out = Annotated[
    Path, typer.Option("--out", metavar="FOLDER", parser=path_from, help="Store run results in this folder.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the experiment, for example search.precision=2%. Can be given several times.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="TIME",
        help="Stop when the trials have used this much time (for example 10m) and report the result so far.",
    ),
]
Pace = Annotated[
    float, typer.Option("--pace", hidden=True, min=0.0, help="Real seconds per simulated second; 0 = no waiting.")
]
