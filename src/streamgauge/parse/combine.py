"""Combines the parts of a file into an experiment, and checks that they fit together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.engines.contract import scales
from streamgauge.engines.registry import engines
from streamgauge.engines.table import Request, unsupported, workloads_of
from streamgauge.model.experiment import Experiment, SearchPlan, Span, TransportChoice, TrialPlan, WorkloadChoice
from streamgauge.model.objective import Objective
from streamgauge.model.options import Options
from streamgauge.model.profile import LoadProfile, constant
from streamgauge.model.units import format_rate
from streamgauge.parse.choices import ChosenEngine, name_and_table
from streamgauge.parse.fields import validate
from streamgauge.parse.goal import ParsedGoal
from streamgauge.parse.lengths import check_lengths
from streamgauge.parse.load import ParsedLoad
from streamgauge.parse.problems import Location, Problems, printable
from streamgauge.parse.sections import MAX_RATE
from streamgauge.parse.yaml_tree import Node, Table
from streamgauge.transports.registry import choice_of, load_problems, transports
from streamgauge.workloads.contract import Workload


def transport_options() -> dict[str, type[Options]]:
    """The options of every transport, by its name."""
    return {name: transport.options for name, transport in transports().items()}


def read_transport(node: Node | None, problems: Problems) -> TransportChoice | None:
    """The transport with its options resolved; None if there are problems."""
    if node is None:
        return TransportChoice()
    found = name_and_table(node, "transport", problems)
    if found is None:
        return None
    name, location, table = found
    known = transport_options()
    if name not in known:
        unknown = f"unknown transport {printable(name)}"
        problem = next((each for each in load_problems() if each.startswith(f"transport {name} of ")), unknown)
        problems.add(location, "transport.name", problem, known, name)
        return None
    options = validate(known[name], table, "transport", problems, noun="option", other_keys=("name",))
    return choice_of(transports()[name], options) if options is not None else None


def check_compatibility(
    wanted: Request | None, engines: Sequence[ChosenEngine], root: Table, problems: Problems
) -> None:
    """Whether every engine of the file supports the transport, the workload and its own options together."""
    if wanted is None:
        return
    for chosen in engines:
        _check_transport(wanted, chosen, root, problems)
        for sentence in chosen.engine.check(wanted.situation(chosen.engine, chosen.choice.options)):
            problems.add(chosen.table.location, chosen.key, sentence)


def _check_transport(wanted: Request, chosen: ChosenEngine, root: Table, problems: Problems) -> None:
    """Whether the engine runs the workload over the transport, even if that is the default and not in the file."""
    found = unsupported(chosen.engine, wanted.workload.name if wanted.workload else "", wanted.transport.name)
    if found is None:
        return
    if "transport" in root.entries:
        problems.add(root.entries["transport"].node.location, "transport", found.sentence, found.allowed)
    elif found.allowed:  # an engine without any job is refused with its workload
        message = f"{found.sentence}, which is the default; set transport: {' or '.join(found.allowed)}"
        problems.add(chosen.table.location, chosen.key, message)


@dataclass(frozen=True, slots=True)
class Draft:
    """The parts of a file; None if a part is missing or wrong."""

    name: str
    description: str
    workload: tuple[WorkloadChoice, Workload[Any]] | None
    engines: list[ChosenEngine]
    goal: ParsedGoal | None
    load: ParsedLoad | None
    instances: Span | None
    objectives: tuple[Objective, ...]
    search: SearchPlan
    trial: TrialPlan | None
    seed: int
    transport: TransportChoice | None


def combine(draft: Draft, root: Table, problems: Problems) -> Experiment | None:
    """The experiment; None if there are problems."""
    if draft.workload is not None:
        _check_engines(draft.engines, draft.workload[1], problems)
    check_compatibility(_wanted(draft), draft.engines, root, problems)
    if draft.goal is None:
        return None
    _check_load(draft, draft.goal, root, problems)
    _check_instances(draft, draft.goal, root, problems)
    _check_search(draft.goal, root, problems)
    _check_stage(draft.goal, root, problems)
    _check_lengths(draft, root, problems)
    if problems or draft.workload is None or draft.trial is None or draft.transport is None:
        return None
    goal = draft.goal
    return Experiment(
        name=draft.name,
        workload=_workload(draft.workload[0], draft.transport, root),
        engines=tuple(chosen.choice for chosen in draft.engines),
        what=goal.kind,
        objectives=draft.objectives,
        dimension=goal.dimension,
        span=goal.span if goal.of_parameter or draft.load is None else draft.load.span,
        instances=draft.instances or Span(values=(1.0,)),
        profile=_profile(draft, draft.workload, goal),
        search=draft.search,
        trial=draft.trial,
        seed=draft.seed,
        description=draft.description,
        transport=draft.transport,
        stages=goal.stages,
    )


def _workload(choice: WorkloadChoice, transport: TransportChoice, root: Table) -> WorkloadChoice:
    """The workload. Its windows wait as long as the transport requires, unless the file sets a watermark."""
    node = root.entries["workload"].node
    is_given = isinstance(node, Table) and "watermark" in node.entries
    allowance = transports()[transport.name].allowance_ns
    if not allowance or is_given or "watermark" not in choice.params:
        return choice
    return replace(choice, params={**choice.params, "watermark": allowance})


def _check_lengths(draft: Draft, root: Table, problems: Problems) -> None:
    if draft.workload is None or draft.trial is None or draft.transport is None:
        return
    choice = _workload(draft.workload[0], draft.transport, root)
    wanted = _wanted(replace(draft, workload=(choice, draft.workload[1])))
    if wanted is not None:
        kind, objectives = draft.workload[1], draft.objectives
        check_lengths(draft.trial, wanted.cases(), kind, draft.engines, objectives, root=root, problems=problems)


def _wanted(draft: Draft) -> Request | None:
    """What is wanted of every engine; None if the transport is missing or wrong."""
    if draft.transport is None:
        return None
    partitions = draft.trial.partitions if draft.trial is not None else 0
    goal, workload = draft.goal, draft.workload[0] if draft.workload else None
    searched = (goal.dimension, goal.span) if goal and goal.of_parameter and workload else None
    return Request(workload, draft.transport, partitions, searched)


def _profile(draft: Draft, workload: tuple[WorkloadChoice, Workload[Any]], goal: ParsedGoal) -> LoadProfile | None:
    """The load profile; for a fixed-load measurement without one, the load that the workload implies."""
    if draft.load is not None:
        return draft.load.profile
    rate = _rate(workload[1], workload[0].params)
    return constant(rate) if goal.kind in ("stages", "nothing") and rate is not None else None


def _location(root: Table, name: str) -> Location:
    return root.entries[name].node.location if name in root.entries else root.location


def _check_engines(engines: list[ChosenEngine], workload: Workload[Any], problems: Problems) -> None:
    for chosen in engines:
        can = workloads_of(chosen.engine)
        if can is not None and workload.name not in can:
            message = f"{chosen.choice.name} does not implement the workload {workload.name}"
            problems.add(chosen.table.location, chosen.key, message, sorted(can))


def _check_load(draft: Draft, goal: ParsedGoal, root: Table, problems: Problems) -> None:
    what, load = goal.kind, draft.load
    if "load" in root.entries and load is None:
        return  # its problems are already reported
    location = _location(root, "load")
    if what in ("sustainable-throughput", "demand", "capacity"):
        if load is None or not load.searched:
            problems.add(location, "load", f"find: {what} needs several loads; set load.between or load.values")
    elif load is not None and load.searched:
        if goal.of_parameter:
            problems.add(
                location,
                "load",
                f"find: {what} needs a fixed load; use load.rate or a profile instead of between or values",
            )
        elif load.span.between is not None:
            problems.add(
                location, "load", "find: nothing does not search a range; use load.rate, load.values or a profile"
            )
    elif draft.workload is not None:
        _check_fixed_load(draft.workload, load, goal, location, problems)


def _check_fixed_load(
    workload: tuple[WorkloadChoice, Workload[Any]],
    load: ParsedLoad | None,
    goal: ParsedGoal,
    location: Location,
    problems: Problems,
) -> None:
    choice, kind = workload
    ends = goal.span.between or goal.span.values
    cases = [choice.params | {goal.dimension.name: _as_written(end, goal)} for end in ends] or [choice.params]
    rates = [_rate(kind, params) for params in cases]
    if load is None:
        if None in rates:
            problems.add(
                location, "load", f"is missing, and {kind.name} implies no load; set load.rate, for example 50k/s"
            )
        elif max(rate or 0.0 for rate in rates) > MAX_RATE:
            message = f"its parameters imply more than {format_rate(MAX_RATE)}, which streamgauge cannot generate"
            problems.add(location, "workload", message)
    elif _rate(kind, choice.params) is not None and goal.kind == "extreme" and _changes_load(kind, choice, goal):
        message = f"the load follows from {goal.dimension.name}, which is searched; remove load"
        problems.add(location, "load", message)


def _rate(kind: Workload[Any], params: dict[str, Any]) -> float | None:
    """Events per second that resolved parameters imply; None: the load is free."""
    return kind.rate(kind.params.from_resolved(params))


def _as_written(value: float, goal: ParsedGoal) -> float | int:
    return int(value) if goal.dimension.unit in ("count", "duration") else value


def _changes_load(kind: Workload[Any], choice: WorkloadChoice, goal: ParsedGoal) -> bool:
    """Whether the searched dimension changes the load that the workload implies."""
    name = goal.dimension.name
    base = choice.params.get(name)
    return base is not None and _rate(kind, choice.params | {name: base + 1}) != _rate(kind, choice.params)


def _check_instances(draft: Draft, goal: ParsedGoal, root: Table, problems: Problems) -> None:
    what, span = goal.kind, draft.instances
    location = _location(root, "instances")
    if "instances" in root.entries and span is None:
        return  # its problems are already reported
    if what in ("demand", "capacity"):
        if span is None:
            problems.add(location, "instances", f"find: {what} needs instances, for example instances: [1, 2, 4]")
    elif what != "nothing" and span is not None and len(span.values) != 1:
        message = f"find: {what} takes one number; use find: demand or find: capacity to compare several"
        problems.add(location, "instances", message)
    for chosen in draft.engines:
        entry = chosen.table.entries.get("instances")
        if span is not None and entry is not None and "instances" in chosen.choice.options:
            message = "instances is also set for all engines; remove one of the two"
            problems.add(entry.location, f"{chosen.key}.instances", message)
        if span is not None and _max_instances(span) > 1 and not scales(chosen.engine, chosen.options):
            message = (
                f"engine {chosen.choice.name} always runs as one instance, so several cannot be compared. "
                "Remove instances, or use an engine that scales: " + ", ".join(_scaling())
            )
            problems.add(location, "instances", message)


def _max_instances(span: Span) -> float:
    return max(span.between or span.values)


def _scaling() -> list[str]:
    """Names of the engines that can run as several instances."""
    return sorted(name for name, engine in engines().items() if scales(engine, engine.options.from_resolved({})))


def _check_stage(goal: ParsedGoal, root: Table, problems: Problems) -> None:
    """With find: stages, the file must not choose one of them."""
    node = root.entries["workload"].node if "workload" in root.entries else None
    entry = node.entries.get(goal.dimension.name) if goal.stages and isinstance(node, Table) else None
    if entry is not None:
        message = f"find: stages measures every {goal.dimension.name}; remove it, or set find: nothing"
        problems.add(entry.location, f"workload.{goal.dimension.name}", message)


def _check_search(goal: ParsedGoal, root: Table, problems: Problems) -> None:
    entry = root.entries.get("search")
    if entry is None:
        return
    if goal.kind in ("stages", "nothing"):
        message = f"has no effect with find: {goal.kind}, which measures fixed loads; remove search, or change find"
        problems.add(entry.location, "search", message)
    elif isinstance(entry.node, Table):
        for key, what in (("lower_bound", "demand"), ("also", "sustainable-throughput")):
            if key in entry.node.entries and goal.kind != what:
                message = f"is only available with find: {what}; this experiment has find: {goal.kind}"
                problems.add(entry.node.entries[key].location, f"search.{key}", message)
