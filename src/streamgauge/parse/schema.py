"""The JSON Schema of the experiment file (draft 2020-12), for editors."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from streamgauge.engines.contract import Engine
from streamgauge.engines.registry import engines as installed_engines
from streamgauge.model.experiment import Unit
from streamgauge.model.options import PATTERNS, quantity_schema
from streamgauge.parse.choices import NAME
from streamgauge.parse.combine import transport_options
from streamgauge.parse.fields import file_keys, quantity_of, write_quantity
from streamgauge.parse.goal import GOALS
from streamgauge.parse.load import MAX_VALUES
from streamgauge.parse.objectives import LATENCIES, MAX_OBJECTIVE_LENGTH, OF_OUTPUTS, STATISTICS
from streamgauge.parse.read import MAX_DESCRIPTION, MAX_SEED
from streamgauge.parse.sections import PROFILES, SearchSection, TrialSection
from streamgauge.transports.registry import transports
from streamgauge.workloads.contract import Workload
from streamgauge.workloads.registry import workloads

_BOUNDS = ("gt", "ge", "lt", "le")
_SPAN = [{"required": ["between"]}, {"required": ["values"]}]


def schema(engines: Mapping[str, Engine] | None = None) -> dict[str, Any]:
    """The schema with every engine's options and every workload's parameters."""
    known = installed_engines() if engines is None else engines
    kinds = workloads()
    engine_cases = [_engine(engine) for engine in known.values()]
    workload_cases = [_case({"name": _const(w.name, w.summary)}, ["name"], w.params) for w in kinds.values()]
    over = transport_options()
    transport_cases = [
        _case({"name": _const(name, transports()[name].summary)}, ["name"], model) for name, model in over.items()
    ]
    engine = _named("the system under test and its options", known, engine_cases)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "streamgauge experiment",
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "workload", "find"],
        "oneOf": [{"required": ["engine"]}, {"required": ["engines"]}],
        "properties": {
            "name": {"type": "string", "pattern": f"^{NAME.pattern}$", "description": "name of the experiment"},
            "description": {
                "type": "string",
                "maxLength": MAX_DESCRIPTION,
                "description": "purpose of the experiment",
            },
            "workload": _named("the job and the events, with their parameters", kinds, workload_cases),
            "engine": engine,
            "engines": {"type": "array", "minItems": 1, "items": engine, "description": "engines to compare"},
            "find": _find(kinds),
            "load": _load(),
            "instances": _instances(),
            "objective": _objective(),
            "search": _case({}, [], SearchSection),
            "trial": _case({}, [], TrialSection),
            "transport": _named("how events reach the system under test", over, transport_cases),
            "seed": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_SEED,
                "description": "the same seed generates the same events and the same simulated noise",
            },
        },
    }


def _const(value: str, description: str) -> dict[str, Any]:
    return {"const": value, "description": description}


def _named(description: str, names: Mapping[str, Any], cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {"description": description, "anyOf": [{"enum": list(names)}, *cases]}


def _engine(engine: Engine) -> dict[str, Any]:
    label = {
        "type": "string",
        "pattern": f"^{NAME.pattern}$",
        "description": "distinguishes two entries with the same engine; default: the name of the engine",
    }
    return _case({"name": _const(engine.name, engine.summary), "label": label}, ["name"], engine.options)


def _case(first: dict[str, Any], required: list[str], model: type[BaseModel]) -> dict[str, Any]:
    """The object schema of a model, without references, with defaults as they are written in a file."""
    model_schema = model.model_json_schema(by_alias=True)
    model_schema = _inlined(
        {key: item for key, item in model_schema.items() if key != "$defs"}, model_schema.get("$defs", {})
    )
    fields = file_keys(model)
    properties = dict(first)
    for name, raw in model_schema.get("properties", {}).items():
        default = raw.pop("default", None)
        quantity = quantity_of(fields[name].annotation, fields[name].metadata)
        properties[name] = _tidy(raw)
        if quantity is not None and isinstance(default, (int, float)):
            properties[name]["default"] = write_quantity(default, quantity)
        elif isinstance(default, (str, bool)):
            properties[name]["default"] = default
    return {
        "type": "object",
        "description": model_schema.get("description", ""),
        "additionalProperties": False,
        "properties": properties,
        "required": [*required, *model_schema.get("required", [])],
    }


def _inlined(value: object, definitions: Mapping[str, object]) -> Any:  # noqa: ANN401 - JSON is any of these
    """The schema with references replaced by their definitions, which would otherwise be at the top of the schema."""
    if isinstance(value, dict):
        if "$ref" in value:
            found = definitions[str(value["$ref"]).removeprefix("#/$defs/")]
            return _inlined(
                {**dict(cast(Mapping[str, object], found)), **{k: v for k, v in value.items() if k != "$ref"}},
                definitions,
            )
        return {key: _inlined(item, definitions) for key, item in value.items()}
    return [_inlined(item, definitions) for item in value] if isinstance(value, list) else value


def _tidy(value: object) -> object:
    """The schema without titles, and without bounds of values, because the file contains them as text."""
    if isinstance(value, dict):
        return {key: _tidy(item) for key, item in value.items() if key not in ("title", *_BOUNDS)}
    return [_tidy(item) for item in value] if isinstance(value, list) else value


def _find(kinds: Mapping[str, Workload[Any]]) -> dict[str, Any]:
    dimensions = {d.name: d for workload in kinds.values() for d in workload.dimensions}
    names = [what for what in GOALS if what != "extreme"]
    extremes = [
        _span(dimension.unit, {"extreme": _const(name, dimension.summary)}) for name, dimension in dimensions.items()
    ]
    return {"description": "what the experiment finds", "anyOf": [{"enum": names}, *extremes]}


def _span(unit: Unit, first: dict[str, Any]) -> dict[str, Any]:
    """``between`` or ``values`` with this unit, and the properties ``first``."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*first],
        "properties": {**first, "between": _quantities(unit, 2, 2), "values": _quantities(unit)},
        "oneOf": _SPAN,
    }


