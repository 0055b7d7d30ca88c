"""``--set key=value``: dotted paths into the file, ``load.between[1]=2M/s``."""

import re

from streamgauge.parse.problems import ExperimentError, Mark, Problems, shown
from streamgauge.parse.yaml_tree import Entry, Items, Leaf, Node, Table, compose

_STEP = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)((?:\[[0-9]{1,4}\])*)")
_INDEX = re.compile(r"\[([0-9]+)\]")
_LONGEST_PATH = 200
_SECRET = re.compile(r"password|secret|token", re.IGNORECASE)
"""What is set there by mistake is not repeated."""


class _Refused(Exception):
    pass


def override(root: Node, text: str, problems: Problems) -> None:
    """Change the tree as one override says; what it sets is named by the override in later problems."""
    path, equals, value = text.partition("=")
    mark = Mark(f"--set {shown(path + equals + '***' if _SECRET.search(path) else text)}")
    if not equals:
        problems.add(mark, "", "must be key=value, for example --set engine.capacity=1M/s")
        return
    try:
        steps = _steps(path.strip())
        _put(root, steps, _value(value, mark), mark)
    except _Refused as refused:
        problems.add(mark, shown(path.strip()), str(refused))
    except ExperimentError as error:
        for problem in error.problems:
            problems.add(mark, shown(path.strip()), problem.message)


def _value(text: str, mark: Mark) -> Node:
    found = Problems()
    node = compose(text, mark.source, found, mark)
    found.raise_if_any()
    return node


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for part in path.split(".") if len(path) <= _LONGEST_PATH else [""]:
        match = _STEP.fullmatch(part)
        if match is None:
            raise _Refused("is not a key such as engine.capacity or load.between[1]")
        steps.append(match.group(1))
        steps += [int(index) for index in _INDEX.findall(match.group(2))]
    return steps


def _put(node: Node, steps: list[str | int], value: Node, mark: Mark) -> None:
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int):
            node = _put_item(node, step, after, value)
        else:
            node = _put_entry(node, step, after, value, mark)


def _put_item(node: Node, index: int, after: str | int | None, value: Node) -> Node:
    if not isinstance(node, Items):
        raise _Refused(f"[{index}] needs a list, but the value before it is not a list")
    if index >= len(node.items):
        raise _Refused(f"[{index}] is past the end: the list has {len(node.items)} entries, counted from 0")
    node.items[index] = value if after is None else _opened(node.items[index], after)
    return node.items[index]


def _put_entry(node: Node, name: str, after: str | int | None, value: Node, mark: Mark) -> Node:
    if not isinstance(node, Table):
        raise _Refused(f"{name} needs a mapping, but the value before it is not a mapping")
    entry = node.entries.get(name)
    if after is None:
        node.entries[name] = Entry(mark, value)
    elif entry is not None:
        entry.node = _opened(entry.node, after)
    else:
        node.entries[name] = Entry(mark, Table(mark))
    return node.entries[name].node


def _opened(node: Node, after: str | int) -> Node:
    """``engine: simulated`` is short for ``engine: {name: simulated}``: opened when a key of it is set."""
    if isinstance(node, Leaf) and isinstance(node.value, str) and isinstance(after, str):
        return Table(node.mark, {"name": Entry(node.mark, node)})
    return node
