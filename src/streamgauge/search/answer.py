"""The Finding of each series: its bounds, its status, and the sentence and the notes that describe them."""

from dataclasses import dataclass, replace

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Bound, Finding, Status, TrialResult
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import TrialRequest
from streamgauge.model.units import format_value
from streamgauge.search import peak, shares
from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import AxisHistory, Bounds, ValueHistory
from streamgauge.search.notes import notes, short_bounds, unmeasured
from streamgauge.search.profile_load import loads_of, profile_notes, varies

BoundEntries = tuple[ValueHistory | None, ValueHistory | None]
"""The passing and the failing bound; None if there is none."""

TOPIC = "sustainable throughput: "
"""The beginning of the sentence of a result about the load."""

_NOT_DONE = "the search is not done"
_UNDECIDED = "could not be decided at any value"


@dataclass(frozen=True)
class AnswerContext:
    """One series of a search and its state."""

    experiment: Experiment
    engine: str
    history: AxisHistory
    bounds: Bounds | None
    """None while the search continues."""
    stop: TrialResult | None
    """The trial of this series after which the search could not continue."""
    ended: str
    """Why the run ended before the search of this series was done, if it did."""
    measurements: tuple[shares.ShareMeasurement, ...] = ()
    """The shares of the passing load that are measured in addition."""
    confirmed: bool = False
    """Both bounds so far were measured as often as the rules require, even if the search is not done."""

    @property
    def axis(self) -> SearchAxis:
        """The values that are searched."""
        return self.history.axis


def findings(context: AnswerContext) -> list[Finding]:
    """The finding of one series; without a search, one finding for each value."""
    if not context.experiment.searches:
        return [_measured(context, value) for value in sorted(context.axis.values)]
    bounds = context.bounds or _bounds_so_far(context)
    if context.stop and (bounds is None or context.stop.verdict.stops_run):
        return [_stopped(context, context.stop)]
    return [_unfinished(context) if bounds is None else _finished(context, bounds)]


def _bounds_so_far(context: AnswerContext) -> Bounds | None:
    """The bounds of a search that ended early, if both are confirmed: then they are a result, if a wide one."""
    why = _invalid(context, context.stop) if context.stop else context.ended
    if not why or not context.confirmed:
        return None
    close = _status(context.axis, context.history.holds, context.history.fails) == "bracketed"
    early = f"the search ended early: {why}"
    return context.history.bounds(
        f"T{early[1:]}" if close else f"The bounds are further apart than requested, because {early}"
    )


def stop_reason(stop: TrialResult) -> str:
    """Why the other series were not searched."""
    return f"the search stopped after trial {stop.trial}, which was {stop.verdict.kind}"


def confirmed_bounds(history: AxisHistory, bounds: Bounds) -> BoundEntries:
    """The entries of both bounds, as far as the trials confirm them."""
    holds = _bound(history, bounds.holds, True) or (bounds.holds is not None and history.holds) or None
    fails = _bound(history, bounds.fails, False) or (bounds.fails is not None and history.fails) or None
    return holds, fails


def _finished(context: AnswerContext, bounds: Bounds) -> Finding:
    holds, fails = confirmed_bounds(context.history, bounds)
    status = _status(context.axis, holds, fails)
    sentence = _demand_sentence(context, status, holds, fails) if context.axis.dimension == "instances" else None
    sentence = sentence or _topic(context) + _bounds_sentence(context, status, holds, fails)
    if status == "none-holds" and fails and fails.crashed and _lowest(context):
        status = "failed"
        reasons = [r for t in fails.deciding for r in t.verdict.reasons]
        sentence = f"the system under test fails even at {_easiest(context)}: {_first(reasons)}"
    unmeasurable = [p for p in context.history.entries if p.unmeasured]
    if unmeasurable and not holds and not fails:
        status = "invalid"
        sentence = f"{_topic(context)}could not be measured: {_invalid_at(context.axis, unmeasurable[0])}"
    extra = (bounds.reason,) if bounds.reason else ()
    why = _invalid(context, context.stop) if context.stop else context.ended or _NOT_DONE
    beside = shares.notes(context.axis, context.measurements, why)
    remarks = (*extra, *notes(context.history), *profile_notes(context.experiment, context.history), *beside)
    return _finding(context, status, (holds, fails), sentence, remarks)


