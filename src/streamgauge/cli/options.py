"""Options that several commands share, so that they read and mean the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

ExperimentArgument = Annotated[
    str, typer.Argument(metavar="EXPERIMENT", help="An experiment file, or the name of a shipped experiment.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run: its id, a unique prefix of it, @last or @last~1.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where runs live.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the experiment, as in search.precision=2%."),
]
Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="TIME", help="Time for all trials, as in 10m; ends with what is known."),
]
Pace = Annotated[
    float, typer.Option("--pace", hidden=True, min=0.0, help="Real seconds per virtual second, to watch or to test.")
]
RUNS = Path("runs")
