"""Values of a dimension: ``between: [low, high]`` or ``values: [..]``, in the dimension's unit."""

from collections.abc import Callable, Sequence

from streamgauge.model import units
from streamgauge.model.experiment import Span, Unit
from streamgauge.parse.nodes import Items, Leaf, Node, Table
from streamgauge.parse.problems import Problems, shown

MOST_VALUES = 500
_PARSE: dict[Unit, Callable[[object], float]] = {
    "rate": units.parse_rate,
    "count": units.parse_count,
    "duration": units.parse_duration,
    "share": units.parse_share,
}


def span_of(between: Sequence[float] | None, values: Sequence[float] | None) -> Span:
    """A span, its values in ascending order."""
    if between is not None:
        return Span(between=(float(between[0]), float(between[1])))
    return Span(values=tuple(sorted(float(value) for value in values or ())))


def check_span(between: Sequence[float] | None, values: Sequence[float] | None) -> list[tuple[str, str]]:
    """What is impossible about a range and a list of values: the key at fault and a sentence each."""
    found = []
    if between is not None and values is not None:
        found.append(("values", "between and values cannot be combined; keep one of them"))
    if between is not None and between[0] >= between[1]:
        found.append(("between", "the first value must be less than the second"))
    if values is not None and len(set(values)) < len(values):
        found.append(("values", "contains the same value twice"))
    return found


def read_span(table: Table, key: str, unit: Unit, problems: Problems, besides: tuple[str, ...] = ()) -> Span | None:
    """``between`` or ``values`` of a table, or None with the problems noted."""
    before = len(problems)
    for name, entry in table.entries.items():
        if name not in ("between", "values", *besides):
            problems.add(entry.mark, f"{key}.{shown(name)}", "unknown key", (*besides, "between", "values"), name)
    between = _numbers(table, "between", key, unit, problems)
    values = _numbers(table, "values", key, unit, problems)
    if len(problems) == before and between is None and values is None:
        problems.add(table.mark, key, "needs between or values")
    if len(problems) > before:
        return None
    if between is not None and len(between) != 2:
        problems.add(table.entries["between"].node.mark, f"{key}.between", "must be a list of two: [low, high]")
        return None
    for name, sentence in check_span(between, values):
        problems.add(table.entries[name].node.mark, f"{key}.{name}", sentence)
    return span_of(between, values) if len(problems) == before else None


def read_list(node: Node, key: str, unit: Unit, problems: Problems) -> list[float]:
    """A list of quantities; a single one is a list of one. Those with problems are left out."""
    if isinstance(node, Table) or (isinstance(node, Items) and not 0 < len(node.items) <= MOST_VALUES):
        problems.add(node.mark, key, f"must be a list of 1 to {MOST_VALUES} values")
        return []
    found = []
    for index, item in enumerate(node.items if isinstance(node, Items) else [node]):
        path = f"{key}[{index}]" if isinstance(node, Items) else key
        try:
            value = float(_PARSE[unit](item.value if isinstance(item, Leaf) else None))
        except units.UnitError as error:
            problems.add(item.mark, path, str(error))
            continue
        if value <= 0:
            problems.add(item.mark, path, "must be more than 0")
        found.append(value)
    return found


def _numbers(table: Table, name: str, key: str, unit: Unit, problems: Problems) -> list[float] | None:
    if name not in table.entries:
        return None
    node = table.entries[name].node
    if not isinstance(node, Items):
        problems.add(node.mark, f"{key}.{name}", "must be a list")
        return None
    return read_list(node, f"{key}.{name}", unit, problems)
