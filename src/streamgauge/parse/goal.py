"""What a file wants to find: ``find`` with its dimension, and the instances that go with it."""

from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from streamgauge.model.experiment import LOAD, Dimension, Span, What, WorkloadChoice
from streamgauge.parse.fields import spell, spelled
from streamgauge.parse.load import check_span, read_list, read_span, span_of
from streamgauge.parse.problems import Problems, shown
from streamgauge.parse.yaml_tree import Leaf, Node, Table
from streamgauge.workloads.contract import Workload

WHATS: tuple[What, ...] = get_args(What)
_EXAMPLE = "find: {extreme: slide, values: [1s, 500ms]}"
MOST_INSTANCES = 100_000


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be found; for an extreme also of which dimension and in which values."""

    what: What
    dimension: Dimension = LOAD
    span: Span = Span()


def read_question(
    node: Node, workload: tuple[WorkloadChoice, Workload[Any]] | None, problems: Problems
) -> Question | None:
    """The ``find`` of a file, or None with the problems noted."""
    if isinstance(node, Table):
        return _read_extreme(node, workload, problems)
    value = node.value if isinstance(node, Leaf) else None
    if value == "extreme":
        problems.add(node.mark, "find", f"extreme needs a parameter and its values, for example {_EXAMPLE}")
        return None
    for what in WHATS:
        if what == value:
            return Question(what)
    problems.add(node.mark, "find", f"unknown value {shown(value)}", WHATS, str(value))
    return None


def _read_extreme(
    table: Table, workload: tuple[WorkloadChoice, Workload[Any]] | None, problems: Problems
) -> Question | None:
    entry = table.entries.get("extreme")
    if entry is None:
        problems.add(table.mark, "find", f"a mapping needs the key extreme, for example {_EXAMPLE}", WHATS)
        return None
    if workload is None:  # its own problems are noted; without it no unit is known
        return None
    choice, kind = workload
    name = entry.node.value if isinstance(entry.node, Leaf) else None
    dimension = next((d for d in kind.dimensions if d.name == name), None)
    if dimension is None:
        message = f"{kind.name} has no parameter {shown(name)} that can be searched"
        if name in ("load", "instances"):
            message += f"; use find: {'sustainable-throughput' if name == 'load' else 'demand'}"
        problems.add(entry.node.mark, "find.extreme", message, [d.name for d in kind.dimensions], str(name))
        return None
    span = read_span(table, "find", dimension.unit, problems, besides=("extreme",))
    if span is None:
        return None
    question = Question("extreme", dimension, span)
    return question if _possible(table, question, choice, kind, problems) else None


def _possible(
    table: Table, question: Question, choice: WorkloadChoice, kind: Workload[Any], problems: Problems
) -> bool:
    """Whether the workload can be had with every value of the span."""
    before = len(problems)
    span, dimension = question.span, question.dimension
    name = "between" if span.between else "values"
    for value in span.between or span.values:
        written = spell(value, dimension.unit)
        try:
            kind.params.model_validate(spelled(kind.params, choice.params) | {dimension.name: written})
        except ValidationError as error:
            detail = error.errors(include_url=False)[0]
            reason = str((detail.get("ctx") or {}).get("sentence", detail["msg"])).replace("Input should", "it should")
            message = f"{dimension.name} cannot be {written}: {reason}"
            problems.add(table.entries[name].node.mark, f"find.{name}", message)
    return len(problems) == before


def read_instances(node: Node, problems: Problems) -> Span | None:
    """``instances: 4``, ``[1, 2, 4]`` or ``{between: [1, 16]}``, or None with the problems noted."""
    before = len(problems)
    span: Span | None
    if isinstance(node, Table):
        span = read_span(node, "instances", "count", problems)
    else:
        values = read_list(node, "instances", "count", problems)
        for _, sentence in check_span(None, values):
            problems.add(node.mark, "instances", sentence)
        span = span_of(None, values)
    if span is not None and any(value > MOST_INSTANCES for value in span.between or span.values):
        problems.add(node.mark, "instances", f"more than {MOST_INSTANCES:,} instances are not supported")
    return span if len(problems) == before else None
