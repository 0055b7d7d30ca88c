"""Write an experiment: the fully resolved file, with units, which ``read`` turns into an equal experiment."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.engines.contract import Engine
from streamgauge.engines.registry import engines as installed_engines
from streamgauge.model.experiment import EngineChoice, Experiment, SearchPlan, Span, TransportChoice, TrialPlan, Unit
from streamgauge.model.profile import LoadProfile
from streamgauge.parse.combine import TRANSPORTS
from streamgauge.parse.fields import spell, spelled
from streamgauge.workloads.registry import workloads

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*( [A-Za-z0-9_./%<=-]+)*|[0-9]+(\.[0-9]+)?[A-Za-z%/][A-Za-z%/]*")
_TAKEN = ("null", "true", "false")


def write(experiment: Experiment, engines: Mapping[str, Engine] | None = None) -> str:
    """The experiment as YAML: everything said, nothing rounded."""
    known = installed_engines() if engines is None else engines
    return "\n".join(_block(document(experiment, known), "")) + "\n"


def document(experiment: Experiment, known: Mapping[str, Engine]) -> dict[str, Any]:
    """The experiment as plain values in the order of the file."""
    params = workloads()[experiment.workload.name].params
    chosen = [_engine(choice, known) for choice in experiment.engines]
    said: dict[str, Any] = {"name": experiment.name}
    if experiment.description:
        said["description"] = experiment.description
    said["workload"] = {"name": experiment.workload.name} | spelled(params, experiment.workload.params)
    said |= {"engine": chosen[0]} if len(chosen) == 1 else {"engines": chosen}
    said["find"] = experiment.what
    load = _profile(experiment.profile) if experiment.profile is not None else {}
    if experiment.what == "extreme":
        said["find"] = {"extreme": experiment.dimension.name} | _span(experiment.span, experiment.dimension.unit)
    elif experiment.span != Span():
        load |= _span(experiment.span, "rate")
    if load:
        said["load"] = load
    if experiment.instances != Span(values=(1.0,)) or experiment.what in ("demand", "capacity"):
        span = _span(experiment.instances, "count")
        said["instances"] = span.get("values", span)
        for engine in chosen:  # said for all of them; an engine that says it too would contradict
            engine.pop("instances", None)
    said["objective"] = [objective.text for objective in experiment.objectives]
    if experiment.what != "nothing":
        said["search"] = _search(experiment.search, experiment.what == "demand")
    said["trial"] = _trial(experiment.trial)
    if experiment.transport != TransportChoice():
        said["transport"] = _transport(experiment.transport)
    said["seed"] = experiment.seed
    return said


def _engine(choice: EngineChoice, known: Mapping[str, Engine]) -> dict[str, Any]:
    options = dict(choice.options)
    if choice.name in known:
        options = spelled(known[choice.name].options, options)
    return {"name": choice.name, "label": choice.label} | options


def _transport(choice: TransportChoice) -> dict[str, Any]:
    return {"name": choice.name} | spelled(TRANSPORTS[choice.name], choice.options)


def _span(span: Span, unit: Unit) -> dict[str, Any]:
    if span.between is not None:
        return {"between": [spell(value, unit) for value in span.between]}
    return {"values": [spell(value, unit) for value in span.values]}


def _search(plan: SearchPlan, demand: bool) -> dict[str, Any]:
    said: dict[str, Any] = {"strategy": plan.strategy, "precision": spell(plan.precision, "share")}
    said |= {"lower_bound": plan.lower_bound} if demand else {}
    said |= {"also": [spell(share, "share") for share in plan.also]} if plan.also else {}
    return said | ({"starts": plan.starts} if plan.starts > 1 else {})


def _trial(plan: TrialPlan) -> dict[str, Any]:
    return {
        "duration": spell(plan.duration, "duration"),
        "warmup": "auto" if plan.warmup is None else spell(plan.warmup, "duration"),
        "warmup_limit": spell(plan.warmup_limit, "duration"),
        "limit": spell(plan.limit, "duration"),
        "repetitions": plan.repetitions,
        "early": plan.early,
        "queue_bound": plan.queue_bound,
        "invalid_retries": plan.invalid_retries,
        "partitions": plan.partitions,
        "drivers": plan.drivers,
        "stall": spell(plan.stall, "duration"),
    }


def _profile(profile: LoadProfile) -> dict[str, Any]:
    first, said = profile.pieces[0], {"profile": profile.shape}
    over = spell(profile.duration, "duration")
    match profile.shape:
        case "constant":
            return said | {"rate": spell(first.rate, "rate")}
        case "ramp":
            return said | {"from": spell(first.rate, "rate"), "to": spell(first.until, "rate"), "over": over}
        case "spikes":
            spike = profile.pieces[1]
            rates = {"base": spell(first.rate, "rate"), "peak": spell(spike.rate, "rate")}
            every = spell(first.duration + spike.duration, "duration")
            return said | rates | {"every": every, "length": spell(spike.duration, "duration"), "over": over}
        case "fluctuating":
            low = spell(profile.pieces[1].rate, "rate")
            return said | {"rate": spell(first.rate, "rate"), "low": low, "over": over}
        case "replay":
            rates_ = [spell(piece.rate, "rate") for piece in profile.pieces]
            return said | {"rates": rates_, "step": spell(first.duration, "duration")}
    return said | {"steps": [[spell(p.duration, "duration"), spell(p.rate, "rate")] for p in profile.pieces]}


def _block(value: Mapping[str, Any], indent: str) -> Iterator[str]:
    """A mapping in block style; what lies in it in flow style, except mappings and lists of mappings."""
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
    return text if _PLAIN.fullmatch(text) and text.lower() not in _TAKEN else _quoted(text)


def _quoted(text: str) -> str:
    """Double quotes with every character escaped that is not plainly printable."""
    escaped = []
    for character in text:
        if character in '"\\':
            escaped.append(f"\\{character}")
        elif character.isprintable() and character != "\ufeff":
            escaped.append(character)
        else:
            escaped.append(f"\\U{ord(character):08x}")
    return f'"{"".join(escaped)}"'
