"""Parses YAML text to a tree of values with their line and column.

The tree is built from the events of the YAML parser with an explicit stack. So a deeply nested file cannot exhaust the
recursion limit, and anchors, tags and duplicate keys are reported before they have an effect.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from streamgauge.parse.problems import Location, Problems, printable

MAX_BYTES = 64 * 1024
"""The largest experiment file, and the largest value of an override."""
TOO_LARGE = f"the experiment is larger than {MAX_BYTES // 1024} KiB, the limit for experiment files"
_MAX_DEPTH = 16
_MAX_NODES = 2_500
_INT = re.compile(r"[+-]?[0-9]{1,20}")  # every number of 64 bits
_FLOAT = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
_DEEP_NESTING = re.compile(r"(?:[\[{] ?){32}")  # at each of them the YAML scanner reads 1,024 characters ahead
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class Leaf:
    """A scalar: text, a number, true, false or null."""

    location: Location
    value: str | int | float | bool | None


@dataclass(slots=True)
class Items:
    """A list."""

    location: Location
    items: list["Node"] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A key of a table: its location and its value."""

    location: Location
    node: "Node"


@dataclass(slots=True)
class Table:
    """A mapping; keys are text."""

    location: Location
    entries: dict[str, Entry] = field(default_factory=dict)


Node: TypeAlias = Leaf | Items | Table


def plain_value(node: Node) -> object:
    """The value of a node without locations. ``compose`` limits the depth."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, Items):
        return [plain_value(item) for item in node.items]
    return {key: plain_value(entry.node) for key, entry in node.entries.items()}


def decode(data: bytes, source: str) -> str:
    """The bytes of a file as text; raises ExperimentError if they are not UTF-8."""
    problems = Problems()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        problems.add(Location(source, line, column), "", "the file is not encoded in UTF-8; save it as UTF-8")
        raise problems.error() from None


def compose(text: str, source: str, problems: Problems, override: Location | None = None) -> Node:
    """The tree of a YAML document. ``override`` is the location of all nodes of an override.

    Duplicate keys, anchors and tags are added to ``problems``. Other problems raise all problems so far.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        problems.add(override or Location(source, 1, 1), "", TOO_LARGE)
        raise problems.error()
    builder = _Builder(source, override, problems)
    nesting = _DEEP_NESTING.search(text)
    if nesting is not None:
        builder.stop(builder.locate(text, nesting.start()), f"nested deeper than {_MAX_DEPTH} levels")
    return builder.build(text.removeprefix("\ufeff"))


class _Builder:
    def __init__(self, source: str, override: Location | None, problems: Problems) -> None:
        self._source = source
        self._override = override
        self._problems = problems
        self._stack: list[Items | Table] = []
        self._keys: list[tuple[str, Location] | None] = []
        self._root: Node | None = None
        self._nodes = 0
        self._aliased = False

    def build(self, text: str) -> Node:
        for event in self._events(text):
            self._handle(event)
        if self._aliased:  # its value is unknown, so the file cannot be validated further
            raise self._problems.error()
        if self._root is None:
            if self._override:
                self.stop(self._override, "is empty; set a value")
            self.stop(
                Location(self._source, 1, 1), "the file is empty; an experiment needs name, workload, engine and find"
            )
        return self._root

    def _events(self, text: str) -> Iterator[events.Event]:
        end = self._override or Location(self._source, 1, 1)
        try:
            yield from YAML(typ="safe", pure=True).parse(text)
        except MarkedYAMLError as error:
            location = error.problem_mark or error.context_mark
            position = self._override or (
                Location(self._source, location.line + 1, location.column + 1) if location else end
            )
            self.stop(position, f"invalid YAML: {_syntax(error.problem or error.context or 'it cannot be parsed')}")
        except YAMLError as error:
            offset = getattr(error, "position", None)
            position = self.locate(text, offset) if isinstance(offset, int) else end
            self.stop(position, "invalid YAML: this character is not allowed in text")
        # the YAML parser raises these for broken escapes and directives, such as "\UFFFFFFFF"
        except (ValueError, OverflowError, IndexError, KeyError, TypeError, AttributeError, AssertionError):
            self.stop(end, "invalid YAML: it cannot be parsed")

    def locate(self, text: str, offset: int) -> Location:
        """The location of the character at ``offset``."""
        if self._override:
            return self._override
        return Location(self._source, text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))

    def stop(self, location: Location, message: str) -> NoReturn:
        """Raise all problems so far and this one, because the rest of the file cannot be read."""
        self._problems.add(location, "", message)
        raise self._problems.error() from None

    def _handle(self, event: events.Event) -> None:
        location = self._override or Location(self._source, event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case events.DocumentStartEvent():
                if self._root is not None:
                    self.stop(location, "a second YAML document begins here; a file contains one experiment")
                if event.version or event.tags:
                    self.stop(location, "YAML directives are not supported; remove the lines that begin with %")
            case events.AliasEvent():
                self._aliased = True
                self._problems.add(
                    location,
                    "",
                    f"YAML aliases such as *{printable(event.anchor)} are not supported; write the value again",
                )
                self._attach(Leaf(location, None))
            case events.ScalarEvent():
                self._check(event, location)
                self._scalar(event, location)
            case events.SequenceStartEvent():
                self._check(event, location)
                self._open(Items(location))
            case events.MappingStartEvent():
                self._check(event, location)
                self._open(Table(location))
            case events.SequenceEndEvent() | events.MappingEndEvent():
                self._keys.pop()
                self._attach(self._stack.pop())

    def _check(self, event: events.ScalarEvent | events.CollectionStartEvent, location: Location) -> None:
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            self.stop(location, f"more than {_MAX_NODES:,} values, the limit for experiment files")
        if event.anchor is not None:
            self._problems.add(
                location, "", f"YAML anchors such as &{printable(event.anchor)} are not supported; remove it"
            )
        if event.tag is not None:
            self._problems.add(
                location,
                "",
                f"YAML tags such as {printable(event.tag)} are not supported; quote the value if it is text",
            )

    def _open(self, node: Items | Table) -> None:
        if self._expects_key():
            self.stop(node.location, "a key must be one word, not a list or a mapping")
        if len(self._stack) >= _MAX_DEPTH:
            self.stop(node.location, f"nested deeper than {_MAX_DEPTH} levels")
        self._stack.append(node)
        self._keys.append(None)

    def _expects_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1], Table) and self._keys[-1] is None

    def _scalar(self, event: events.ScalarEvent, location: Location) -> None:
        if _SURROGATE.search(event.value):
            self.stop(location, "incomplete character (a lone surrogate); write the complete one")
        key = self._keys[-1] if self._keys else None
        if key is not None and event.style is None and not event.value:
            location = key[1]  # an empty value; YAML reports the next line as its location
        if self._expects_key():
            self._keys[-1] = (event.value, location)
        else:
            self._attach(Leaf(location, _resolve(event.value) if event.style is None else event.value))

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
            self.stop(node.location, "an alias cannot be a key")
        self._keys[-1] = None
        if key[0] in parent.entries:
            first = parent.entries[key[0]].location
            where = f", first defined in line {first.line}" if first.line else ""
            self._problems.add(key[1], printable(key[0]), f"duplicate key{where}; remove one of the two")
        else:
            parent.entries[key[0]] = Entry(key[1], node)


def _resolve(text: str) -> str | int | float | bool | None:
    """The value of a plain scalar by the YAML 1.2 core schema. Too long numbers stay text."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _syntax(problem: str) -> str:
    if "'\\t'" in problem:
        return "a tab is used for indentation; use spaces"
    return " ".join(problem.split())[:120]
