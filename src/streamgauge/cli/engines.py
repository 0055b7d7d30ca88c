"""``streamgauge engines``: the systems under test that are known here."""

from typing import TYPE_CHECKING, Any

from streamgauge.cli.options import Json
from streamgauge.cli.talk import Talk
from streamgauge.model.units import format_count, format_duration, format_rate, format_share

if TYPE_CHECKING:
    from rich.console import RenderableType

_WRITTEN = {"8s": format_duration, "50k/s": format_rate, "50k": format_count, "25%": format_share}
"""How a default is written, by the example in the schema of its type."""


def command(json: Json = False) -> None:
    """List the engines and their options."""
    from rich.console import Group

    from streamgauge.engines.base import VirtualEngine
    from streamgauge.engines.registry import broken, engines
    from streamgauge.report.encode import document

    talk = Talk(json)
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": engine.summary,
            "virtual": isinstance(engine, VirtualEngine),
            "workloads": None if engine.workloads is None else sorted(engine.workloads),
            "options": fields_of(engine.options.model_json_schema()),
        }
        for name, engine in sorted(engines().items())
    ]
    for problem in broken():
        talk.say(problem)
    talk.show(Group(*[render_fields(f["name"], f["summary"], f["options"]) for f in found]))
    talk.end(document(0, engines=found, problems=[*broken()]))


def fields_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Options or parameters as a list: name, default, meaning."""
    return [
        {"name": name, "default": _written(field), "description": field.get("description", "")}
        for name, field in schema.get("properties", {}).items()
    ]


def _written(field: dict[str, Any]) -> Any:  # noqa: ANN401 (as the schema has it)
    """A default as the user would write it: 5ms, not 5000000."""
    default = field.get("default")
    examples = field.get("examples") or [""]
    if isinstance(default, bool) or not isinstance(default, int | float) or examples[0] not in _WRITTEN:
        return default
    return _WRITTEN[examples[0]](default)


def render_fields(name: str, summary: str, fields: list[dict[str, Any]]) -> "RenderableType":
    """One engine or workload for the terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for field in fields:
        default = "–" if field["default"] is None else str(field["default"])
        table.add_row(Text(field["name"]), Text(default, style="dim"), Text(field["description"]))
    return Group(Text(name, style="bold"), Text(f"  {summary}"), table, Text(""))
