"""Options and parameters of an experiment: their base classes, and fields that are written with units."""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from streamgauge.model import units

_NUMBER = r"[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\s*"
PATTERNS = {
    "duration": _NUMBER + "(ns|us|µs|ms|s|m|min|h|d)",
    "rate": _NUMBER + r"[kKMGB]?\s*/\s*(s|m|min|h)",
    "count": _NUMBER + "[kKMGB]?",
    "size": _NUMBER + "(B|[kK]B|MB|GB|TB|[KMGT]iB)",
    "share": _NUMBER + "%?",
}
"""How each quantity is written as text. ``model.units`` reads it."""
_EXAMPLES = {"duration": "8s", "rate": "50k/s", "count": "50k", "size": "2GiB", "share": "25%"}
_BARE = {"count": "integer", "share": "number"}
"""Quantities that may be a number without a unit, and the type of that number in JSON."""


def quantity_schema(quantity: str) -> dict[str, Any]:
    """The JSON Schema of a quantity. It accepts the same text as the parser, but does not check bounds."""
    text = {
        "pattern": rf"^\s*{PATTERNS[quantity]}\s*$",
        "maxLength": units.MAX_LENGTH,
        "examples": [_EXAMPLES[quantity]],
    }
    if quantity not in _BARE:
        return {"type": "string", **text}
    return {"type": ["string", _BARE[quantity]], "minimum": 0, "maximum": units.MAX_VALUE, **text}


def _schema(quantity: str) -> WithJsonSchema:
    return WithJsonSchema(quantity_schema(quantity))


Duration = Annotated[int, BeforeValidator(units.parse_duration), _schema("duration")]
Rate = Annotated[float, BeforeValidator(units.parse_rate), _schema("rate")]
Count = Annotated[int, BeforeValidator(units.parse_count), _schema("count")]
Size = Annotated[int, BeforeValidator(units.parse_size), _schema("size")]
Share = Annotated[float, BeforeValidator(units.parse_share), _schema("share")]


class _Resolvable(BaseModel):
    """Values of an experiment: unknown keys are errors, and no value changes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def from_resolved(cls, values: Mapping[str, Any]) -> Self:
        """The object that these values were dumped from, as JSON or as Python objects.

        Nothing is validated, because the validators of quantities refuse numbers without a unit. A missing value is the
        default.
        """
        return _built(cls, values)


class Options(_Resolvable):
    """Options of an engine or a transport."""


class Params(_Resolvable):
    """Parameters of a workload, with the defaults of its paper."""

    @property
    def key_count(self) -> int:
        """How many keys the events have; each window has one result for each of them."""
        return 1


M = TypeVar("M", bound=BaseModel)


def _built(model: type[M], values: Mapping[str, Any]) -> M:
    fields = model.model_fields
    return model.model_construct(
        **{name: _rebuilt(fields[name].annotation, value) for name, value in values.items() if name in fields}
    )


def _rebuilt(kind: Any, value: Any) -> Any:  # noqa: ANN401 - annotations and JSON are any of these
    """A dumped value as its annotation has it: models instead of mappings, tuples instead of lists."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _rebuilt(arguments[0], value)
    if origin in (Union, UnionType):
        fitting = next((each for each in arguments if _fits(each, value)), None)
        return value if fitting is None else _rebuilt(fitting, value)
    if not _fits(kind, value):
        return value
    if isinstance(value, Mapping):
        return _built(kind, value) if origin is None else {k: _rebuilt(arguments[1], v) for k, v in value.items()}
    same = origin is not tuple or arguments[1:] == (Ellipsis,)
    return origin(_rebuilt(arguments[0 if same else place], each) for place, each in enumerate(value))


def _fits(kind: Any, value: Any) -> bool:  # noqa: ANN401
    """Whether a mapping is dumped from a model or a mapping of this kind, or several values from a collection of it."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _fits(get_args(kind)[0], value)
    if isinstance(value, Mapping):
        return origin is dict or (isinstance(kind, type) and issubclass(kind, BaseModel))
    return isinstance(value, (list, tuple, set, frozenset)) and origin in (list, tuple, set, frozenset)
