"""``streamgauge workloads``: the workloads and their parameters."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgauge.cli.commands.engines import chosen, fields_of, render_fields, render_rows
from streamgauge.cli.console import CliOutput
from streamgauge.cli.options import Json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from streamgauge.workloads.contract import Workload


def workload_names(incomplete: str) -> list[str]:
    """For the shell: the workloads."""
    from streamgauge.workloads.registry import workloads

    return [name for name in sorted(workloads()) if name.startswith(incomplete)]


Name = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Show only this workload.", autocompletion=workload_names),
]


def command(name: Name = None, json: Json = False) -> None:
    """List the workloads with their parameters, and which of them `find: extreme` can search.

    With NAME, only this workload is listed, with the engines that run it.
    """
    from rich.console import Group

    from streamgauge.engines.contract import ANY_WORKLOAD
    from streamgauge.engines.table import rows
    from streamgauge.report.render.json import document
    from streamgauge.workloads.registry import load_problems, workloads

    output = CliOutput(json)
    for problem in load_problems():
        output.note(problem)
    found = [_described(workload) for workload in chosen(workloads(), name, "workload").values()]
    runs = [render_rows([row for row in rows() if row.workload in (name, ANY_WORKLOAD)])] if name else []
    output.print(Group(*[_rendered(one) for one in found], *runs))
    output.exit(document(0, workloads=found))


def _described(workload: "Workload[Any]") -> dict[str, Any]:
    return {
        "name": workload.name,
        "summary": workload.summary,
        "paper": workload.paper,
        "params": fields_of(workload.params),
        "dimensions": [
            {"name": d.name, "unit": d.unit, "harder": d.harder, "summary": d.summary} for d in workload.dimensions
        ],
    }


def _rendered(one: dict[str, Any]) -> "RenderableType":
    lines = [f"{one['summary']} ({one['paper']})"]
    if one["dimensions"]:
        lines.append(f"parameters for find: extreme: {', '.join(d['name'] for d in one['dimensions'])}")
    return render_fields(one["name"], lines, one["params"])
