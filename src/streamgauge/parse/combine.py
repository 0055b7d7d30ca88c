"""The parts of a file together: what one of them makes impossible in another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.engines.contract import Conditions, conditions, scales, transports, unsuited
from streamgauge.engines.registry import engines
from streamgauge.model.experiment import Experiment, SearchPlan, Span, TransportChoice, TrialPlan, WorkloadChoice
from streamgauge.model.objective import Objective
from streamgauge.model.profile import LoadProfile, constant
from streamgauge.model.units import format_rate
from streamgauge.parse.choices import ChosenEngine, named
from streamgauge.parse.fields import fits
from streamgauge.parse.goal import Question
from streamgauge.parse.lengths import check_lengths
from streamgauge.parse.load import Load
from streamgauge.parse.problems import Mark, Problems, shown
from streamgauge.parse.sections import MOST_RATE, Section
from streamgauge.parse.yaml_tree import Node, Table
from streamgauge.transports.kafka.options import PARTITION_SKEW_NS, KafkaOptions
from streamgauge.workloads.contract import Workload

TRANSPORTS: dict[str, type[KafkaOptions | Section]] = {"queue": Section, "kafka": KafkaOptions}
"""By name, what may be said of each. The queue has no options."""
SUMMARIES = {
    "queue": "a queue in the memory of the load driver",
    "kafka": "Kafka topics between load generator and system under test, and for its outputs",
}


def read_transport(node: Node | None, problems: Problems) -> TransportChoice | None:
    """The transport with its options resolved, or None with the problems noted."""
    if node is None:
        return TransportChoice()
    found = named(node, "transport", problems)
    if found is None:
        return None
    name, mark, table = found
    if name not in TRANSPORTS:
        problems.add(mark, "transport.name", f"unknown transport {shown(name)}", TRANSPORTS, name)
        return None
    options = fits(TRANSPORTS[name], table, "transport", problems, noun="option", besides=("name",))
    if not isinstance(options, KafkaOptions):
        return TransportChoice() if options is not None else None
    return TransportChoice("kafka", options.dumped())


def check_conditions(
    conditions: Conditions | None, engines: Sequence[ChosenEngine], root: Table, problems: Problems
) -> None:
    """Whether every engine of the file can take its events from there, and do what is asked of it with them."""
    if conditions is None:
        return
    choice = conditions.transport
    for chosen in engines:
        can = transports(chosen.engine)
        if choice.name not in can and "transport" in root.entries:
            message = f"engine {chosen.choice.name} does not support transport {choice.name}"
            problems.add(root.entries["transport"].node.mark, "transport", message, sorted(can))
        for sentence in unsuited(chosen.engine, chosen.choice.options, conditions):
            problems.add(chosen.table.mark, chosen.key, sentence)


@dataclass(frozen=True, slots=True)
class Draft:
    """A file read part by part; None where a part is missing or wrong."""

    name: str
    description: str
    workload: tuple[WorkloadChoice, Workload[Any]] | None
    engines: list[ChosenEngine]
    question: Question | None
    load: Load | None
    instances: Span | None
    objectives: tuple[Objective, ...]
    search: SearchPlan
    trial: TrialPlan | None
    seed: int
    transport: TransportChoice | None


def combine(draft: Draft, root: Table, problems: Problems) -> Experiment | None:
    """The whole experiment, or None with what is impossible noted."""
    if draft.workload is not None:
        _check_engines(draft.engines, draft.workload[1], problems)
    check_conditions(_conditions(draft), draft.engines, root, problems)
    if draft.question is None:
        return None
    _check_load(draft, draft.question, root, problems)
    _check_instances(draft, draft.question, root, problems)
    _check_search(draft.question, root, problems)
    _check_lengths(draft, root, problems)
    if problems or draft.workload is None or draft.trial is None or draft.transport is None:
        return None
    question = draft.question
    return Experiment(
        name=draft.name,
        workload=_workload(draft.workload[0], draft.transport, root),
        engines=tuple(chosen.choice for chosen in draft.engines),
        what=question.what,
        objectives=draft.objectives,
        dimension=question.dimension,
        span=question.span if question.what == "extreme" or draft.load is None else draft.load.span,
        instances=draft.instances or Span(values=(1.0,)),
        profile=_profile(draft, draft.workload, question),
        search=draft.search,
        trial=draft.trial,
        seed=draft.seed,
        description=draft.description,
        transport=draft.transport,
    )


def _workload(choice: WorkloadChoice, transport: TransportChoice, root: Table) -> WorkloadChoice:
    """The workload; over Kafka its windows wait for the slowest partition, unless the file says how long."""
    node = root.entries["workload"].node
    said = isinstance(node, Table) and "watermark" in node.entries
    if transport.name != "kafka" or said or "watermark" not in choice.params:
        return choice
    return replace(choice, params={**choice.params, "watermark": PARTITION_SKEW_NS})


def _check_lengths(draft: Draft, root: Table, problems: Problems) -> None:
    if draft.workload is None or draft.trial is None or draft.transport is None:
        return
    choice = _workload(draft.workload[0], draft.transport, root)
    asked = _conditions(replace(draft, workload=(choice, draft.workload[1])))
    if asked is not None:
        kind, objectives = draft.workload[1], draft.objectives
        check_lengths(draft.trial, asked, kind, draft.engines, objectives, root=root, problems=problems)


def _conditions(draft: Draft) -> Conditions | None:
    """What is asked of every engine; None where a part of it is missing or wrong."""
    if draft.transport is None:
        return None
    partitions = draft.trial.partitions if draft.trial is not None else 0
    if draft.workload is None:
        return Conditions(draft.transport, partitions=partitions)
    question = draft.question
    searched = (question.dimension, question.span) if question and question.what == "extreme" else None
    return conditions(draft.transport, draft.workload[0], partitions, searched)


def _profile(draft: Draft, workload: tuple[WorkloadChoice, Workload[Any]], question: Question) -> LoadProfile | None:
    """The load of a plain measurement may follow from the workload; that of an extreme follows at each value."""
    if draft.load is not None:
        return draft.load.profile
    rate = _rate(workload[1], workload[0].params)
    return constant(rate) if question.what == "nothing" and rate is not None else None


def _place(root: Table, name: str) -> Mark:
    return root.entries[name].node.mark if name in root.entries else root.mark


def _check_engines(engines: list[ChosenEngine], workload: Workload[Any], problems: Problems) -> None:
    for chosen in engines:
        can = chosen.engine.workloads
        if can is not None and workload.name not in can:
            message = f"{chosen.choice.name} does not implement the workload {workload.name}"
            problems.add(chosen.table.mark, chosen.key, message, sorted(can))


def _check_load(draft: Draft, question: Question, root: Table, problems: Problems) -> None:
    what, load = question.what, draft.load
    if "load" in root.entries and load is None:
        return  # its own problems are noted
    mark = _place(root, "load")
    if what in ("sustainable-throughput", "demand", "capacity"):
        if load is None or not load.searched:
            problems.add(mark, "load", f"find: {what} needs several loads; set load.between or load.values")
    elif load is not None and load.searched:
        if what == "extreme":
            problems.add(
                mark,
                "load",
                "find: extreme needs a fixed load; use load.rate or a profile instead of between or values",
            )
        elif load.span.between is not None:
            problems.add(mark, "load", "find: nothing does not search a range; use load.rate, load.values or a profile")
    elif draft.workload is not None:
        _check_fixed_load(draft.workload, load, question, mark, problems)


def _check_fixed_load(
    workload: tuple[WorkloadChoice, Workload[Any]],
    load: Load | None,
    question: Question,
    mark: Mark,
    problems: Problems,
) -> None:
    choice, kind = workload
    ends = question.span.between or question.span.values
    cases = [choice.params | {question.dimension.name: _whole(end, question)} for end in ends] or [choice.params]
    rates = [_rate(kind, params) for params in cases]
    if load is None:
        if None in rates:
            problems.add(mark, "load", f"is missing, and {kind.name} implies no load; set load.rate, for example 50k/s")
        elif max(rate or 0.0 for rate in rates) > MOST_RATE:
            message = f"its parameters imply more than {format_rate(MOST_RATE)}, which streamgauge cannot generate"
            problems.add(mark, "workload", message)
    elif _rate(kind, choice.params) is not None and question.what == "extreme" and _moves(kind, choice, question):
        message = f"the load follows from {question.dimension.name}, which is searched; remove load"
        problems.add(mark, "load", message)


def _rate(kind: Workload[Any], params: dict[str, Any]) -> float | None:
    """Events per second that resolved parameters imply; None: the load is free."""
    return kind.rate(kind.params.from_resolved(params))


def _whole(value: float, question: Question) -> float | int:
    return int(value) if question.dimension.unit in ("count", "duration") else value


def _moves(kind: Workload[Any], choice: WorkloadChoice, question: Question) -> bool:
    """Whether the searched dimension changes the load that the workload implies."""
    name = question.dimension.name
    base = choice.params.get(name)
    return base is not None and _rate(kind, choice.params | {name: base + 1}) != _rate(kind, choice.params)


def _check_instances(draft: Draft, question: Question, root: Table, problems: Problems) -> None:
    what, span = question.what, draft.instances
    mark = _place(root, "instances")
    if "instances" in root.entries and span is None:
        return  # its own problems are noted
    if what in ("demand", "capacity"):
        if span is None:
            problems.add(mark, "instances", f"find: {what} needs instances, for example instances: [1, 2, 4]")
    elif what != "nothing" and span is not None and len(span.values) != 1:
        message = f"find: {what} takes one number; use find: demand or find: capacity to compare several"
        problems.add(mark, "instances", message)
    for chosen in draft.engines:
        entry = chosen.table.entries.get("instances")
        if span is not None and entry is not None and "instances" in chosen.choice.options:
            message = "instances is also set for all engines; remove one of the two"
            problems.add(entry.mark, f"{chosen.key}.instances", message)
        if span is not None and _most(span) > 1 and not scales(chosen.engine):
            message = (
                f"engine {chosen.choice.name} always runs as one instance, so several cannot be compared. "
                "Remove instances, or use an engine that scales: " + ", ".join(_scaling())
            )
            problems.add(mark, "instances", message)


def _most(span: Span) -> float:
    return max(span.between or span.values)


def _scaling() -> list[str]:
    """Names of the engines that can be deployed on several instances."""
    return sorted(name for name, engine in engines().items() if scales(engine))


def _check_search(question: Question, root: Table, problems: Problems) -> None:
    entry = root.entries.get("search")
    if entry is None:
        return
    if question.what == "nothing":
        message = "has no effect with find: nothing, which measures fixed loads; remove search, or change find"
        problems.add(entry.mark, "search", message)
    elif isinstance(entry.node, Table):
        for key, what in (("lower_bound", "demand"), ("also", "sustainable-throughput")):
            if key in entry.node.entries and question.what != what:
                message = f"is only available with find: {what}; this experiment has find: {question.what}"
                problems.add(entry.node.entries[key].mark, f"search.{key}", message)
