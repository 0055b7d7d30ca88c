"""YAML text to a tree of values that know their line and column.

Built from the parser's events with a stack of our own: no recursion that a deep file could exhaust, and
anchors, tags and duplicate keys are seen before they can do anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from streamgauge.parse.problems import Mark, Problems, shown

MOST_BYTES = 64 * 1024
"""The one limit of an experiment file, and of the value of an override."""
TOO_LARGE = f"the experiment is larger than {MOST_BYTES // 1024} KiB, the limit for experiment files"
_DEEPEST = 16
_MOST_NODES = 2_500
_INT = re.compile(r"[+-]?[0-9]{1,20}")  # every number of 64 bits
_FLOAT = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
_TOWER = re.compile(r"(?:[\[{] ?){32}")  # the YAML scanner looks 1,024 characters ahead at each of them
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Leaf:
    """A scalar: text, number, truth value or nothing."""

    mark: Mark
    value: str | int | float | bool | None


@dataclass(slots=True)
class Items:
    """A list."""

    mark: Mark
    items: list["Node"] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A key of a table with the place where it stands."""

    mark: Mark
    node: "Node"


@dataclass(slots=True)
class Table:
    """A mapping; keys are text."""

    mark: Mark
    entries: dict[str, Entry] = field(default_factory=dict)


Node: TypeAlias = Leaf | Items | Table