def _stopped(context: AnswerContext, stop: TrialResult) -> Finding:
    reason = _first(stop.verdict.reasons)
    if stop.verdict.stops_run:
        status: Status = "failed"
        sentence = f"{_subject(context)}stopped at {context.axis.text(stop.ask.value)} (trial {stop.trial}): {reason}"
    elif context.history.holds or context.history.fails:
        status, both = "unfinished", context.history.holds and context.history.fails
        so_far = f"{_so_far(context)}: {_invalid(context, stop)}"
        sentence = _topic(context) + (
            so_far if both else _bounds_sentence(context, "wide", context.history.holds, context.history.fails)
        )
    else:
        status = "invalid"
        sentence = f"{_topic(context)}could not be measured: {_invalid(context, stop)}"
    rest = tuple(r for r in stop.verdict.reasons if r != reason)
    history = context.history
    return _finding(
        context, status, (history.holds, history.fails), sentence, (*rest, *notes(history), *short_bounds(history))
    )


def _invalid(context: AnswerContext, stop: TrialResult) -> str:
    """Where and why trials were INVALID too often."""
    tries = context.experiment.trial.invalid_retries + 1
    times = f"{tries} times in a row" if tries > 1 else "once"
    where = f"{context.axis.text(stop.ask.value)}, and the value before it"
    return f"INVALID {times} at {where} (trial {stop.trial}): {_first(stop.verdict.reasons)}"


def _unfinished(context: AnswerContext) -> Finding:
    history, why = context.history, context.ended or _NOT_DONE
    remarks = (*notes(history), *short_bounds(history))
    return _finding(
        context, "unfinished", (history.holds, history.fails), f"{_topic(context)}{_so_far(context)}: {why}", remarks
    )


def _so_far(context: AnswerContext) -> str:
    """The bounds that are known before the search is done."""
    history, axis = context.history, context.axis
    parts = []
    if history.holds:
        parts.append(f"{axis.prose(history.holds.value)} passed so far")
    if history.fails:
        parts.append(f"{axis.prose(history.fails.value)} failed")
    return ", ".join(parts) or ("no bound is confirmed yet" if history.trials else "not searched")


def _measured(context: AnswerContext, value: float) -> Finding:
    history, axis = context.history, context.axis
    entry = history.at(value)
    holds = entry if entry and entry.state is True else None
    fails = entry if entry and entry.state is False else None
    subject, text = _subject(context), _measured_value(context, value, entry)
    status: Status = "measured"
    if context.stop and context.stop.ask.value == value:
        status = "failed" if context.stop.verdict.stops_run else "invalid"
        sentence = f"{subject}stopped at {text} (trial {context.stop.trial}): {_first(context.stop.verdict.reasons)}"
    elif entry is not None and entry.unmeasured:
        status, sentence = "invalid", f"{subject}could not be measured: {text} was {unmeasured(entry.invalid)}"
    elif entry is None or not entry.confirmed:
        status, sentence = "unfinished", f"{subject}{text} not measured: {context.ended or 'the run is not done'}"
    else:
        meaning = {True: "every objective was met", False: "an objective was missed", None: "could not be decided"}
        why = _first([r for t in entry.deciding if t.verdict.kind is VerdictKind.FAILED for r in t.verdict.reasons])
        result = f"the system under test failed: {why}" if entry.crashed else meaning[entry.state]
        sentence = f"{subject}measured at {text}, {result}"
    name = f"{_name(axis)}, " if axis.fixed else ""
    here = tuple(n for n in notes(history) if n.startswith(axis.text(value)))
    finding = _finding(context, status, (holds, fails), sentence, here)
    return replace(finding, line=f"{name}{axis.dimension}={value:g}", trials=len(entry.results) if entry else 0)


