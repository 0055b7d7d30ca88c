"""Reads objectives: ``metric [statistic] operator threshold``, for example ``event-time p99 < 2s``."""

import re
from typing import cast, get_args

from streamgauge.model import units
from streamgauge.model.objective import Metric, Objective, Operator, Statistic
from streamgauge.parse.problems import Location, Problems, printable
from streamgauge.parse.yaml_tree import Items, Leaf, Node

DEFAULT = ("lag-trend <= 1%", "lost == 0")
METRICS: tuple[Metric, ...] = get_args(Metric)
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
LATENCIES = ("event-time", "processing-time")
_OF_LOAD = ("lag-trend", "lag-growth", "queue")
OF_OUTPUTS = ("lost", "duplicate", "wrong", "late")
_COUNTS = ("drops", *OF_OUTPUTS)
_LATENCY_NAMES = ("latency", "latencies", "delay", "response-time", "end-to-end", "e2e", "event-time-latency")
"""Other names of latency. None of them names the moment from which it is measured."""
MAX_OBJECTIVE_LENGTH = 200
_GRAMMAR = re.compile(r"([^\s<>=!]+)(?:\s+([^\s<>=!]+))?\s*([<>=!]+)\s*([^\s<>=!](?:[^<>=!]*[^\s<>=!])?)")


class _InvalidObjective(Exception):
    """A text is not an objective; with the allowed words and the written one, if one word is wrong."""

    def __init__(self, message: str, allowed: tuple[str, ...] = (), written: str = "") -> None:
        super().__init__(message)
        self.message, self.allowed, self.written = message, allowed, written


def objective(text: str) -> Objective:
    """An objective from its text; raises ValueError with a sentence."""
    try:
        return _objective(text)
    except _InvalidObjective as error:
        allowed = f"; allowed: {', '.join(error.allowed)}" if error.allowed else ""
        raise ValueError(error.message + allowed) from None


def read_objectives(node: Node | None, problems: Problems) -> tuple[Objective, ...]:
    """The objectives of a file; the default ones if it has none."""
    if node is None:
        return tuple(objective(text) for text in DEFAULT)
    nodes = node.items if isinstance(node, Items) else [node]
    if not nodes:
        problems.add(
            node.location, "objective", "is empty; remove it to use the default, lag-trend <= 1% and lost == 0"
        )
    found: list[Objective] = []
    for index, item in enumerate(nodes):
        key = f"objective[{index}]" if isinstance(node, Items) else "objective"
        one = _read_one(item, key, problems)
        if one is not None:
            _check_duplicate(one, found, item.location, key, problems)
            found.append(one)
    return tuple(found)


def _read_one(node: Node, key: str, problems: Problems) -> Objective | None:
    if not isinstance(node, Leaf) or not isinstance(node.value, str):
        problems.add(node.location, key, "must be text, for example lag-trend <= 1% or event-time p99 < 2s")
        return None
    try:
        return _objective(node.value)
    except _InvalidObjective as error:
        problems.add(node.location, key, error.message, error.allowed, error.written)
        return None


def _check_duplicate(one: Objective, found: list[Objective], location: Location, key: str, problems: Problems) -> None:
    for other in found:
        if (other.metric, other.statistic) == (one.metric, one.statistic):
            problems.add(location, key, f"{one.text} and {other.text} limit the same value; keep one of them")


def _objective(text: str) -> Objective:
    match = _GRAMMAR.fullmatch(text.strip()) if len(text) <= MAX_OBJECTIVE_LENGTH else None
    if match is None:
        raise _InvalidObjective(
            f"{printable(text)} is not an objective; write for example lag-trend <= 1% or event-time p99 < 2s"
        )
    name, statistic, sign, threshold = match.groups()
    if name not in METRICS:
        raise _unknown(name)
    metric = cast(Metric, name)
    _check_statistic(metric, statistic)
    value, relative = _threshold(metric, " ".join(threshold.split()))
    _check_operator(metric, sign, value)
    normalized = " ".join(word for word in (name, statistic, sign, " ".join(threshold.split())) if word)
    return Objective(metric, cast(Operator, sign), value, relative, cast(Statistic | None, statistic), normalized)


def _unknown(name: str) -> _InvalidObjective:
    """The error for a metric that does not exist, with what to write instead."""
    if name.lower() in _LATENCY_NAMES or name in STATISTICS:
        statistic = name if name in STATISTICS else "p99"
        latencies = " or ".join(f"{metric} {statistic} < 2s" for metric in LATENCIES)
        return _InvalidObjective(f"{printable(name)} is not a metric; latency is measured as {latencies}", METRICS)
    return _InvalidObjective(f"unknown metric {printable(name)}", METRICS, name)


def _check_statistic(metric: Metric, statistic: str | None) -> None:
    if metric in LATENCIES and statistic is None:
        raise _InvalidObjective(f"{metric} needs a statistic, for example {metric} p99 < 2s", STATISTICS)
    if metric in LATENCIES and statistic not in STATISTICS:
        raise _InvalidObjective(f"unknown statistic {printable(statistic)}", STATISTICS, str(statistic))
    if metric not in LATENCIES and statistic is not None:
        raise _InvalidObjective(f"{metric} is a single number and has no statistic such as {printable(statistic)}")


def _check_operator(metric: Metric, sign: str, threshold: float) -> None:
    exact = metric in _COUNTS or metric == "output-error"
    allowed = ("<", "<=", "==") if exact else ("<", "<=")
    if sign not in allowed:
        raise _InvalidObjective(f"{metric} does not support {sign}", allowed)
    if sign == "==" and threshold != 0:
        raise _InvalidObjective(f"{metric} supports == only with 0; use <= for other values")
    if sign == "<" and threshold == 0:
        raise _InvalidObjective(f"{metric} < 0 can never be met; write {metric} <= 0")


def _threshold(metric: Metric, text: str) -> tuple[float, bool]:
    share = text.endswith("%")
    if share and metric not in (*_OF_LOAD, *OF_OUTPUTS, "output-error"):
        raise _InvalidObjective(
            f"{metric} does not support a percentage such as {printable(text)}; write {_example(metric)}"
        )
    try:
        if share:
            return units.parse_share(text), metric != "output-error"
        if metric == "lag-trend":
            return units.parse_rate(text), False
        if metric == "latency-trend":
            return _per_second(text), False
        if metric in LATENCIES:
            return float(units.parse_duration(text)), False
        if metric == "output-error":
            return units.parse_share(text), False
        return float(units.parse_count(text)), False
    except units.UnitError as error:
        raise _InvalidObjective(f"{error}; write {_example(metric)}") from None


def _per_second(text: str) -> float:
    duration, slash, per = text.partition("/")
    if not slash or per.strip() != "s":
        raise units.UnitError(f"latency-trend needs a duration per second, not {printable(text)!r}")
    return units.parse_duration(duration.strip()) / units.SECOND


def _example(metric: Metric) -> str:
    examples = {
        "lag-trend": "lag-trend <= 1% or lag-trend <= 2000/s",
        "latency-trend": "latency-trend <= 10ms/s",
        "output-error": "output-error <= 0.1%",
        "lag-growth": "lag-growth < 100",
        "queue": "queue <= 5M",
    }
    return examples.get(metric, f"{metric} p99 < 2s" if metric in LATENCIES else f"{metric} == 0")
