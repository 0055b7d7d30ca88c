"""Fields of parameters and options that are written with units, for pydantic and for JSON Schema."""

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from streamgauge.model import units

_NUMBER = r"[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\s*"
PATTERNS = {
    "duration": _NUMBER + "(ns|us|µs|ms|s|m|min|h|d)",
    "rate": _NUMBER + r"[kKMGB]?\s*/\s*(s|m|min|h)",
    "count": _NUMBER + "[kKMGB]?",
    "size": _NUMBER + "(B|[kK]B|MB|GB|TB|[KMGT]iB)",
    "share": _NUMBER + "%?",
}
"""How each quantity is written as text: what ``model.units`` reads."""
_EXAMPLES = {"duration": "8s", "rate": "50k/s", "count": "50k", "size": "2GiB", "share": "25%"}
_BARE = {"count": "integer", "share": "number"}
"""Quantities that may be a number without a unit, by its type in JSON."""


def quantity_schema(quantity: str) -> dict[str, Any]:
    """The JSON Schema of a quantity. It accepts what the parser accepts, apart from bounds."""
    text = {"pattern": rf"^\s*{PATTERNS[quantity]}\s*$", "maxLength": units.LONGEST, "examples": [_EXAMPLES[quantity]]}
    if quantity not in _BARE:
        return {"type": "string", **text}
    return {"type": ["string", _BARE[quantity]], "minimum": 0, "maximum": units.LARGEST, **text}


def _schema(quantity: str) -> WithJsonSchema:
    return WithJsonSchema(quantity_schema(quantity))


Duration = Annotated[int, BeforeValidator(units.parse_duration), _schema("duration")]
Rate = Annotated[float, BeforeValidator(units.parse_rate), _schema("rate")]
Count = Annotated[int, BeforeValidator(units.parse_count), _schema("count")]
Size = Annotated[int, BeforeValidator(units.parse_size), _schema("size")]
Share = Annotated[float, BeforeValidator(units.parse_share), _schema("share")]
