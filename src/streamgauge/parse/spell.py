"""Quantities as exact text: what ``spell`` writes, ``model.units`` reads back as the same value."""

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator

from streamgauge.model import units

Quantity = Literal["duration", "rate", "count", "size", "share"]
_PARSERS: dict[Any, Quantity] = {
    units.parse_duration: "duration",
    units.parse_rate: "rate",
    units.parse_count: "count",
    units.parse_size: "size",
    units.parse_share: "share",
}
_DURATIONS = (("d", 86_400 * 10**9), ("h", 3600 * 10**9), ("m", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("us", 1000))


def spell(value: float, quantity: Quantity) -> str | int | float:
    """The shortest text that reads back as exactly this value."""
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
    """The unit type (model/types.py) behind a field's annotation, if it is one; also of an optional or a list."""
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


def spelled(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """Resolved values of a model as they would be written in a file, with their units."""
    written = dict(values)
    for key, info in model.model_fields.items():
        if key in values:
            written[key] = _spelled_value(info.annotation, info.metadata, values[key])
    return written


def _spelled_value(annotation: object, metadata: Sequence[object], value: object) -> object:
    quantity = quantity_of(annotation, metadata)
    if quantity is not None and isinstance(value, (int, float)):
        return spell(value, quantity)
    if isinstance(value, dict) and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return spelled(annotation, value)
    arguments = get_args(annotation)
    if isinstance(value, (list, tuple)) and arguments:
        return [_spelled_value(arguments[min(i, len(arguments) - 1)], [], item) for i, item in enumerate(value)]
    return value
