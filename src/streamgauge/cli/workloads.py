"""``streamgauge workloads``: the use cases that are known here."""

from typing import Any

from streamgauge.cli.engines import fields_of, render_fields
from streamgauge.cli.options import Json
from streamgauge.cli.talk import Talk


def command(json: Json = False) -> None:
    """List the workloads, their parameters, and the dimensions that can be searched."""
    from rich.console import Group

    from streamgauge.report.encode import document
    from streamgauge.workloads.registry import workloads

    talk = Talk(json)
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": workload.summary,
            "paper": workload.paper,
            "params": fields_of(workload.params.model_json_schema()),
            "dimensions": [
                {"name": d.name, "unit": d.unit, "harder": d.harder, "summary": d.summary} for d in workload.dimensions
            ],
        }
        for name, workload in sorted(workloads().items())
    ]
    talk.show(Group(*[render_fields(f["name"], f"{f['summary']} ({f['paper']})", f["params"]) for f in found]))
    talk.end(document(0, workloads=found))
