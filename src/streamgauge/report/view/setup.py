"""What it was measured on: machine, placement, engine, settings; all from what the run has stored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streamgauge.model.experiment import EngineChoice, Experiment
from streamgauge.model.units import format_duration, format_rate, format_size
from streamgauge.report.view.run_report import Judged, Story

Pair = tuple[str, str]

_NOT_SETTINGS = {
    "explanation",
    "phases",
    "unchecked",
    "start_ns",
    "wall_ns",
    "sitting_ns",
    "updates",
    "broker_use",
    "micro_batches",
    "send_interval_ns",
    "queue_is",
}
_TOLD_ELSEWHERE = {"engine", "version", "virtual", "options", "placement", "cores", "java", "python", *_NOT_SETTINGS}
_DURATIONS = ("window", "slide", "watermark")
_LONGEST = 300


def measured_on(story: Story) -> tuple[Pair, ...]:
    """Label and text, in the order in which a reader asks."""
    return tuple(
        (label, text)
        for label, text in (
            *_question(story.asked),
            *_engines(story),
            ("CPU pinning", _placement(story)),
            ("transport", transport(story)),
            ("resolution", resolution(story.trials)),
            *_machine(story.environment),
            *_software(story),
        )
        if text
    )


_QUESTIONS = {
    "sustainable-throughput": "Sustainable throughput, events/s",
    "demand": "Fewest instances for a load",
    "capacity": "Highest load by instances, events/s",
    "extreme": "Hardest value that passes",
    "nothing": "Fixed-load measurement",
}


def subject(story: Story) -> str:
    """What a finding is about, for those who were sent the page alone."""
    if story.asked is None:
        return ""
    first = _first_trials(story)
    engines = [f"{_named(choice, first)}{_cores(first.get(choice.label))}" for choice in story.asked.engines]
    return " · ".join([_QUESTIONS[story.asked.what], story.asked.workload.name, *engines])


def _named(choice: EngineChoice, first: Mapping[str, Judged]) -> str:
    facts = first[choice.label].facts if choice.label in first else {}
    return " ".join(str(part) for part in (choice.name, facts.get("version", "")) if part)


def _cores(judged: Judged | None) -> str:
    if judged is None or judged.virtual or not judged.cores:
        return ""
    return f" on {_count(judged.cores, 'core')}"


def settings(story: Story) -> tuple[tuple[str, tuple[Pair, ...]], ...]:
    """Everything that each engine said of itself, flat, from its first finished trial."""
    found = []
    for label, judged in _first_trials(story).items():
        said = {k: v for k, v in judged.facts.items() if k not in _NOT_SETTINGS}
        found.append((label, tuple(_flat(said))))
    return tuple(found)


def _first_trials(story: Story) -> dict[str, Judged]:
    first: dict[str, Judged] = {}
    for judged in story.trials:
        if judged.facts:
            first.setdefault(judged.trial.engine, judged)
    return first


def _question(asked: Experiment | None) -> Iterator[Pair]:
    if asked is None:
        return
    if asked.description:
        yield "description", asked.description
    params = ", ".join(f"{key} {_param(key, value)}" for key, value in asked.workload.params.items())
    yield "workload", f"{asked.workload.name}: {params}" if params else asked.workload.name
    yield "objective", ", ".join(o.text or f"{o.metric} {o.operator} {o.threshold:g}" for o in asked.objectives)
    t = asked.trial
    warm = "automatic" if t.warmup is None else format_duration(t.warmup)
    parts = f"{t.partitions} partitions" if t.partitions else "one partition per core"
    yield (
        "trials",
        f"full length {format_duration(t.duration)}, warm-up {warm}, {parts}, {_count(t.drivers, 'load driver')}, "
        f"seed {asked.seed}",
    )
    if asked.ceiling is not None:
        over = " over Kafka" if asked.transport.name == "kafka" else ""
        yield "load driver", f"maximum reliable load{over}: {format_rate(asked.ceiling)} on this machine"


def _param(key: str, value: object) -> str:
    return format_duration(value) if key in _DURATIONS and isinstance(value, int) else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _engines(story: Story) -> Iterator[Pair]:
    first = _first_trials(story)
    choices = story.asked.engines if story.asked else ()
    for choice in choices:
        facts = first[choice.label].facts if choice.label in first else {}
        name = _named(choice, first)
        label = f"{choice.label}: " if choice.label != choice.name else ""
        plain = {k: v for k, v in facts.items() if k not in _TOLD_ELSEWHERE}
        more = [f"{key} {value}" for key, value in plain.items() if _is_plain(value)]
        yield "engine", ", ".join([f"{label}{name}", *more])


def _is_plain(value: object) -> bool:
    """Short enough for the headline; the rest is in the list of settings."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool) and 0 < len(str(value)) <= 40


