"""The search axes of an experiment, one for each result."""

from streamgauge.model.experiment import INSTANCES, LOAD, Dimension, Experiment, Span
from streamgauge.model.profile import planned_load
from streamgauge.search.axes import MIN_PRECISION, SearchAxis, listed
from streamgauge.search.supported import RESOLUTION

Fixed = tuple[tuple[str, float], ...]

_CONTINUOUS = ("binary", "adaptive")  # strategies that need no grid on a range
_DOUBLED = 1.0  # precision of the loads of a demand that are given as a range: each is twice the one before


def axes_of(experiment: Experiment) -> tuple[SearchAxis, ...]:
    """One axis for each result, in the order in which they are searched."""
    match experiment.what:
        case "sustainable-throughput":
            return (_axis(experiment, LOAD, experiment.span, ()),)
        case "extreme":
            return (_axis(experiment, experiment.dimension, experiment.span, ()),)
        case "capacity":
            counts = listed(experiment.instances, "count", experiment.search.precision)
            return tuple(_axis(experiment, LOAD, experiment.span, (("instances", n),)) for n in counts)
        case "demand":
            loads = listed(experiment.span, "rate", _DOUBLED)
            return tuple(_axis(experiment, INSTANCES, experiment.instances, (("load", load),)) for load in loads)
        case "stages" | "nothing":
            return _measured(experiment)


def _axis(experiment: Experiment, dimension: Dimension, span: Span, fixed: Fixed) -> SearchAxis:
    precision = max(experiment.search.precision, MIN_PRECISION)
    span = _below_ceiling(span, experiment.ceiling) if dimension is LOAD else span
    upwards = dimension.harder == "higher"
    values: tuple[float, ...] = ()
    if span.between is None or dimension.unit == "count" or experiment.search.strategy not in _CONTINUOUS:
        finest = RESOLUTION if dimension is LOAD else 0.0
        values = listed(span, dimension.unit, max(precision, finest))
    ends = values or tuple(sorted(span.between or ()))
    if not ends:
        raise ValueError(f"the experiment names no values of {dimension.name}")
    easy, hard = (ends[0], ends[-1]) if upwards else (ends[-1], ends[0])
    ordered = values if upwards else values[::-1]
    return SearchAxis(dimension.name, dimension.unit, upwards, easy, hard, ordered, precision, fixed)


def _below_ceiling(span: Span, ceiling: float | None) -> Span:
    """Only loads that the load driver can send on schedule. At higher loads it would be the limit."""
    if ceiling is None:
        return span
    if span.between is not None:
        low, high = sorted(span.between)
        return Span(between=(min(low, ceiling), min(high, ceiling)))
    return Span(values=tuple(v for v in span.values if v <= ceiling) or (min(span.values),))


def _measured(experiment: Experiment) -> tuple[SearchAxis, ...]:
    """The axes without a search: every load, or every stage, with every number of instances."""
    span, dimension = experiment.span, experiment.dimension
    if span.between is not None:
        span = Span(values=span.between)
    if not span.values and experiment.profile is not None:
        plan = experiment.trial
        span = Span(values=(planned_load(experiment.profile, plan.warmup, plan.duration),))
        dimension = LOAD
    counts = listed(experiment.instances, "count", experiment.search.precision)
    if len(counts) < 2:
        return (_axis(experiment, dimension, span, ()),)
    return tuple(_axis(experiment, dimension, span, (("instances", n),)) for n in counts)