def _measured_value(context: AnswerContext, value: float, entry: ValueHistory | None) -> str:
    """A value as text; for a profile, the load at which its trials were judged, or else the planned one."""
    text = context.axis.text(value)
    if context.experiment.what == "stages":
        return f"{context.axis.dimension} {text} ({context.experiment.stages[int(value)]})"
    if not varies(context.experiment, context.axis):
        return text
    return loads_of(entry) or f"a planned load of {text}"


def _whole_range(context: AnswerContext) -> str:
    """The sentence for a range that passes as a whole."""
    axis, ceiling = context.axis, context.experiment.ceiling
    if axis.dimension == "load" and ceiling is not None and _exceeds(context, ceiling):
        return (
            f"at least {axis.prose(axis.hard)} passed; streamgauge can generate at most {axis.prose(ceiling)} reliably "
            "on this machine, so the limit of the engine is not known: run `streamgauge calibrate`, or give the load "
            "driver more cores"
        )
    passed = f"everything {_up_to(axis)} {axis.prose(axis.hard)} passed, the end of the range"
    return f"{passed}; {_range_advice(context, hard=True)}"


def _exceeds(context: AnswerContext, ceiling: float) -> bool:
    span = context.experiment.span
    return max(span.between or span.values or (0.0,)) > ceiling


def _finding(
    context: AnswerContext, status: Status, entries: BoundEntries, sentence: str, remarks: tuple[str, ...]
) -> Finding:
    axis, (holds, fails) = context.axis, entries
    return Finding(
        line=_name(axis),
        engine=context.engine,
        dimension=axis.dimension,
        unit=axis.unit,
        status=status,
        holds=Bound(holds.value, holds.proof) if holds else None,
        fails=Bound(fails.value, fails.proof) if fails else None,
        sentence=sentence,
        notes=remarks,
        trials=context.history.trials,
        also=shares.measured(context.measurements),
    )


def _bound(history: AxisHistory, value: float | None, wanted: bool) -> ValueHistory | None:
    """The entry of a bound that the strategy returned, if the trials confirm it."""
    entry = None if value is None else history.at(value)
    return entry if entry and entry.state is wanted else None


def _status(axis: SearchAxis, holds: ValueHistory | None, fails: ValueHistory | None) -> Status:
    if holds and fails:
        close = axis.is_narrow(holds.value, fails.value) if axis.continuous else _are_adjacent(axis, holds, fails)
        return "bracketed" if close else "wide"
    if holds and holds.value == axis.hard:
        return "all-hold"
    return "none-holds" if fails and fails.value == axis.easy else "wide"


def _are_adjacent(axis: SearchAxis, holds: ValueHistory, fails: ValueHistory) -> bool:
    return axis.values.index(fails.value) - axis.values.index(holds.value) == 1


def _bounds_sentence(
    context: AnswerContext, status: Status, holds: ValueHistory | None, fails: ValueHistory | None
) -> str:
    axis = context.axis
    if holds and fails:
        apart = f"{axis.gap(holds.value, fails.value) * 100:.1f} % apart"
        return f"{axis.prose(holds.value)} passed, {axis.prose(fails.value)} failed ({apart})"
    if holds and status == "all-hold":
        return _whole_range(context)
    if fails and status == "none-holds":
        lowest = "the lowest load of the range" if axis.dimension == "load" else "the easiest value of the range"
        return f"even {axis.prose(axis.easy)}, {lowest}, missed the objective; {_range_advice(context, hard=False)}"
    if holds:
        return _one_bound(context, f"{axis.prose(holds.value)} passed", "no harder value")
    return _one_bound(context, f"{axis.prose(fails.value)} failed", "no easier value") if fails else _UNDECIDED


def _one_bound(context: AnswerContext, bound: str, missing: str) -> str:
    """One bound, and why the other one is missing."""
    beside = next((p for p in context.history.undecided if p.unmeasured), None)
    if beside is None:
        return f"{bound}; {missing} could be decided"
    return f"{bound}; {_unmeasured(context.axis, beside)}"


def _unmeasured(axis: SearchAxis, entry: ValueHistory) -> str:
    return f"{axis.prose(entry.value)} could not be measured because {_first(entry.invalid[-1].verdict.reasons)}"


