"""What it was measured on: machine, placement, engine, settings; all from what the run has stored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from streamgauge.model.experiment import EngineChoice, Experiment
from streamgauge.model.facts import BROKER, ClockDifference, TransportFacts, TrialFacts, WarmUp
from streamgauge.model.layout import placement_text
from streamgauge.model.units import duration_text, format_duration, format_rate, format_size
from streamgauge.report.view.run_report import JudgedTrial, RunReport

Pair = tuple[str, str]

_SHOWN_ELSEWHERE = {"cores", "java", "python"}
"""Settings of engines that are part of the lines on CPU pinning and software."""
_DURATIONS = ("window", "slide", "watermark")
_LONGEST = 300


def measured_on(report: RunReport) -> tuple[Pair, ...]:
    """Label and text, the most important first."""
    return tuple(
        (label, text)
        for label, text in (
            *_question(report.asked),
            *_engines(report),
            ("CPU pinning", _placement(report)),
            ("transport", transport(report)),
            ("resolution", resolution(report.trials)),
            *_machine(report.environment),
            *_software(report),
        )
        if text
    )


_QUESTIONS = {
    "sustainable-throughput": "Sustainable throughput, events/s",
    "demand": "Fewest instances for a load",
    "capacity": "Highest load by instances, events/s",
    "extreme": "Hardest value that passes",
    "stages": "Latency of each stage of the pipeline",
    "nothing": "Fixed-load measurement",
}


def subject(report: RunReport) -> str:
    """The question and the engines, as one line for readers who have only the page."""
    if report.asked is None:
        return ""
    first = _first_trials(report)
    engines = [f"{_named(choice, first)}{_cores(first.get(choice.label))}" for choice in report.asked.engines]
    return " · ".join([_QUESTIONS[report.asked.what], report.asked.workload.name, *engines])


def _named(choice: EngineChoice, first: Mapping[str, JudgedTrial]) -> str:
    version = first[choice.label].facts.engine.version if choice.label in first else ""
    return f"{choice.name} {version}".strip()


def _cores(judged: JudgedTrial | None) -> str:
    if judged is None or judged.virtual or not judged.cores:
        return ""
    return f" on {_count(judged.cores, 'core')}"


def settings(report: RunReport) -> tuple[tuple[str, tuple[Pair, ...]], ...]:
    """How each engine was run and what it reported about itself, flat, from its first finished trial."""
    listed = {label: _listed(t.facts, report.options.get(label)) for label, t in _first_trials(report).items()}
    return tuple((label, tuple(_flat(facts))) for label, facts in listed.items())


def _listed(facts: TrialFacts, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Everything that is constant during a trial, without what is not known; ``options`` as they are written."""
    engine, way = facts.engine, facts.transport
    listed = {
        "placement": facts.placement,
        "driver_cores": facts.driver_cores,
        "sut_cores": facts.sut_cores,
        "transport": {"name": way.name, **way.settings, "clock": _clock(way.clock)} if way else {},
        "engine": engine.name,
        "version": engine.version,
        "simulated": engine.simulated,
        "options": engine.options and (options or engine.options),
        "outputs": dict(engine.outputs or ()),
        "warm_up": {
            name: value for name, value in asdict(facts.warm_up or WarmUp()).items() if value not in (None, ())
        },
        "describe_failed": engine.describe_failed,
        "probe_failed": facts.probe_failed,
    }
    return {name: value for name, value in listed.items() if value} | dict(engine.settings)


def _clock(difference: ClockDifference | None) -> dict[str, float]:
    return asdict(difference) if difference else {}


def _first_trials(report: RunReport) -> dict[str, JudgedTrial]:
    first: dict[str, JudgedTrial] = {}
    for judged in report.trials:
        if judged.facts != TrialFacts():
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
    warm = "automatic" if t.warmup is None else duration_text(t.warmup)
    parts = f"{t.partitions} partitions" if t.partitions else "one partition per core"
    yield (
        "trials",
        f"full length {duration_text(t.duration)}, warm-up {warm}, {parts}, {_count(t.drivers, 'load driver')}, "
        f"seed {asked.seed}",
    )
    if asked.ceiling is not None:
        over = f" over {asked.transport.name}" if asked.transport.broker else ""
        yield "load driver", f"maximum reliable load{over}: {format_rate(asked.ceiling)} on this machine"


def _param(key: str, value: object) -> str:
    return format_duration(value) if key in _DURATIONS and isinstance(value, int) else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _engines(report: RunReport) -> Iterator[Pair]:
    first = _first_trials(report)
    choices = report.asked.engines if report.asked else ()
    for choice in choices:
        name = _named(choice, first)
        label = f"{choice.label}: " if choice.label != choice.name else ""
        own = first[choice.label].facts.engine.settings if choice.label in first else {}
        more = [f"{key} {value}" for key, value in own.items() if key not in _SHOWN_ELSEWHERE and _is_plain(value)]
        yield "engine", ", ".join([f"{label}{name}", *more])


def _is_plain(value: object) -> bool:
    """Short enough for the headline; the rest is in the list of settings."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool) and 0 < len(str(value)) <= 40


def _placement(report: RunReport) -> str:
    """The sentences of all trials; usually one."""
    said = [t.facts.placement for t in report.trials if t.facts.placement]
    if said:
        return "; ".join(placement_text(each) for each in dict.fromkeys(said))
    return (
        "none: simulated run, no process was started" if report.trials and all(t.virtual for t in report.trials) else ""
    )


def transport(report: RunReport) -> str:
    """How events and outputs were transported, what brokers used, and how far their clock may be from the generator's.

    Empty for the queue, which is part of the load driver.
    """
    said = [t.facts.transport for t in report.trials if t.facts.transport]
    return "; ".join(part for part in (said[0].sentence, _busy(report), _clocks(said)) if part) if said else ""


def resolution(trials: Sequence[JudgedTrial]) -> str:
    """How fine latencies are, and what the queue is if it is in a broker; empty in simulated time."""
    most = max((t.facts.send_interval_ns for t in trials), default=0)
    if not most:
        return ""
    said = [
        f"the generator sends every {duration_text(most)}, so event-time latencies include up to "
        f"{duration_text(most)} of waiting to be sent, {duration_text(most / 2)} on average"
    ]
    late = [t.measurement.append_delay_p99 for t in trials if t.measurement.append_delay_p99]
    if late:
        said.append(f"the broker had appended 99 % of the events of every trial within {duration_text(max(late))}")
    queues = dict.fromkeys(t.facts.engine.queue for t in trials if t.facts.engine.queue)
    said += [f"queue: {meaning}" for meaning in queues]
    return "; ".join(said)


def _busy(report: RunReport) -> str:
    """What local brokers used at most, in the mean of a trial."""
    known = [t.facts.roles[BROKER] for t in report.trials if BROKER in t.facts.roles]
    if not known:
        return ""
    cores, read = max(use.cores for use in known), max(use.read_per_s for use in known)
    written = max(use.written_per_s for use in known)
    disk = f"{format_size(written)}/s written to disk, {format_size(read)}/s read from it"
    return f"the brokers used up to {cores * 100:.0f} % of a core in a trial, {disk}"


def _clocks(said: Sequence[TransportFacts]) -> str:
    """The widest of the bounds that the trials found."""
    known = [way.clock for way in said if way.clock]
    if not known:
        return ""
    most = max(abs(clock.offset_ms) + clock.within_ms for clock in known)
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


def _software(report: RunReport) -> Iterator[Pair]:
    environment = report.environment
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