def _quantities(unit: Unit, min_items: int = 1, max_items: int = MAX_VALUES) -> dict[str, Any]:
    return {"type": "array", "items": quantity_schema(unit), "minItems": min_items, "maxItems": max_items}


def _load() -> dict[str, Any]:
    cases = []
    for name, model in PROFILES.items():
        required = [] if name == "constant" else ["profile"]
        cases.append(_case({"profile": _const(name, str(model.__doc__))}, required, model))
    return {"description": "events per second: a rate, loads to search, or a profile", "anyOf": cases}


def _instances() -> dict[str, Any]:
    return {
        "description": "number of instances of the system under test",
        "anyOf": [quantity_schema("count"), _quantities("count"), _span("count", {})],
    }


def _objective() -> dict[str, Any]:
    one = {
        "type": "string",
        "pattern": rf"^\s*({'|'.join(_objectives())})\s*$",
        "maxLength": MAX_OBJECTIVE_LENGTH,
        "examples": ["lag-trend <= 1%", "event-time p99 < 2s", "lost == 0"],
    }
    return {
        "description": "conditions that a trial must meet",
        "anyOf": [one, {"type": "array", "minItems": 1, "items": one}],
    }


def _objectives() -> Iterator[str]:
    """The patterns of objectives: metric, operator and threshold."""
    count, share, duration = PATTERNS["count"], PATTERNS["share"].removesuffix("?"), PATTERNS["duration"]
    bounded, exact = r"\s*<=?\s*", r"\s*(<=?|==)\s*"
    statistics = "|".join(statistic.replace(".", "[.]") for statistic in STATISTICS)
    yield rf"({'|'.join(LATENCIES)})\s+({statistics}){bounded}{duration}"
    yield rf"lag-trend{bounded}({share}|{PATTERNS['rate']})"
    yield rf"latency-trend{bounded}{duration}\s*/\s*s"
    yield rf"output-error{exact}{PATTERNS['share']}"
    yield rf"(lag-growth|queue){bounded}({share}|{count})"
    yield rf"drops{exact}{count}"
    yield rf"({'|'.join(OF_OUTPUTS)}){exact}({share}|{count})"
