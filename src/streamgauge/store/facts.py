"""TrialFacts ↔ the object ``facts`` of a trial's manifest: one flat JSON object.

The engine's own settings are beside the other keys, as in every recording since format 1. Reading is lenient: an engine
of another package may have written anything, and a fact that is not as expected is omitted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from streamgauge.model.facts import (
    BROKER,
    ClockDifference,
    EngineFacts,
    Explanation,
    MicroBatches,
    Phases,
    RoleUsage,
    RowLatencies,
    TransportFacts,
    TrialFacts,
    UpdateLatencies,
    WarmUp,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json = dict[str, Any]

_ENGINE = {
    "name": "engine",
    "version": "version",
    "simulated": "virtual",
    "options": "options",
    "outputs": "outputs",
    "queue": "queue_is",
    "unchecked_job": "unchecked_job",
    "describe_failed": "describe_failed",
    "emits_early": "emits_early",
}
"""Fields of EngineFacts → keys. Its settings have separate keys."""
_TRIAL = {field.name: field.name for field in fields(TrialFacts) if field.name != "engine"} | {
    "segment_ns": "sitting_ns",
    "warm_up": "warmed",
}
_WARM_UP = {field.name: field.name for field in fields(WarmUp)} | {
    "cost_us": "microseconds_per_event",
    "steady": "flat",
    "estimated_limit": "reach",
}
_CLASHING = "engine_settings"
"""Settings of the engine whose names are keys of the facts."""
_BROKER_USE, _KAFKA = "broker_use", "kafka"
"""Keys of earlier recordings: what became ``roles.broker``, and what became ``transport``."""
_KEYS = {*_ENGINE.values(), *_TRIAL.values(), _CLASHING, _BROKER_USE, _KAFKA}
_LARGEST = 1e300


def facts_to_json(facts: TrialFacts) -> Json:
    """The facts under the keys that they have in a manifest. What is not known or does not apply is omitted."""
    settings = facts.engine.settings
    written = {_ENGINE[name]: value for name, value in _known(facts.engine, EngineFacts()) if name != "settings"}
    written |= {_TRIAL[name]: value for name, value in _known(facts, TrialFacts()) if name != "engine"}
    if facts.warm_up is not None:
        written["warmed"] = {_WARM_UP[name]: value for name, value in _known(facts.warm_up, WarmUp())}
    if facts.micro_batches is not None:
        written["micro_batches"] = dict(_known(facts.micro_batches, MicroBatches()))
    if facts.updates != UpdateLatencies():
        written["updates"] = dict(_known(facts.updates, UpdateLatencies()))
    clashing = {key: value for key, value in settings.items() if key in _KEYS}
    free = {key: value for key, value in settings.items() if key not in _KEYS}
    return written | free | ({_CLASHING: clashing} if clashing else {})


def _known(value: "DataclassInstance", empty: "DataclassInstance") -> Iterator[tuple[str, Any]]:
    """The fields that are not as in the empty value."""
    for field in fields(value):
        found = getattr(value, field.name)
        if found != getattr(empty, field.name):
            yield field.name, found


def facts_from_json(stored: object) -> TrialFacts:
    """The facts of a trial of any format that was ever written."""
    if not isinstance(stored, Mapping):
        raise ValueError("the facts of a trial are an object")
    return TrialFacts(
        engine=_engine(stored),
        transport=_transport(stored),
        placement=_text(stored.get("placement")),
        driver_cores=_whole_numbers(stored.get("driver_cores")),
        sut_cores=_whole_numbers(stored.get("sut_cores")),
        start_ns=_whole(stored.get("start_ns")),
        wall_ns=_whole(stored.get("wall_ns")),
        segment_ns=_whole(stored.get("sitting_ns")),
        send_interval_ns=_whole(stored.get("send_interval_ns")) or 0,
        phases=_phases(stored.get("phases")),
        warm_up=_warm_up(stored.get("warmed")),
        roles=dict(_roles(stored)),
        explanation=tuple(_explanation(stored.get("explanation"))),
        micro_batches=_micro_batches(stored.get("micro_batches")),
        updates=_updates(stored.get("updates")),
        probe_failed=_text(stored.get("probe_failed")),
    )


def _engine(stored: Mapping[str, Any]) -> EngineFacts:
    return EngineFacts(
        name=_text(stored.get("engine")),
        version=_text(stored.get("version")),
        simulated=stored.get("virtual") is True,
        options=_object(stored.get("options")),
        settings={key: value for key, value in stored.items() if key not in _KEYS} | _object(stored.get(_CLASHING)),
        outputs=_columns(stored.get("outputs")),
        queue=_text(stored.get("queue_is")),
        unchecked_job=stored.get("unchecked_job") is True,
        describe_failed=_text(stored.get("describe_failed")),
        emits_early=stored.get("emits_early") is True,
    )


def _columns(value: object) -> tuple[tuple[str, str], ...] | None:
    """Pairs of name and type; None if it is anything else."""
    columns = tuple(tuple(column) for column in _list(value) if isinstance(column, list | tuple))
    pairs = tuple((str(column[0]), str(column[1])) for column in columns if len(column) == 2)
    return pairs or None


def _transport(stored: Mapping[str, Any]) -> TransportFacts | None:
    found = _object(stored.get("transport"))
    if name := _text(found.get("name")):
        settings, clock = _object(found.get("settings")), _clock(found.get("clock"))
        return TransportFacts(name, _text(found.get("sentence")), settings, clock)
    earlier = _object(stored.get(_KAFKA))
    if not earlier:
        return None
    settings = {key: value for key, value in earlier.items() if key != "clock"}
    return TransportFacts(_KAFKA, _sentence(settings), settings, _clock(earlier.get("clock")))


def _sentence(settings: Json) -> str:
    """The sentence of a recording that has only the settings of Kafka."""
    brokers, copies = settings.get("brokers"), settings.get("replication")
    local = f", {brokers} local broker{'' if brokers == 1 else 's'}"
    where = local if brokers is not None else f" at {settings.get('cluster')}"
    name = f"Kafka {settings.get('version', '')}".strip()
    shown = f"{copies} {'copy' if copies == 1 else 'copies'}"
    return f"{name}{where}, {settings.get('format')} records, {shown}, acks {settings.get('acks')}"


def _clock(value: object) -> ClockDifference | None:
    found = _object(value)
    offset, within = _number(found.get("offset_ms")), _number(found.get("within_ms"))
    if offset is None or within is None:
        return None
    return ClockDifference(offset, within, _whole(found.get("probes")) or 0)


def _warm_up(value: object) -> WarmUp | None:
    found = _object(value)
    steady = found.get("flat")
    costs = (_amount(cost) for cost in _list(found.get("microseconds_per_event")))
    read = WarmUp(
        **{name: _amount(found.get(_WARM_UP[name])) for name in ("started", "seconds", "load", "estimated_limit")},
        cost_us=tuple(cost for cost in costs if cost is not None),
        steady=steady if isinstance(steady, bool) else None,
    )
    return None if read == WarmUp() else read


def _phases(value: object) -> Phases | None:
    found = _object(value)
    read = Phases(**{field.name: _amount(found.get(field.name)) for field in fields(Phases)})
    return None if read == Phases() else read


def _roles(stored: Mapping[str, Any]) -> Iterator[tuple[str, RoleUsage]]:
    for role, value in ({BROKER: stored.get(_BROKER_USE)} | _object(stored.get("roles"))).items():
        found = _object(value)
        used = {field.name: _number(found.get(field.name)) for field in fields(RoleUsage)}
        known = {name: number for name, number in used.items() if number is not None}
        if len(known) == len(used):
            yield role, RoleUsage(**known)


def _explanation(value: object) -> Iterator[Explanation]:
    for entry in map(_object, _list(value)):
        sentence = _text(entry.get("sentence")).strip()
        if sentence:
            yield Explanation(str(entry.get("what", "")), _number(entry.get("share")), sentence)


def _micro_batches(value: object) -> MicroBatches | None:
    found = _object(value)
    read = MicroBatches(
        count=_whole(found.get("count")) or 0,
        mean_ms=_amount(found.get("mean_ms")) or 0.0,
        longest_ms=_amount(found.get("longest_ms")) or 0.0,
        trigger_ms=_amount(found.get("trigger_ms")),
    )
    return None if read == MicroBatches() else read


def _updates(value: object) -> UpdateLatencies:
    found = _object(value)
    return UpdateLatencies(_row_latencies(found.get("first")), _row_latencies(found.get("last")))


def _row_latencies(value: object) -> RowLatencies | None:
    found = _object(value)
    p50, p90, p99 = (_amount(found.get(f"p{share}_ms")) for share in (50, 90, 99))
    if p50 is None or p90 is None or p99 is None:
        return None
    return RowLatencies(round(_amount(found.get("rows")) or 0), p50, p90, p99)


def _object(value: object) -> Json:
    return dict(value) if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _whole_numbers(value: object) -> tuple[int, ...]:
    return tuple(number for each in _list(value) if (number := _whole(each)) is not None)


def _number(value: object) -> float | None:
    """A finite number; None if it is anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST < value < _LARGEST:
        return value
    return None


def _amount(value: object) -> float | None:
    """A finite number that is not negative."""
    number = _number(value)
    return number if number is not None and number >= 0 else None
