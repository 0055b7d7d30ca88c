"""``streamgauge engines``: the installed engines and their options."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from streamgauge.cli.console import CliOutput
from streamgauge.cli.errors import UserError
from streamgauge.cli.options import Json

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo
    from rich.console import RenderableType

    from streamgauge.engines.contract import Engine
    from streamgauge.engines.table import Row

T = TypeVar("T")


def engine_names(incomplete: str) -> list[str]:
    """For the shell: the engines."""
    from streamgauge.engines.registry import engines

    return [name for name in sorted(engines()) if name.startswith(incomplete)]


Name = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Show only this engine.", autocompletion=engine_names),
]


def command(name: Name = None, json: Json = False) -> None:
    """List the engines with their options. With NAME, only this engine, with everything that it runs."""
    from rich.console import Group

    from streamgauge.engines.registry import engines, load_problems
    from streamgauge.engines.table import rows
    from streamgauge.report.render.json import document

    output = CliOutput(json)
    for problem in load_problems():
        output.note(problem)
    found = [_described(label, engine) for label, engine in chosen(engines(), name, "engine").items()]
    runs = [render_rows([row for row in rows() if row.engine == name])] if name else []
    output.print(Group(*[_rendered(one) for one in found], *runs))
    output.exit(document(0, engines=found, problems=[*load_problems()]))


def chosen(known: Mapping[str, T], name: str | None, kind: str) -> dict[str, T]:
    """The named entry, or all entries in order of their names. Raises UserError for an unknown name."""
    if name is None:
        return dict(sorted(known.items()))
    if name in known:
        return {name: known[name]}
    near = difflib.get_close_matches(name[:200], known, 1)
    guess = f" Did you mean {near[0]}?" if near else ""
    raise UserError(f"There is no {kind} {name[:200]!r}.{guess} Known: {', '.join(sorted(known))}.")


def _described(name: str, engine: "Engine") -> dict[str, Any]:
    from streamgauge.engines.table import transports_of, workloads_of

    workloads = workloads_of(engine)
    return {
        "name": name,
        "summary": engine.summary,
        "virtual": engine.traits(engine.options.from_resolved({})).simulated,
        "workloads": None if workloads is None else sorted(workloads),
        "transports": sorted(transports_of(engine)),
        "options": fields_of(engine.options),
    }


def _rendered(one: dict[str, Any]) -> "RenderableType":
    workloads = "all workloads" if one["workloads"] is None else f"workloads {', '.join(one['workloads'])}"
    lines = [one["summary"], f"supports {workloads}; transports {', '.join(one['transports'])}"]
    return render_fields(one["name"], lines, one["options"])


def render_rows(found: "Iterable[Row]") -> "RenderableType":
    """What runs, for the terminal: one line for each engine, workload, variant and transport."""
    from rich.table import Table
    from rich.text import Text

    from streamgauge.engines.contract import ANY_WORKLOAD

    formats: dict[tuple[str, ...], list[str]] = {}
    for row in found:
        workload = "any workload" if row.workload == ANY_WORKLOAD else row.workload
        formats.setdefault((row.engine, workload, row.variant, row.transport), []).append(row.format)
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    for title in ("engine", "workload", "variant", "transport", "formats"):
        table.add_column(title)
    for key, known in formats.items():
        table.add_row(*map(Text, key), Text(", ".join(known) or "–"))
    return table


def fields_of(model: "type[BaseModel]") -> list[dict[str, Any]]:
    """Options or parameters as a list: name, default as a user writes it, allowed values, meaning."""
    from streamgauge.parse.fields import write_values

    fields = model.model_fields
    given = {name: field.get_default(call_default_factory=True) for name, field in fields.items()}
    defaults = {name: None if field.is_required() else given[name] for name, field in fields.items()}
    written = write_values(model, {name: value for name, value in defaults.items() if value is not None})
    return [
        {
            "name": field.alias or name,
            "default": written.get(name),
            "values": [*_allowed(field)],
            "description": field.description or "",
        }
        for name, field in fields.items()
    ]


def _allowed(field: "FieldInfo") -> Iterable[str]:
    """The values of a choice; nothing for every other type."""
    from pydantic import WithJsonSchema

    schemas = [each.json_schema or {} for each in field.metadata if isinstance(each, WithJsonSchema)]
    listed = [value for schema in schemas for value in schema.get("enum", ()) if value]
    return listed or [value for value in get_args(field.annotation) if isinstance(value, str)]


def render_fields(name: str, lines: Iterable[str], fields: list[dict[str, Any]]) -> "RenderableType":
    """One engine or workload for the terminal."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 2), show_header=False)
    for field in fields:
        meaning = f"{field['description']} ({', '.join(field['values'])})" if field["values"] else field["description"]
        table.add_row(Text(field["name"]), Text(_default(field["default"]), style="dim"), Text(meaning))
    paragraphs = [Padding(Text(line), (0, 0, 0, 2), expand=False) for line in lines]
    return Group(Text(name, style="bold"), *paragraphs, table, Text(""))


def _default(value: object) -> str:
    """A default as it is written in an experiment file; a dash if there is none."""
    if isinstance(value, bool):
        return str(value).lower()
    return "–" if value is None or value in ("", {}, []) else str(value)
