"""Writes an experiment as a file with all defaults and units, for tests: ``read`` turns it into an equal experiment."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.engines.contract import Engine
from streamgauge.engines.registry import engines as installed_engines
from streamgauge.model.experiment import EngineChoice, Experiment, SearchPlan, Span, TransportChoice, TrialPlan, Unit
from streamgauge.model.profile import LoadProfile
from streamgauge.parse.combine import transport_options
from streamgauge.parse.fields import write_quantity, write_values
from streamgauge.workloads.registry import workloads

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./%<=-]+)*|[0-9]+(\.[0-9]+)?[A-Za-z%/][A-Za-z%/]*")
_RESERVED = ("null", "true", "false")


def write(experiment: Experiment, engines: Mapping[str, Engine] | None = None) -> str:
    """The experiment as YAML, with all defaults and exact numbers."""
    known = installed_engines() if engines is None else engines
    return "\n".join(_block(document(experiment, known), "")) + "\n"


def document(experiment: Experiment, known: Mapping[str, Engine]) -> dict[str, Any]:
    """The experiment as plain values in the order of the file."""
    params = workloads()[experiment.workload.name].params
    chosen = [_engine(choice, known) for choice in experiment.engines]
    written: dict[str, Any] = {"name": experiment.name}
    if experiment.description:
        written["description"] = experiment.description
    written["workload"] = {"name": experiment.workload.name} | write_values(params, experiment.workload.params)
    written |= {"engine": chosen[0]} if len(chosen) == 1 else {"engines": chosen}
    written["find"] = experiment.what
    load = _profile(experiment.profile) if experiment.profile is not None else {}
    if experiment.what == "stages":
        written["workload"].pop(experiment.dimension.name)
    elif experiment.what == "extreme":
        written["find"] = {"extreme": experiment.dimension.name} | _span(experiment.span, experiment.dimension.unit)
    elif experiment.span != Span():
        load |= _span(experiment.span, "rate")
    if load:
        written["load"] = load
    if experiment.instances != Span(values=(1.0,)) or experiment.what in ("demand", "capacity"):
        span = _span(experiment.instances, "count")
        written["instances"] = span.get("values", span)
        for engine in chosen:  # it is set for all engines, so no engine may set it too
            engine.pop("instances", None)
    written["objective"] = [objective.text for objective in experiment.objectives]
    if experiment.searches:
        written["search"] = _search(experiment.search, experiment.what == "demand")
    written["trial"] = _trial(experiment.trial)
    if experiment.transport != TransportChoice():
        written["transport"] = _transport(experiment.transport)
    written["seed"] = experiment.seed
    return written


def _engine(choice: EngineChoice, known: Mapping[str, Engine]) -> dict[str, Any]:
    options = dict(choice.options)
    if choice.name in known:
        options = write_values(known[choice.name].options, options)
    return {"name": choice.name, "label": choice.label} | options


def _transport(choice: TransportChoice) -> dict[str, Any]:
    return {"name": choice.name} | write_values(transport_options()[choice.name], choice.options)


def _span(span: Span, unit: Unit) -> dict[str, Any]:
    if span.between is not None:
        return {"between": [write_quantity(value, unit) for value in span.between]}
    return {"values": [write_quantity(value, unit) for value in span.values]}


def _search(plan: SearchPlan, demand: bool) -> dict[str, Any]:
    written: dict[str, Any] = {"strategy": plan.strategy, "precision": write_quantity(plan.precision, "share")}
    written |= {"lower_bound": plan.lower_bound} if demand else {}
    written |= {"also": [write_quantity(share, "share") for share in plan.also]} if plan.also else {}
    return written | ({"starts": plan.starts} if plan.starts > 1 else {})


def _trial(plan: TrialPlan) -> dict[str, Any]:
    return {
        "duration": write_quantity(plan.duration, "duration"),
        "warmup": "auto" if plan.warmup is None else write_quantity(plan.warmup, "duration"),
        "warmup_limit": write_quantity(plan.warmup_limit, "duration"),
        "limit": write_quantity(plan.limit, "duration"),
        "repetitions": plan.repetitions,
        "early": plan.early,
        "queue_bound": plan.queue_bound,
        "invalid_retries": plan.invalid_retries,
        "partitions": plan.partitions,
        "drivers": plan.drivers,
        "stall": write_quantity(plan.stall, "duration"),
    }


def _profile(profile: LoadProfile) -> dict[str, Any]:
    first, written = profile.pieces[0], {"profile": profile.shape}
    over = write_quantity(profile.duration, "duration")
    match profile.shape:
        case "constant":
            return written | {"rate": write_quantity(first.rate, "rate")}
        case "ramp":
            return written | {
                "from": write_quantity(first.rate, "rate"),
                "to": write_quantity(first.until, "rate"),
                "over": over,
            }
        case "spikes":
            spike = profile.pieces[1]
            rates = {"base": write_quantity(first.rate, "rate"), "peak": write_quantity(spike.rate, "rate")}
            every = write_quantity(first.duration + spike.duration, "duration")
            return (
                written | rates | {"every": every, "length": write_quantity(spike.duration, "duration"), "over": over}
            )
        case "fluctuating":
            low = write_quantity(profile.pieces[1].rate, "rate")
            return written | {"rate": write_quantity(first.rate, "rate"), "low": low, "over": over}
        case "replay":
            rates_ = [write_quantity(piece.rate, "rate") for piece in profile.pieces]
            return written | {"rates": rates_, "step": write_quantity(first.duration, "duration")}
    return written | {
        "steps": [[write_quantity(p.duration, "duration"), write_quantity(p.rate, "rate")] for p in profile.pieces]
    }


def _block(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """The lines of a mapping in block style. Its values are in flow style, except mappings and lists of mappings."""
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield f"{indent}{_scalar(key)}:"
            yield from _block(item, indent + "  ")
        elif isinstance(item, list) and item and all(isinstance(one, Mapping) and one for one in item):
            yield f"{indent}{_scalar(key)}:"
            for one in item:
                lines = list(_block(one, indent + "    "))
                yield f"{indent}  - {lines[0].lstrip()}"
                yield from lines[1:]
        else:
            yield f"{indent}{_scalar(key)}: {_flow(item)}"


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    return _scalar(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    return text if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED else _quoted(text)


def _quoted(text: str) -> str:
    """The text in double quotes, with every character escaped that is not printable."""
    escaped = []
    for character in text:
        if character in '"\\':
            escaped.append(f"\\{character}")
        elif character.isprintable() and character != "\ufeff":
            escaped.append(character)
        else:
            escaped.append(f"\\U{ord(character):08x}")
    return f'"{"".join(escaped)}"'
