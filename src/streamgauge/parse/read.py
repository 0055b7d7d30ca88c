"""Reads an experiment file: text → Experiment, or all its problems together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from streamgauge.engines.contract import Engine
from streamgauge.engines.registry import engines as installed_engines
from streamgauge.model.experiment import Experiment, SearchPlan, Span, TrialPlan
from streamgauge.parse.choices import NAME, NAME_RULE, read_engines, read_workload
from streamgauge.parse.combine import Draft, combine, read_transport
from streamgauge.parse.fields import validate
from streamgauge.parse.goal import read_goal, read_instances
from streamgauge.parse.load import ParsedLoad, read_load
from streamgauge.parse.objectives import read_objectives
from streamgauge.parse.overrides import override
from streamgauge.parse.problems import Problems, printable
from streamgauge.parse.sections import SearchSection, Section, TrialSection
from streamgauge.parse.yaml_tree import Entry, Leaf, Node, Table, compose, decode
from streamgauge.workloads.registry import workloads

KEYS = (
    "name",
    "description",
    "workload",
    "engine",
    "engines",
    "find",
    "load",
    "instances",
    "objective",
    "search",
    "trial",
    "transport",
    "seed",
)
S = TypeVar("S", bound=Section)
_SEED = 1
MAX_SEED = 2**63 - 1
MAX_DESCRIPTION = 4000


def read(
    text: str | bytes,
    source: str = "experiment",
    overrides: Sequence[str] = (),
    engines: Mapping[str, Engine] | None = None,
) -> Experiment:
    """The experiment of a text after the ``--set`` overrides; raises ExperimentError with all problems.

    ``engines`` are the known engines; the installed ones by default.
    """
    problems = Problems()
    root = compose(text if isinstance(text, str) else decode(text, source), source, problems)
    for change in overrides:
        override(root, change, problems)
    if not isinstance(root, Table):
        problems.add(root.location, "", "an experiment must be a mapping with the keys name, workload, engine and find")
        raise problems.error()
    known = installed_engines() if engines is None else engines
    draft = _draft(root, known, problems)
    experiment = combine(draft, root, problems)
    problems.raise_if_any()
    assert experiment is not None
    return experiment


def _draft(root: Table, known: Mapping[str, Engine], problems: Problems) -> Draft:
    """Every part of the file, read separately."""
    _check_keys(root, known, problems)
    entries = {key: entry for key, entry in root.entries.items() if not _is_empty(entry.node)}
    workload = read_workload(entries["workload"].node, workloads(), problems) if "workload" in entries else None
    trial = _trial(entries, problems)
    return Draft(
        name=_name(entries, problems),
        description=_description(entries, problems),
        workload=workload,
        engines=read_engines(entries, known, problems) if entries.keys() & {"engine", "engines"} else [],
        goal=read_goal(entries["find"].node, workload, problems) if "find" in entries else None,
        load=_load(entries, trial or TrialPlan(), problems),
        instances=_instances(entries, problems),
        objectives=read_objectives(_node(entries, "objective"), problems),
        search=_search(entries, problems),
        trial=trial,
        seed=_seed(entries, problems),
        transport=read_transport(_node(entries, "transport"), problems),
    )


def _check_keys(root: Table, known: Mapping[str, Engine], problems: Problems) -> None:
    for name, entry in root.entries.items():
        if name not in KEYS:
            problems.add(entry.location, printable(name), "unknown key", KEYS, name)
        elif _is_empty(entry.node):
            problems.add(entry.node.location, name, "is empty; set a value or remove the key")
    for name in ("name", "workload", "find"):
        if name not in root.entries:
            problems.add(root.location, name, "is missing")
    if "engine" not in root.entries and "engines" not in root.entries:
        problems.add(root.location, "engine", "is missing", known)


def _is_empty(node: Node) -> bool:
    return isinstance(node, Leaf) and node.value is None


def _node(entries: Mapping[str, Entry], name: str) -> Node | None:
    return entries[name].node if name in entries else None


def _table(entries: Mapping[str, Entry], name: str, problems: Problems) -> Table | None:
    node = _node(entries, name)
    if node is None or isinstance(node, Table):
        return node
    problems.add(node.location, name, "must be a mapping")
    return None


def _name(entries: Mapping[str, Entry], problems: Problems) -> str:
    node = _node(entries, "name")
    value = node.value if isinstance(node, Leaf) else None
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    if node is not None:
        problems.add(node.location, "name", NAME_RULE)
    return ""


def _description(entries: Mapping[str, Entry], problems: Problems) -> str:
    node = _node(entries, "description")
    if node is None:
        return ""
    if isinstance(node, Leaf) and isinstance(node.value, str) and len(node.value) <= MAX_DESCRIPTION:
        return node.value
    problems.add(node.location, "description", f"must be text of at most {MAX_DESCRIPTION} characters")
    return ""


def _seed(entries: Mapping[str, Entry], problems: Problems) -> int:
    node = _node(entries, "seed")
    if node is None:
        return _SEED
    value = node.value if isinstance(node, Leaf) else None
    if isinstance(value, float) and value.is_integer():  # 3.0 and 1e3 are whole numbers, in JSON Schema too
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SEED:
        return value
    problems.add(node.location, "seed", "must be a whole number from 0 to 2^63 - 1, without quotes")
    return _SEED


def _load(entries: Mapping[str, Entry], trial: TrialPlan, problems: Problems) -> ParsedLoad | None:
    table = _table(entries, "load", problems)
    return read_load(table, trial, problems) if table is not None else None


def _instances(entries: Mapping[str, Entry], problems: Problems) -> Span | None:
    node = _node(entries, "instances")
    return read_instances(node, problems) if node is not None else None


def _search(entries: Mapping[str, Entry], problems: Problems) -> SearchPlan:
    section = _section(SearchSection, "search", entries, problems)
    if section is None:
        return SearchPlan()
    return SearchPlan(section.strategy, section.precision, section.lower_bound, tuple(section.also), section.starts)


def _section(kind: type[S], name: str, entries: Mapping[str, Entry], problems: Problems) -> S | None:
    if name not in entries:
        return kind()
    table = _table(entries, name, problems)
    return validate(kind, table, name, problems) if table is not None else None


def _trial(entries: Mapping[str, Entry], problems: Problems) -> TrialPlan | None:
    """The trial section. Defaults follow from the keys that are set, so that they are consistent."""
    section = _section(TrialSection, "trial", entries, problems)
    if section is None:
        return None
    plan = TrialPlan(
        duration=section.duration,
        warmup=section.warmup,
        repetitions=section.repetitions,
        early=section.early,
        queue_bound=section.queue_bound,
        invalid_retries=section.invalid_retries,
        partitions=section.partitions,
        drivers=section.drivers,
        stall=section.stall,
    )
    warmup_limit = section.warmup_limit
    if warmup_limit is None:
        warmup_limit = plan.warmup_limit if section.limit is None else min(plan.warmup_limit, section.limit)
    limit = section.limit or max(5 * section.duration, section.warmup or 0, warmup_limit)
    plan = replace(plan, warmup_limit=warmup_limit, limit=limit)
    table = entries["trial"].node if "trial" in entries else None
    if isinstance(table, Table):
        _check_trial(plan, table, problems)
    return plan


def _check_trial(plan: TrialPlan, table: Table, problems: Problems) -> None:
    for name, length in (("duration", plan.duration), ("warmup", plan.warmup), ("warmup_limit", plan.warmup_limit)):
        if length is not None and length > plan.limit and name in table.entries:
            message = "is longer than trial.limit; increase trial.limit or reduce this value"
            problems.add(table.entries[name].node.location, f"trial.{name}", message)
