"""Reads ``find`` with its dimension, and ``instances``."""

from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from streamgauge.model.experiment import LOAD, Dimension, Goal, Span, WorkloadChoice
from streamgauge.parse.fields import write_quantity, write_values
from streamgauge.parse.load import check_span, read_list, read_span, span_of
from streamgauge.parse.problems import Problems, printable
from streamgauge.parse.yaml_tree import Leaf, Node, Table
from streamgauge.workloads.contract import Workload
from streamgauge.workloads.registry import workloads

GOALS: tuple[Goal, ...] = get_args(Goal)
_EXAMPLE = "find: {extreme: slide, values: [1s, 500ms]}"
MAX_INSTANCES = 100_000


@dataclass(frozen=True, slots=True)
class ParsedGoal:
    """What the experiment finds; for ``extreme`` with its dimension and the values to test."""

    kind: Goal
    dimension: Dimension = LOAD
    span: Span = Span()
    stages: tuple[str, ...] = ()
    """The names of the stages that are measured."""

    @property
    def of_parameter(self) -> bool:
        """Whether the values are those of a parameter of the workload, at a fixed load."""
        return self.dimension != LOAD


def read_goal(
    node: Node, workload: tuple[WorkloadChoice, Workload[Any]] | None, problems: Problems
) -> ParsedGoal | None:
    """The ``find`` of a file; None if there are problems."""
    if isinstance(node, Table):
        return _read_extreme(node, workload, problems)
    value = node.value if isinstance(node, Leaf) else None
    if value == "extreme":
        problems.add(node.location, "find", f"extreme needs a parameter and its values, for example {_EXAMPLE}")
        return None
    if value == "stages":
        return _stages(node, workload, problems)
    for goal in GOALS:
        if goal == value:
            return ParsedGoal(goal)
    problems.add(node.location, "find", f"unknown value {printable(value)}", GOALS, str(value))
    return None


def _stages(node: Node, workload: tuple[WorkloadChoice, Workload[Any]] | None, problems: Problems) -> ParsedGoal | None:
    """All stages of the workload, from the first to the last."""
    if workload is None:  # its problems are already reported
        return None
    _, kind = workload
    stages = kind.stages
    if stages is None:
        having = [name for name, other in workloads().items() if other.stages]
        message = f"{kind.name} has no stages that can be measured one after the other"
        problems.add(node.location, "find", f"{message}; the workload {' or '.join(having)} has")
        return None
    dimension = Dimension(stages.parameter, "count", "higher", "the last stage of the pipeline")
    return ParsedGoal("stages", dimension, Span(values=tuple(map(float, range(len(stages.names))))), stages.names)


def _read_extreme(
    table: Table, workload: tuple[WorkloadChoice, Workload[Any]] | None, problems: Problems
) -> ParsedGoal | None:
    entry = table.entries.get("extreme")
    if entry is None:
        problems.add(table.location, "find", f"a mapping needs the key extreme, for example {_EXAMPLE}", GOALS)
        return None
    if workload is None:  # its problems are already reported; without it the unit is unknown
        return None
    choice, kind = workload
    name = entry.node.value if isinstance(entry.node, Leaf) else None
    dimension = next((d for d in kind.dimensions if d.name == name), None)
    if dimension is None:
        message = f"{kind.name} has no parameter {printable(name)} that can be searched"
        if name in ("load", "instances"):
            message += f"; use find: {'sustainable-throughput' if name == 'load' else 'demand'}"
        problems.add(entry.node.location, "find.extreme", message, [d.name for d in kind.dimensions], str(name))
        return None
    span = read_span(table, "find", dimension.unit, problems, other_keys=("extreme",))
    if span is None:
        return None
    goal = ParsedGoal("extreme", dimension, span)
    return goal if _check_span_values(table, goal, choice, kind, problems) else None


def _check_span_values(
    table: Table, goal: ParsedGoal, choice: WorkloadChoice, kind: Workload[Any], problems: Problems
) -> bool:
    """Whether every value of the span is valid for the workload."""
    before = len(problems)
    span, dimension = goal.span, goal.dimension
    name = "between" if span.between else "values"
    for value in span.between or span.values:
        written = write_quantity(value, dimension.unit)
        try:
            kind.params.model_validate(write_values(kind.params, choice.params) | {dimension.name: written})
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
            reason = str((detail.get("ctx") or {}).get("sentence", detail["msg"])).replace("Input should", "it should")
            message = f"{dimension.name} cannot be {written}: {reason}"
            problems.add(table.entries[name].node.location, f"find.{name}", message)
    return len(problems) == before


def read_instances(node: Node, problems: Problems) -> Span | None:
    """``instances: 4``, ``[1, 2, 4]`` or ``{between: [1, 16]}``; None if there are problems."""
    before = len(problems)
    span: Span | None
    if isinstance(node, Table):
        span = read_span(node, "instances", "count", problems)
    else:
        values = read_list(node, "instances", "count", problems)
        for _, sentence in check_span(None, values):
            problems.add(node.location, "instances", sentence)
        span = span_of(None, values)
    if span is not None and any(value > MAX_INSTANCES for value in span.between or span.values):
        problems.add(node.location, "instances", f"more than {MAX_INSTANCES:,} instances are not supported")
    return span if len(problems) == before else None