def _placement(story: Story) -> str:
    """The sentences of all trials; usually one."""
    said = [str(t.facts["placement"]) for t in story.trials if t.facts.get("placement")]
    if said:
        return "; ".join(dict.fromkeys(said))
    return (
        "none: simulated run, no process was started" if story.trials and all(t.virtual for t in story.trials) else ""
    )


def transport(story: Story) -> str:
    """Over what events and outputs travelled, where that was Kafka, and how far its clock may be from ours."""
    said = [t.facts["kafka"] for t in story.trials if isinstance(t.facts.get("kafka"), Mapping)]
    if not said:
        return ""
    first = said[0]
    brokers = f", {_count(first['brokers'], 'local broker')}" if "brokers" in first else f" at {first['cluster']}"
    copies = _count(first["replication"], "copy").replace("copys", "copies")
    name = f"Kafka {first.get('version', '')}".strip()
    way = f"{name}{brokers}, {first['format']} records, {copies}, acks {first['acks']}"
    return "; ".join(part for part in (way, _busy(story), _clocks(said)) if part)


def resolution(trials: Sequence[Judged]) -> str:
    """How fine latencies are, and what the queue is where events travel over Kafka; nothing in simulated time."""
    intervals = {t.facts["send_interval_ns"] for t in trials if t.facts.get("send_interval_ns")}
    if not intervals:
        return ""
    most = max(intervals)
    said = [
        f"the generator sends every {format_duration(most)}, so event-time latencies include up to "
        f"{format_duration(most)} of waiting to be sent, {format_duration(most / 2)} on average"
    ]
    late = [t.measurement.append_delay_p99 for t in trials if t.measurement.append_delay_p99]
    if late:
        said.append(f"the broker had appended 99 % of the events of every trial within {format_duration(max(late))}")
    said += [f"queue: {what}" for what in dict.fromkeys(t.facts["queue_is"] for t in trials if "queue_is" in t.facts)]
    return "; ".join(said)


def _busy(story: Story) -> str:
    """What brokers of ours used at most, in the mean of a trial."""
    known = [t.facts["broker_use"] for t in story.trials if isinstance(t.facts.get("broker_use"), Mapping)]
    if not known:
        return ""
    cores, written, read = (max(use[name] for use in known) for name in ("cores", "written_per_s", "read_per_s"))
    disk = f"{format_size(written)}/s written to disk, {format_size(read)}/s read from it"
    return f"the brokers used up to {cores:.0%} of a core in a trial, {disk}"


def _clocks(said: list[Mapping[str, Any]]) -> str:
    """The widest of the bounds that the trials found."""
    known = [kafka["clock"] for kafka in said if isinstance(kafka.get("clock"), Mapping)]
    if not known:
        return ""
    most = max(abs(clock["offset_ms"]) + clock["within_ms"] for clock in known)
    return f"clocks of generator and broker agree within ±{most:.3g} ms"


def _machine(environment: Mapping[str, Any]) -> Iterator[Pair]:
    cpu, memory = _part(environment, "cpu"), _part(environment, "memory")
    cores = len(cpu.get("usable") or ()) or cpu.get("logical")
    group = _part(environment, "cgroup")
    words = [
        str(cpu.get("model") or cpu.get("architecture") or ""),
        f"{cores} cores" if cores else "",
        "virtual machine" if cpu.get("hypervisor") else "",
        f"{format_size(memory['total_bytes'])} of memory" if memory.get("total_bytes") else "",
        f"limited to {group['cpus']:g} CPUs" if group.get("cpus") else "",
        f"limited to {format_size(group['memory_bytes'])}" if group.get("memory_bytes") else "",
        f"governor {cpu['governor']}" if cpu.get("governor") else "",
    ]
    yield "machine", ", ".join(word for word in words if word)


def _software(story: Story) -> Iterator[Pair]:
    environment = story.environment
    system, java = _part(environment, "system"), _part(environment, "java")
    python, packages = _part(environment, "python"), _part(environment, "packages")
    words = [
        str(system.get("distribution") or ""),
        str(system.get("kernel") or ""),
        f"Java {java['version']}" if java.get("version") else "",
        f"Python {python['version']}" if python.get("version") else "",
        f"PySpark {packages['pyspark']}" if packages.get("pyspark") else "",
        f"clock {environment['clock_source']}" if environment.get("clock_source") else "",
    ]
    yield "software", ", ".join(word for word in words if word)


def _part(environment: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of the environment; one that an older version did not store, or stored as None, is empty."""
    found = environment.get(name)
    return found if isinstance(found, Mapping) else {}


def _flat(value: object, name: str = "") -> Iterator[Pair]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        yield name, _cut(", ".join(str(inner) for inner in value))
    else:
        yield name, _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
