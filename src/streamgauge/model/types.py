"""Fields of parameters and options that are written with units, for pydantic and for JSON Schema."""

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from streamgauge.model import units


def _schema(parse_example: str, pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", "number"], "pattern": pattern, "examples": [parse_example]})


_NUMBER = r"^[0-9][0-9_]*(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?\s*"

Duration = Annotated[int, BeforeValidator(units.parse_duration), _schema("8s", _NUMBER + "(ns|us|µs|ms|s|m|min|h|d)$")]
Rate = Annotated[float, BeforeValidator(units.parse_rate), _schema("50k/s", _NUMBER + r"[kKMGB]?\s*/\s*(s|m|min|h)$")]
Count = Annotated[int, BeforeValidator(units.parse_count), _schema("50k", _NUMBER + "[kKMGB]?$")]
Size = Annotated[int, BeforeValidator(units.parse_size), _schema("2GiB", _NUMBER + "(B|[kK]B|MB|GB|TB|[KMGT]iB)$")]
Share = Annotated[float, BeforeValidator(units.parse_share), _schema("25%", _NUMBER + "%?$")]
