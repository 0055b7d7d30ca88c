"""A table of the file against a pydantic model: values, or problems with their places."""

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from streamgauge.parse.nodes import Items, Leaf, Node, Table, plain
from streamgauge.parse.problems import Mark, Problems, shown
from streamgauge.parse.spell import quantity_of, spell

M = TypeVar("M", bound=BaseModel)

_BOUNDS = {
    "greater_than": ("gt", "must be more than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}
_TYPES = {
    "missing": "is missing",
    "extra_forbidden": "unknown key",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
}


def written_names(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by the name that stands in the file."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def fits(
    model: type[M], table: Table, key: str, problems: Problems, *, noun: str = "key", besides: Iterable[str] = ()
) -> M | None:
    """The table as a value of ``model``, or None with the problems noted. Keys in ``besides`` are not its own."""
    others = tuple(besides)
    names = written_names(model)
    before = len(problems)
    given: dict[str, Any] = {}
    for name, entry in table.entries.items():
        if name in names:
            given[name] = plain(entry.node)
        elif name not in others:
            allowed = [*others, *names]
            problems.add(entry.mark, f"{key}.{shown(name)}", f"unknown {noun}", allowed, name)
    try:
        value = model.model_validate(given)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _explain(model, table, key, problems, detail)
        return None
    return value if len(problems) == before else None


def _explain(model: type[BaseModel], table: Table, key: str, problems: Problems, detail: ErrorDetails) -> None:
    context = detail.get("ctx") or {}
    loc = tuple(detail["loc"])
    if detail["type"] == "combination":
        loc = (*loc, context["key"])
    mark, path = locate(table, loc, key)
    info = written_names(model).get(str(loc[0])) if loc else None
    if detail["type"] == "literal_error":
        allowed = [part.strip(" '") for part in str(context["expected"]).replace(" or ", ", ").split(", ")]
        written = shown(detail["input"])
        problems.add(mark, path, f"unknown value {written}", allowed, written)
    else:
        problems.add(mark, path, _message(detail, context, info))


def _message(detail: ErrorDetails, context: dict[str, Any], info: FieldInfo | None) -> str:
    kind = detail["type"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "combination":
        return str(context["sentence"])
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        quantity = quantity_of(info.annotation, info.metadata) if info else None
        bound = context[name]
        return f"{words} {spell(bound, quantity) if quantity else bound}"
    if kind == "too_short":
        least = context["min_length"]
        return f"must have at least {least} entr{'y' if least == 1 else 'ies'}, but has {context['actual_length']}"
    if kind == "too_long":
        return f"must have at most {context['max_length']} entries"
    return _TYPES.get(kind, str(detail["msg"]))


def locate(node: Node, loc: tuple[int | str, ...], key: str) -> tuple[Mark, str]:
    """The place of a value by its path, or of the nearest thing around it, and the path as text.

    Pydantic puts names of types into paths through unions; they name no place and are left out.
    """
    mark, path = node.mark, key
    for step in loc:
        if isinstance(step, int) and isinstance(node, Items) and step < len(node.items):
            node = node.items[step]
            mark = node.mark
        elif isinstance(step, str) and isinstance(node, Table) and step in node.entries:
            node = node.entries[step].node
            mark = node.mark
        elif isinstance(node, Leaf):
            break
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return mark, path
