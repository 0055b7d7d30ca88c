"""Reads the load of a file: a rate, values to search, or a profile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from streamgauge.model import profile as shapes
from streamgauge.model import units
from streamgauge.model.experiment import Span, TrialPlan, Unit
from streamgauge.model.profile import LoadProfile
from streamgauge.model.units import format_duration, format_rate
from streamgauge.parse import sections
from streamgauge.parse.fields import validate
from streamgauge.parse.problems import Problems, printable
from streamgauge.parse.yaml_tree import Items, Leaf, Node, Table

MAX_VALUES = 500
_PARSE: dict[Unit, Callable[[object], float]] = {
    "rate": units.parse_rate,
    "count": units.parse_count,
    "duration": units.parse_duration,
    "share": units.parse_share,
}


def span_of(between: Sequence[float] | None, values: Sequence[float] | None) -> Span:
    """A span with its values in ascending order."""
    if between is not None:
        return Span(between=(float(between[0]), float(between[1])))
    return Span(values=tuple(sorted(float(value) for value in values or ())))


def check_span(between: Sequence[float] | None, values: Sequence[float] | None) -> list[tuple[str, str]]:
    """The problems of a range and a list of values, each with its key and a sentence."""
    found = []
    if between is not None and values is not None:
        found.append(("values", "between and values cannot be combined; keep one of them"))
    if between is not None and between[0] >= between[1]:
        found.append(("between", "the first value must be less than the second"))
    if values is not None and len(set(values)) < len(values):
        found.append(("values", "contains the same value twice"))
    return found


def read_span(table: Table, key: str, unit: Unit, problems: Problems, other_keys: tuple[str, ...] = ()) -> Span | None:
    """``between`` or ``values`` of a table; None if there are problems."""
    before = len(problems)
    for name, entry in table.entries.items():
        if name not in ("between", "values", *other_keys):
            problems.add(
                entry.location, f"{key}.{printable(name)}", "unknown key", (*other_keys, "between", "values"), name
            )
    between = _numbers(table, "between", key, unit, problems)
    values = _numbers(table, "values", key, unit, problems)
    if len(problems) == before and between is None and values is None:
        problems.add(table.location, key, "needs between or values")
    if len(problems) > before:
        return None
    if between is not None and len(between) != 2:
        problems.add(table.entries["between"].node.location, f"{key}.between", "must be a list of two: [low, high]")
        return None
    for name, sentence in check_span(between, values):
        problems.add(table.entries[name].node.location, f"{key}.{name}", sentence)
    return span_of(between, values) if len(problems) == before else None


def read_list(node: Node, key: str, unit: Unit, problems: Problems) -> list[float]:
    """A list of quantities without those that have problems; a single quantity is a list of one."""
    if isinstance(node, Table) or (isinstance(node, Items) and not 0 < len(node.items) <= MAX_VALUES):
        problems.add(node.location, key, f"must be a list of 1 to {MAX_VALUES} values")
        return []
    found = []
    for index, item in enumerate(node.items if isinstance(node, Items) else [node]):
        path = f"{key}[{index}]" if isinstance(node, Items) else key
        try:
            value = float(_PARSE[unit](item.value if isinstance(item, Leaf) else None))
        except units.UnitError as error:
            problems.add(item.location, path, str(error))
            continue
        if value <= 0:
            problems.add(item.location, path, "must be more than 0")
        found.append(value)
    return found


def _numbers(table: Table, name: str, key: str, unit: Unit, problems: Problems) -> list[float] | None:
    if name not in table.entries:
        return None
    node = table.entries[name].node
    if not isinstance(node, Items):
        problems.add(node.location, f"{key}.{name}", "must be a list")
        return None
    return read_list(node, f"{key}.{name}", unit, problems)


_MAX_SPIKES = 1_000


@dataclass(frozen=True, slots=True)
class ParsedLoad:
    """The load of the file: the values to search, and the profile."""

    span: Span = Span()
    profile: LoadProfile | None = None

    @property
    def searched(self) -> bool:
        """Whether several loads are tested."""
        return self.span != Span()


def read_load(table: Table, trial: TrialPlan, problems: Problems) -> ParsedLoad | None:
    """The load section; None if there are problems."""
    model = _model(table, problems)
    if model is None:
        return None
    section = validate(model, table, "load", problems, other_keys=("profile",))
    if section is None:
        return None
    before = len(problems)
    for name, sentence in check_span(section.between, section.values):
        _note(table, problems, name, sentence)
    if isinstance(section, sections.ConstantLoad):
        profile = _constant(section, table, problems)
    else:
        profile = _shape(section, trial, table, problems)
        if profile is not None and len(problems) == before:
            _check_shape(profile, section, trial, table, problems)
    return ParsedLoad(span_of(section.between, section.values), profile) if len(problems) == before else None


def _note(table: Table, problems: Problems, name: str, message: str) -> None:
    location = table.entries[name].node.location if name in table.entries else table.location
    problems.add(location, f"load.{name}", message)


def _model(table: Table, problems: Problems) -> type[sections.LoadRange] | None:
    if "profile" not in table.entries:
        return sections.ConstantLoad
    node = table.entries["profile"].node
    value = node.value if isinstance(node, Leaf) else None
    for name, model in sections.PROFILES.items():
        if name == value:
            return model
    problems.add(node.location, "load.profile", f"unknown profile {printable(value)}", sections.PROFILES, str(value))
    return None


def _constant(section: sections.ConstantLoad, table: Table, problems: Problems) -> LoadProfile | None:
    searched = section.between is not None or section.values is not None
    if section.rate is not None and searched:
        _note(table, problems, "rate", "cannot be combined with between or values; keep one of them")
    if section.rate is None and not searched:
        problems.add(table.location, "load", "needs rate, between or values, or a profile with its parameters")
    return shapes.constant(section.rate) if section.rate is not None else None


def _shape(section: sections.LoadRange, trial: TrialPlan, table: Table, problems: Problems) -> LoadProfile | None:
    match section:
        case sections.StepsLoad():
            return shapes.steps([(duration, rate) for duration, rate in section.steps])
        case sections.RampLoad():
            return shapes.ramp(section.start, section.end, section.over)
        case sections.ReplayLoad():
            return shapes.replay(list(section.rates), section.step)
        case sections.SpikesLoad():
            return _spikes(section, trial, table, problems)
        case sections.FluctuatingLoad():
            return _fluctuating(section, trial, table, problems)
    raise TypeError(f"no shape for {type(section).__name__}")


def _spikes(section: sections.SpikesLoad, trial: TrialPlan, table: Table, problems: Problems) -> LoadProfile | None:
    warmup = trial.warmup_limit if trial.warmup is None else trial.warmup
    over = section.over or warmup + trial.limit
    if section.length >= section.every:
        _note(table, problems, "length", "must be shorter than every, the time from one spike to the next")
    elif section.peak <= section.base:
        _note(table, problems, "peak", "must be more than base")
    elif over < section.every:
        _note(table, problems, "over", f"there is no spike within {format_duration(over)}; set over to more than every")
    elif over // section.every > _MAX_SPIKES:
        _note(table, problems, "every", f"more than {_MAX_SPIKES:,} spikes in {format_duration(over)}; shorten over")
    else:
        return shapes.spikes(section.base, section.peak, section.every, section.length, over)
    return None


def _fluctuating(
    section: sections.FluctuatingLoad, trial: TrialPlan, table: Table, problems: Problems
) -> LoadProfile | None:
    amount, absolute = section.low
    low = amount if absolute else section.rate * amount
    over = section.over or (trial.warmup or 0) + trial.duration
    if low >= section.rate:
        _note(table, problems, "low", "must be less than rate")
        return None
    if over < 3:
        _note(table, problems, "over", "is too short for three parts")
        return None
    return shapes.fluctuating(section.rate, low, over)


def _check_shape(
    profile: LoadProfile, section: sections.LoadRange, trial: TrialPlan, table: Table, problems: Problems
) -> None:
    load = shapes.planned_load(profile, trial.warmup, trial.duration)
    highest = max(section.between or section.values or [load])
    if profile.duration > sections.MAX_DURATION:
        problems.add(table.location, "load", "the profile is longer than a week; shorten it")
    elif profile.peak <= 0:
        problems.add(table.location, "load", "the profile has no events")
    elif load <= 0:
        begin, end = trial.warmup or 0, (trial.warmup or 0) + trial.duration
        span = f"from {format_duration(begin)} to {format_duration(end)}"
        message = f"the profile has no events in the measurement phase, {span}"
        problems.add(table.location, "load", f"{message}; change the profile, trial.warmup or trial.duration")
    elif profile.peak * (highest / load) > sections.MAX_RATE:
        name = "between" if section.between is not None else "values"
        peak = format_rate(profile.peak * (highest / load))
        message = f"at a mean of {format_rate(highest)} the profile would have a peak of {peak}; the maximum is "
        _note(table, problems, name, f"{message}{format_rate(sections.MAX_RATE)}")
