"""Reads the workload and the engines of a file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.engines.contract import Engine, Options, Traits
from streamgauge.engines.registry import load_problems
from streamgauge.model.experiment import EngineChoice, WorkloadChoice
from streamgauge.parse.fields import validate
from streamgauge.parse.problems import Location, Problems, printable
from streamgauge.parse.yaml_tree import Entry, Items, Leaf, Node, Table
from streamgauge.workloads.contract import Workload

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NAME_RULE = "must have 1 to 64 letters, digits, dots, dashes or underscores, and begin with a letter or a digit"
"""Names of experiments and labels of engines: they become names of folders."""


@dataclass(frozen=True, slots=True)
class ChosenEngine:
    """An engine of the file, with its place in the file."""

    choice: EngineChoice
    engine: Engine
    options: Options
    traits: Traits
    key: str
    table: Table


def name_and_table(node: Node, key: str, problems: Problems) -> tuple[str, Location, Table] | None:
    """``{name: x, …}`` or only ``x``: the name, its location, and the table."""
    if isinstance(node, Leaf) and isinstance(node.value, str):
        return node.value, node.location, Table(node.location)
    if not isinstance(node, Table):
        problems.add(node.location, key, "must be a name, or a mapping with the key name")
        return None
    entry = node.entries.get("name")
    if entry is None:
        problems.add(node.location, f"{key}.name", "is missing")
        return None
    if not isinstance(entry.node, Leaf) or not isinstance(entry.node.value, str):
        problems.add(entry.node.location, f"{key}.name", "must be text")
        return None
    return entry.node.value, entry.node.location, node


def read_workload(
    node: Node, known: Mapping[str, Workload[Any]], problems: Problems
) -> tuple[WorkloadChoice, Workload[Any]] | None:
    """The workload with its parameters resolved; None if there are problems."""
    found = name_and_table(node, "workload", problems)
    if found is None:
        return None
    name, location, table = found
    if name not in known:
        problems.add(location, "workload.name", f"unknown workload {printable(name)}", known, name)
        return None
    workload = known[name]
    params = validate(workload.params, table, "workload", problems, noun="parameter", other_keys=("name",))
    return (WorkloadChoice(name, params.model_dump(mode="json")), workload) if params is not None else None


def read_engines(entries: Mapping[str, Entry], known: Mapping[str, Engine], problems: Problems) -> list[ChosenEngine]:
    """``engine`` or ``engines`` with their options resolved, without those that have problems."""
    if "engines" not in entries:
        chosen = [_read_engine(entries["engine"].node, "engine", known, problems)]
        return [one for one in chosen if one is not None]
    entry = entries["engines"]
    if "engine" in entries:
        problems.add(entry.location, "engines", "engine and engines cannot be combined; remove one of them")
    if not isinstance(entry.node, Items) or not entry.node.items:
        problems.add(entry.node.location, "engines", "must be a list of engines")
        return []
    found: list[ChosenEngine] = []
    for index, node in enumerate(entry.node.items):
        one = _read_engine(node, f"engines[{index}]", known, problems)
        if one is None:
            continue
        if any(one.choice.label == other.choice.label for other in found):
            message = f"another engine already has the label {one.choice.label}; set a different label"
            problems.add(node.location, f"{one.key}.label", message)
        found.append(one)
    return found


def _read_engine(node: Node, key: str, known: Mapping[str, Engine], problems: Problems) -> ChosenEngine | None:
    found = name_and_table(node, key, problems)
    if found is None:
        return None
    name, location, table = found
    if name not in known:
        why = next(
            (problem for problem in load_problems() if problem.startswith(f"engine {name} of ")),
            f"unknown engine {printable(name)}",
        )
        problems.add(location, f"{key}.name", why, known, name)
        return None
    label = _label(table, key, name, problems)
    engine = known[name]
    options = validate(engine.options, table, key, problems, noun="option", other_keys=("name", "label"))
    if options is None or label is None:
        return None
    resolved = options.model_dump(mode="json")
    return ChosenEngine(EngineChoice(label, name, resolved), engine, options, engine.traits(options), key, table)


def _label(table: Table, key: str, name: str, problems: Problems) -> str | None:
    if "label" not in table.entries:
        return name
    node = table.entries["label"].node
    label = node.value if isinstance(node, Leaf) else None
    if isinstance(label, str) and NAME.fullmatch(label):
        return label
    problems.add(node.location, f"{key}.label", NAME_RULE)
    return None
