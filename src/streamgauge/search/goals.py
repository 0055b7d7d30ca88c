"""Questions: the lines that an experiment asks for."""

from streamgauge.model.experiment import INSTANCES, LOAD, Dimension, Experiment, Span
from streamgauge.model.profile import planned_load
from streamgauge.search.axes import LEAST_PRECISION, Line, listed
from streamgauge.search.supported import RESOLUTION

Fixed = tuple[tuple[str, float], ...]

_SPANNING = ("binary", "adaptive")  # strategies that need no grid on a continuous range
_DOUBLING = 1.0  # loads of a demand given as a range: each twice the one before


def lines(experiment: Experiment) -> tuple[Line, ...]:
    """One line for each thing to find, in the order in which they are searched."""
    match experiment.what:
        case "sustainable-throughput":
            return (_line(experiment, LOAD, experiment.span, ()),)
        case "extreme":
            return (_line(experiment, experiment.dimension, experiment.span, ()),)
        case "capacity":
            counts = listed(experiment.instances, "count", experiment.search.precision)
            return tuple(_line(experiment, LOAD, experiment.span, (("instances", n),)) for n in counts)
        case "demand":
            loads = listed(experiment.span, "rate", _DOUBLING)
            return tuple(_line(experiment, INSTANCES, experiment.instances, (("load", load),)) for load in loads)
        case "nothing":
            return _measured(experiment)


def _line(experiment: Experiment, dimension: Dimension, span: Span, fixed: Fixed) -> Line:
    precision = max(experiment.search.precision, LEAST_PRECISION)
    span = _below_ceiling(span, experiment.ceiling) if dimension is LOAD else span
    upwards = dimension.harder == "higher"
    values: tuple[float, ...] = ()
    if span.between is None or dimension.unit == "count" or experiment.search.strategy not in _SPANNING:
        finest = RESOLUTION if dimension is LOAD else 0.0
        values = listed(span, dimension.unit, max(precision, finest))
    ends = values or tuple(sorted(span.between or ()))
    if not ends:
        raise ValueError(f"the experiment names no values of {dimension.name}")
    easy, hard = (ends[0], ends[-1]) if upwards else (ends[-1], ends[0])
    ordered = values if upwards else values[::-1]
    return Line(dimension.name, dimension.unit, upwards, easy, hard, ordered, precision, fixed)


def _below_ceiling(span: Span, ceiling: float | None) -> Span:
    """Only loads that the driver can offer; past them it would be the driver that is measured."""
    if ceiling is None:
        return span
    if span.between is not None:
        low, high = sorted(span.between)
        return Span(between=(min(low, ceiling), min(high, ceiling)))
    return Span(values=tuple(v for v in span.values if v <= ceiling) or (min(span.values),))


def _measured(experiment: Experiment) -> tuple[Line, ...]:
    """Nothing is searched: every load with every number of instances."""
    span, dimension = experiment.span, experiment.dimension
    if span.between is not None:
        span = Span(values=span.between)
    if not span.values and experiment.profile is not None:
        plan = experiment.trial
        span = Span(values=(planned_load(experiment.profile, plan.warmup, plan.duration),))
        dimension = LOAD
    counts = listed(experiment.instances, "count", experiment.search.precision)
    if len(counts) < 2:
        return (_line(experiment, dimension, span, ()),)
    return tuple(_line(experiment, dimension, span, (("instances", n),)) for n in counts)