def plain(node: Node) -> object:
    """The value of a node without its places. The depth is bounded by ``compose``."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {key: plain(entry.node) for key, entry in node.entries.items()}


def decode(data: bytes, source: str) -> str:
    """Bytes of a file as text, or the problem that they are none."""
    problems = Problems()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        problems.add(Mark(source, line, column), "", "the file is not encoded in UTF-8; save it as UTF-8")
        raise problems.error() from None


def compose(text: str, source: str, problems: Problems, fixed: Mark | None = None) -> Node:
    """The tree of a YAML document. ``fixed`` is the mark of everything in an override.

    What can be read past (duplicate keys, anchors, tags) is noted; what cannot raises all problems so far.
    """
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        problems.add(fixed or Mark(source, 1, 1), "", TOO_LARGE)
        raise problems.error()
    builder = _Builder(source, fixed, problems)
    tower = _TOWER.search(text)
    if tower is not None:
        builder.stop(builder.place(text, tower.start()), f"nested deeper than {_DEEPEST} levels")
    return builder.build(text.removeprefix("\ufeff"))


class _Builder:
    def __init__(self, source: str, fixed: Mark | None, problems: Problems) -> None:
        self._source = source
        self._fixed = fixed
        self._problems = problems
        self._stack: list[Items | Table] = []
        self._keys: list[tuple[str, Mark] | None] = []
        self._root: Node | None = None
        self._nodes = 0
        self._aliased = False

    def build(self, text: str) -> Node:
        for event in self._events(text):
            self._take(event)
        if self._aliased:  # what it stood for is not known, so nothing more can be said of the file
            raise self._problems.error()
        if self._root is None:
            if self._fixed:
                self.stop(self._fixed, "is empty; set a value")
            self.stop(
                Mark(self._source, 1, 1), "the file is empty; an experiment needs name, workload, engine and find"
            )
        return self._root

    def _events(self, text: str) -> Iterator[events.Event]:
        end = self._fixed or Mark(self._source, 1, 1)
        try:
            yield from YAML(typ="safe", pure=True).parse(text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = self._fixed or (Mark(self._source, mark.line + 1, mark.column + 1) if mark else end)
            self.stop(place, f"invalid YAML: {_syntax(error.problem or error.context or 'it cannot be parsed')}")
        except YAMLError as error:
            offset = getattr(error, "position", None)
            place = self.place(text, offset) if isinstance(offset, int) else end
            self.stop(place, "invalid YAML: this character is not allowed in text")
        # The YAML parser lets these escape on broken escapes and directives, such as "\UFFFFFFFF".
        except (ValueError, OverflowError, IndexError, KeyError, TypeError, AttributeError, AssertionError):
            self.stop(end, "invalid YAML: it cannot be parsed")

    def place(self, text: str, offset: int) -> Mark:
        """The mark of the character at ``offset``."""
        if self._fixed:
            return self._fixed
        return Mark(self._source, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))

    def stop(self, mark: Mark, message: str) -> NoReturn:
        """Nothing more can be read: raise all problems so far and this one."""
        self._problems.add(mark, "", message)
        raise self._problems.error() from None

    def _take(self, event: events.Event) -> None:
        mark = self._fixed or Mark(self._source, event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case events.DocumentStartEvent():
                if self._root is not None:
                    self.stop(mark, "a second YAML document begins here; a file contains one experiment")
                if event.version or event.tags:
                    self.stop(mark, "YAML directives are not supported; remove the lines that begin with %")
            case events.AliasEvent():
                self._aliased = True
                self._problems.add(
                    mark, "", f"YAML aliases such as *{shown(event.anchor)} are not supported; write the value again"
                )
                self._attach(Leaf(mark, None))
            case events.ScalarEvent():
                self._refuse(event, mark)
                self._scalar(event, mark)
            case events.SequenceStartEvent():
                self._refuse(event, mark)
                self._open(Items(mark))
            case events.MappingStartEvent():
                self._refuse(event, mark)
                self._open(Table(mark))
            case events.SequenceEndEvent() | events.MappingEndEvent():
                self._keys.pop()
                self._attach(self._stack.pop())

    def _refuse(self, event: events.ScalarEvent | events.CollectionStartEvent, mark: Mark) -> None:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            self.stop(mark, f"more than {_MOST_NODES:,} values, the limit for experiment files")
        if event.anchor is not None:
            self._problems.add(mark, "", f"YAML anchors such as &{shown(event.anchor)} are not supported; remove it")
        if event.tag is not None:
            self._problems.add(
                mark, "", f"YAML tags such as {shown(event.tag)} are not supported; quote the value if it is text"
            )

    def _open(self, node: Items | Table) -> None:
        if self._waits_for_key():
            self.stop(node.mark, "a key must be one word, not a list or a mapping")
        if len(self._stack) >= _DEEPEST:
            self.stop(node.mark, f"nested deeper than {_DEEPEST} levels")
        self._stack.append(node)
        self._keys.append(None)

    def _waits_for_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1], Table) and self._keys[-1] is None

    def _scalar(self, event: events.ScalarEvent, mark: Mark) -> None:
        if _SURROGATE.search(event.value):
            self.stop(mark, "incomplete character (a lone surrogate); write the complete one")
        key = self._keys[-1] if self._keys else None
        if key is not None and event.style is None and not event.value:
            mark = key[1]  # nothing stands there; YAML would point at the next line
        if self._waits_for_key():
            self._keys[-1] = (event.value, mark)
        else:
            self._attach(Leaf(mark, _resolve(event.value) if event.style is None else event.value))

    def _attach(self, node: Node) -> None:
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        if isinstance(parent, Items):
            parent.items.append(node)
            return
        key = self._keys[-1]
        if key is None:
            self.stop(node.mark, "an alias cannot be a key")
        self._keys[-1] = None
        if key[0] in parent.entries:
            first = parent.entries[key[0]].mark
            where = f", first defined in line {first.line}" if first.line else ""
            self._problems.add(key[1], shown(key[0]), f"duplicate key{where}; remove one of the two")
        else:
            parent.entries[key[0]] = Entry(key[1], node)


def _resolve(text: str) -> str | int | float | bool | None:
    """A plain scalar by the YAML 1.2 core schema. Numbers too long to be one stay text."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _syntax(problem: str) -> str:
    if "'\\t'" in problem:
        return "a tab is used for indentation; use spaces"
    return " ".join(problem.split())[:120]
