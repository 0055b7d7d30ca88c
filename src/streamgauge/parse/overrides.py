"""Applies ``--set key=value``, with a path into the file such as ``load.between[1]=2M/s``."""

import re

from streamgauge.parse.problems import ExperimentError, Location, Problems, printable
from streamgauge.parse.yaml_tree import Entry, Items, Leaf, Node, Table, compose

_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)((?:\[[0-9]{1,4}\])*)")
_INDEX = re.compile(r"\[([0-9]+)\]")
_MAX_PATH = 200
_SECRET = re.compile(r"password|secret|token", re.IGNORECASE)
"""Values of such keys are not repeated in messages, in case a secret was set by mistake."""


class _InvalidOverride(Exception):
    """The path of an override does not exist in the file."""


def override(root: Node, text: str, problems: Problems) -> None:
    """Change the tree by one override. Later problems of the new value name the override as their location."""
    path, equals, value = text.partition("=")
    location = Location(f"--set {printable(path + equals + '***' if _SECRET.search(path) else text)}")
    if not equals:
        problems.add(location, "", "must be key=value, for example --set engine.capacity=1M/s")
        return
    try:
        steps = _steps(path.strip())
        _set(root, steps, _value(value, location), location)
    except _InvalidOverride as invalid:
        problems.add(location, printable(path.strip()), str(invalid))
    except ExperimentError as error:
        for problem in error.problems:
            problems.add(location, printable(path.strip()), problem.message)


def _value(text: str, location: Location) -> Node:
    found = Problems()
    node = compose(text, location.source, found, location)
    found.raise_if_any()
    return node


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for part in path.split(".") if len(path) <= _MAX_PATH else [""]:
        match = _STEP.fullmatch(part)
        if match is None:
            raise _InvalidOverride("is not a key such as engine.capacity or load.between[1]")
        steps.append(match.group(1))
        steps += [int(index) for index in _INDEX.findall(match.group(2))]
    return steps


def _set(node: Node, steps: list[str | int], value: Node, location: Location) -> None:
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int):
            node = _set_item(node, step, after, value)
        else:
            node = _set_entry(node, step, after, value, location)


def _set_item(node: Node, index: int, after: str | int | None, value: Node) -> Node:
    if not isinstance(node, Items):
        raise _InvalidOverride(f"[{index}] needs a list, but the value before it is not a list")
    if index >= len(node.items):
        raise _InvalidOverride(f"[{index}] is past the end: the list has {len(node.items)} entries, counted from 0")
    node.items[index] = value if after is None else _as_table(node.items[index], after)
    return node.items[index]


def _set_entry(node: Node, name: str, after: str | int | None, value: Node, location: Location) -> Node:
    if not isinstance(node, Table):
        raise _InvalidOverride(f"{name} needs a mapping, but the value before it is not a mapping")
    entry = node.entries.get(name)
    if after is None:
        node.entries[name] = Entry(location, value)
    elif entry is not None:
        entry.node = _as_table(entry.node, after)
    else:
        node.entries[name] = Entry(location, Table(location))
    return node.entries[name].node


def _as_table(node: Node, after: str | int) -> Node:
    """A node as a table, so that a key of it can be set: ``engine: simulated`` means ``engine: {name: simulated}``."""
    if isinstance(node, Leaf) and isinstance(node.value, str) and isinstance(after, str):
        return Table(node.location, {"name": Entry(node.location, node)})
    return node
