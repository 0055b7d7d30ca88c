"""Validates a table of the file with a pydantic model, and writes values with their units."""

from collections.abc import Callable, Iterable, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from streamgauge.model import units
from streamgauge.parse.problems import Location, Problems, printable
from streamgauge.parse.yaml_tree import Items, Leaf, Node, Table, plain_value

Quantity = Literal["duration", "rate", "count", "size", "share"]
_PARSERS: dict[Any, Quantity] = {
    units.parse_duration: "duration",
    units.parse_rate: "rate",
    units.parse_count: "count",
    units.parse_size: "size",
    units.parse_share: "share",
}
_DURATIONS = (("d", 86_400 * 10**9), ("h", 3600 * 10**9), ("m", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 1000))


def write_quantity(value: float, quantity: Quantity) -> str | int | float:
    """The shortest text that is parsed to exactly this value."""
    if quantity == "duration":
        nanos = int(value)
        unit, size = next(((u, s) for u, s in _DURATIONS if nanos and nanos % s == 0), ("ns", 1))
        return f"{nanos // size}{unit}" if nanos else "0s"
    if quantity == "rate":
        return _first_exact(value, units.parse_rate, units.format_rate(value), f"{_number(value)}/s")
    if quantity == "share":
        return _first_exact(value, units.parse_share, units.format_share(value), _number(value))
    if quantity == "size":
        return _first_exact(value, units.parse_size, units.format_size(value), f"{int(value)}B")
    return int(value)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _first_exact(value: float, parse: Callable[[object], float], pretty: str, exact: str) -> str:
    try:
        return pretty if parse(pretty) == value else exact
    except units.UnitError:
        return exact


def quantity_of(annotation: object, metadata: Sequence[object] = ()) -> Quantity | None:
    """The quantity (model/options.py) of the annotation of a field, also of an optional field or a list; None: none."""
    for item in metadata:
        if isinstance(item, BeforeValidator) and item.func in _PARSERS:
            return _PARSERS[item.func]
    origin = get_origin(annotation)
    if origin is Annotated:
        base, *inner = get_args(annotation)
        return quantity_of(base, inner)
    if origin in (Union, UnionType, list):
        found = (quantity_of(argument) for argument in get_args(annotation))
        return next((quantity for quantity in found if quantity), None)
    return None


def write_values(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """Resolved values of a model as they are written in a file, with their units."""
    written = dict(values)
    for key, info in model.model_fields.items():
        if key in values:
            written[key] = _write_value(info.annotation, info.metadata, values[key])
    return written


def _write_value(annotation: object, metadata: Sequence[object], value: object) -> object:
    quantity = quantity_of(annotation, metadata)
    if quantity is not None and isinstance(value, (int, float)):
        return write_quantity(value, quantity)
    if isinstance(value, dict) and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return write_values(annotation, value)
    arguments = get_args(annotation)
    if isinstance(value, (list, tuple)) and arguments:
        return [_write_value(arguments[min(i, len(arguments) - 1)], [], item) for i, item in enumerate(value)]
    return value


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


def file_keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their keys in the file."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def validate(
    model: type[M], table: Table, key: str, problems: Problems, *, noun: str = "key", other_keys: Iterable[str] = ()
) -> M | None:
    """The table as a value of ``model``; None if there are problems. ``other_keys`` are allowed and ignored."""
    others = tuple(other_keys)
    names = file_keys(model)
    before = len(problems)
    given: dict[str, Any] = {}
    for name, entry in table.entries.items():
        if name in names:
            given[name] = plain_value(entry.node)
        elif name not in others:
            allowed = [*others, *names]
            problems.add(entry.location, f"{key}.{printable(name)}", f"unknown {noun}", allowed, name)
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
    location, path = locate(table, loc, key)
    info = file_keys(model).get(str(loc[0])) if loc else None
    if detail["type"] == "literal_error":
        allowed = [part.strip(" '") for part in str(context["expected"]).replace(" or ", ", ").split(", ")]
        written = printable(detail["input"])
        problems.add(location, path, f"unknown value {written}", allowed, written)
    else:
        problems.add(location, path, _message(detail, context, info))


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
        return f"{words} {write_quantity(bound, quantity) if quantity else bound}"
    if kind == "too_short":
        count = context["min_length"]
        return f"must have at least {count} entr{'y' if count == 1 else 'ies'}, but has {context['actual_length']}"
    if kind == "too_long":
        return f"must have at most {context['max_length']} entries"
    return _TYPES.get(kind, str(detail["msg"]))


def locate(node: Node, loc: tuple[int | str, ...], key: str) -> tuple[Location, str]:
    """The location of a value by its path, or of the smallest node that contains it, and the path as text.

    Pydantic adds names of types to paths through unions. They are ignored, because they are not in the file.
    """
    location, path = node.location, key
    for step in loc:
        if isinstance(step, int) and isinstance(node, Items) and step < len(node.items):
            node = node.items[step]
            location = node.location
        elif isinstance(step, str) and isinstance(node, Table) and step in node.entries:
            node = node.entries[step].node
            location = node.location
        elif isinstance(node, Leaf):
            break
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return location, path