def _invalid_at(axis: SearchAxis, entry: ValueHistory) -> str:
    return f"{axis.text(entry.value)} was {unmeasured(entry.invalid)}"


def _demand_sentence(
    context: AnswerContext, status: Status, holds: ValueHistory | None, fails: ValueHistory | None
) -> str | None:
    load = f"load {format_value(context.axis.fixed[0][1], 'rate')}" if context.axis.fixed else "the load"
    if holds and fails:
        failing = f"{context.axis.text(fails.value)} fail{'s' if fails.value == 1 else ''}"
        if status == "bracketed":
            return f"{load} needs {_instances(holds.value)} ({failing})"
        return f"{load} needs at most {_instances(holds.value)} ({failing}; nothing between them could be decided)"
    if holds and status == "all-hold":
        if context.axis.hard <= 1:
            return f"{load} needs {_instances(holds.value)}, the smallest number"
        return (
            f"{load} passes with {_instances(holds.value)}, the end of the range; {_range_advice(context, hard=True)}"
        )
    return f"{load} {_no_demand_sentence(context)}" if fails and status == "none-holds" else None


def _no_demand_sentence(context: AnswerContext) -> str:
    """The sentence if no number of instances passes: more of them may pass, unless they are slower."""
    all_instances, best = _instances(context.axis.easy), peak.fastest(context.history)
    if best is None:
        return f"fails even with {all_instances}, the end of the range; {_range_advice(context, hard=False)}"
    fastest = f"{_instances(best[0])} processed the most, {format_value(best[1], 'rate')}, and more are slower"
    return f"fails with {context.axis.hard:g} to {all_instances}: {fastest}; lower the load"


def _range_advice(context: AnswerContext, hard: bool) -> str:
    """Which end of the range the user should change."""
    axis = context.axis
    span = context.experiment.instances if axis.dimension == "instances" else context.experiment.span
    up = axis.upwards == hard
    if span.between is not None:
        return f"{'raise' if up else 'lower'} {axis.dimension}.between[{1 if up else 0}]"
    return f"add a {'higher' if up else 'lower'} value to {axis.dimension}"


def _subject(context: AnswerContext) -> str:
    """The beginning of a sentence: the parameter, the number of instances or the load that it is about."""
    fixed = dict(context.axis.fixed)
    if context.experiment.what == "stages":
        return ""  # the value names it
    if context.axis.dimension not in ("load", "instances"):
        return f"{context.axis.dimension} "
    if "instances" in fixed:
        return f"with {_instances(fixed['instances'])}: "
    return f"load {format_value(fixed['load'], 'rate')}: " if "load" in fixed else ""


def _topic(context: AnswerContext) -> str:
    """The beginning of a result: the sustainable throughput, or the parameter that was searched."""
    fixed = dict(context.axis.fixed)
    if context.axis.dimension != "load":
        return f"{context.axis.dimension}: " if context.axis.dimension != "instances" else _subject(context)
    deployed = f" with {_instances(fixed['instances'])}" if "instances" in fixed else ""
    return f"{TOPIC.removesuffix(': ')}{deployed}: "


def _lowest(context: AnswerContext) -> bool:
    """Whether the series has the lowest load. A failure at a higher load is an overload."""
    if context.axis.dimension != "instances" or not context.axis.fixed:
        return True
    span = context.experiment.span
    return context.axis.fixed[0][1] <= min(span.between or span.values)


def _easiest(context: AnswerContext) -> str:
    if context.axis.dimension == "instances":
        return f"the lowest load with {_instances(context.axis.easy)}"
    return f"{_subject(context)}{context.axis.text(context.axis.easy)}, the easiest value"


def _up_to(axis: SearchAxis) -> str:
    return "up to" if axis.upwards else "down to"


def _instances(count: float) -> str:
    return f"{count:g} instance{'' if count == 1 else 's'}"


def _name(axis: SearchAxis) -> str:
    return TrialRequest(axis.dimension, axis.easy, "probe", axis.fixed).line


def _first(reasons: tuple[str, ...] | list[str]) -> str:
    return reasons[0] if reasons else "no reason was given"
