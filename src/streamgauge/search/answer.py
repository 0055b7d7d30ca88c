"""Answer: what is known of a line, said as a Finding."""

from dataclasses import dataclass, replace

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import End, Finding, Status, Told
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Ask
from streamgauge.search import peak, shares
from streamgauge.search.axes import Line, format_value
from streamgauge.search.history import Bracket, Known, Point
from streamgauge.search.notes import notes, short_ends, unmeasured

Ends = tuple[Point | None, Point | None]
"""What holds and what fails."""

TOPIC = "sustainable throughput: "
"""How the sentence of a result begins that is about the load."""

_NOT_DONE = "the search is not done"
_UNDECIDED = "could not be decided at any value"


@dataclass(frozen=True)
class Case:
    """A line to be answered: of which experiment, and how far it came."""

    experiment: Experiment
    engine: str
    known: Known
    bracket: Bracket | None
    """None as long as it is searched."""
    stop: Told | None
    """The trial of this line after which the search could not go on."""
    ended: str
    """Why the run ends before this line is done, if it does."""
    parts: tuple[shares.Part, ...] = ()
    """The shares of what holds that are measured beside it."""

    @property
    def line(self) -> Line:
        return self.known.line


def findings(case: Case) -> list[Finding]:
    """The answer of one line; where nothing is searched, one for each value."""
    if case.experiment.what == "nothing":
        return [_measured(case, value) for value in sorted(case.line.values)]
    if case.stop and (case.bracket is None or case.stop.verdict.stops_run):
        return [_stopped(case, case.stop)]
    return [_unfinished(case) if case.bracket is None else _finished(case, case.bracket)]


def stop_reason(stop: Told) -> str:
    """Why the other lines were not searched."""
    return f"the search stopped after trial {stop.trial}, which was {stop.verdict.kind}"


def ends(known: Known, bracket: Bracket) -> Ends:
    """The two ends of a bracket, as the trials prove them."""
    holds = _end(known, bracket.holds, True) or (bracket.holds is not None and known.holds) or None
    fails = _end(known, bracket.fails, False) or (bracket.fails is not None and known.fails) or None
    return holds, fails


def _finished(case: Case, bracket: Bracket) -> Finding:
    holds, fails = ends(case.known, bracket)
    status = _status(case.line, holds, fails)
    sentence = _demand(case, status, holds, fails) if case.line.dimension == "instances" else None
    sentence = sentence or _topic(case) + _extreme(case, status, holds, fails)
    if status == "none-holds" and fails and fails.crashed and _lowest(case):
        status = "failed"
        reasons = [r for t in fails.deciding for r in t.verdict.reasons]
        sentence = f"the system under test fails even at {_easiest(case)}: {_first(reasons)}"
    given_up = [p for p in case.known.points if p.unmeasured]
    if given_up and not holds and not fails:
        status = "invalid"
        sentence = f"{_topic(case)}could not be measured: {_at(case.line, given_up[0])}"
    extra = (bracket.reason,) if bracket.reason else ()
    why = _invalid(case, case.stop) if case.stop else case.ended or _NOT_DONE
    beside = shares.notes(case.line, case.parts, why)
    return _make(case, status, (holds, fails), sentence, (*extra, *notes(case.known), *beside))


def _stopped(case: Case, stop: Told) -> Finding:
    reason = _first(stop.verdict.reasons)
    if stop.verdict.stops_run:
        status: Status = "failed"
        sentence = f"{_subject(case)}stopped at {case.line.text(stop.ask.value)} (trial {stop.trial}): {reason}"
    elif case.known.holds or case.known.fails:
        status, both = "unfinished", case.known.holds and case.known.fails
        so_far = f"{_so_far(case)}: {_invalid(case, stop)}"
        sentence = _topic(case) + (so_far if both else _extreme(case, "wide", case.known.holds, case.known.fails))
    else:
        status = "invalid"
        sentence = f"{_topic(case)}could not be measured: {_invalid(case, stop)}"
    rest = tuple(r for r in stop.verdict.reasons if r != reason)
    known = case.known
    return _make(case, status, (known.holds, known.fails), sentence, (*rest, *notes(known), *short_ends(known)))


def _invalid(case: Case, stop: Told) -> str:
    """The driver or the machine failed as often as it may: where, and why."""
    tries = case.experiment.trial.invalid_retries + 1
    times = f"{tries} times in a row" if tries > 1 else "once"
    where = f"{case.line.text(stop.ask.value)}, and the value before it"
    return f"INVALID {times} at {where} (trial {stop.trial}): {_first(stop.verdict.reasons)}"


def _unfinished(case: Case) -> Finding:
    known, why = case.known, case.ended or _NOT_DONE
    said = (*notes(known), *short_ends(known))
    return _make(case, "unfinished", (known.holds, known.fails), f"{_topic(case)}{_so_far(case)}: {why}", said)


def _so_far(case: Case) -> str:
    """The bounds that are known although the search is not done."""
    known, line = case.known, case.line
    parts = []
    if known.holds:
        parts.append(f"{line.prose(known.holds.value)} passed so far")
    if known.fails:
        parts.append(f"{line.prose(known.fails.value)} failed")
    return ", ".join(parts) or ("no bound is confirmed yet" if known.trials else "not searched")


def _measured(case: Case, value: float) -> Finding:
    known, line = case.known, case.line
    point = known.at(value)
    holds = point if point and point.state is True else None
    fails = point if point and point.state is False else None
    subject, text = _subject(case), line.text(value)
    status: Status = "measured"
    if case.stop and case.stop.ask.value == value:
        status = "failed" if case.stop.verdict.stops_run else "invalid"
        sentence = f"{subject}stopped at {text} (trial {case.stop.trial}): {_first(case.stop.verdict.reasons)}"
    elif point is not None and point.unmeasured:
        status, sentence = "invalid", f"{subject}could not be measured: {_at(line, point)}"
    elif point is None or not point.firm:
        status, sentence = "unfinished", f"{subject}{text} not measured: {case.ended or 'the run is not done'}"
    else:
        meaning = {True: "every objective was met", False: "an objective was missed", None: "could not be decided"}
        why = _first([r for t in point.deciding if t.verdict.kind is VerdictKind.FAILED for r in t.verdict.reasons])
        result = f"the system under test failed: {why}" if point.crashed else meaning[point.state]
        sentence = f"{subject}measured at {text}, {result}"
    name = f"{_name(line)}, " if line.fixed else ""
    here = tuple(n for n in notes(known) if n.startswith(line.text(value)))
    made = _make(case, status, (holds, fails), sentence, here)
    return replace(made, line=f"{name}{line.dimension}={value:g}", trials=len(point.answers) if point else 0)


def _all_of(case: Case) -> str:
    """The sentence for a range that holds as a whole."""
    line, ceiling = case.line, case.experiment.ceiling
    if line.dimension == "load" and ceiling is not None and _asked_beyond(case, ceiling):
        return (
            f"at least {line.prose(line.hard)} passed; streamgauge can generate at most {line.prose(ceiling)} reliably "
            "on this machine, so the limit of the engine is not known: run `streamgauge calibrate`, or give the load "
            "driver more cores"
        )
    return f"everything {_up_to(line)} {line.prose(line.hard)} passed, the end of the range; {_move(case, hard=True)}"


def _asked_beyond(case: Case, ceiling: float) -> bool:
    span = case.experiment.span
    return max(span.between or span.values or (0.0,)) > ceiling


def _make(case: Case, status: Status, ends: Ends, sentence: str, said: tuple[str, ...]) -> Finding:
    line, (holds, fails) = case.line, ends
    return Finding(
        line=_name(line),
        engine=case.engine,
        dimension=line.dimension,
        unit=line.unit,
        status=status,
        holds=End(holds.value, holds.proof) if holds else None,
        fails=End(fails.value, fails.proof) if fails else None,
        sentence=sentence,
        notes=said,
        trials=case.known.trials,
        also=shares.measured(case.parts),
    )


def _end(known: Known, value: float | None, wanted: bool) -> Point | None:
    """The end that the strategy names, if the trials say the same."""
    point = None if value is None else known.at(value)
    return point if point and point.state is wanted else None


def _status(line: Line, holds: Point | None, fails: Point | None) -> Status:
    if holds and fails:
        close = line.narrow(holds.value, fails.value) if line.continuous else _adjacent(line, holds, fails)
        return "bracketed" if close else "wide"
    if holds and holds.value == line.hard:
        return "all-hold"
    return "none-holds" if fails and fails.value == line.easy else "wide"


def _adjacent(line: Line, holds: Point, fails: Point) -> bool:
    return line.values.index(fails.value) - line.values.index(holds.value) == 1


def _extreme(case: Case, status: Status, holds: Point | None, fails: Point | None) -> str:
    line = case.line
    if holds and fails:
        apart = f"{line.gap(holds.value, fails.value) * 100:.1f} % apart"
        return f"{line.prose(holds.value)} passed, {line.prose(fails.value)} failed ({apart})"
    if holds and status == "all-hold":
        return _all_of(case)
    if fails and status == "none-holds":
        lowest = "the lowest load of the range" if line.dimension == "load" else "the easiest value of the range"
        return f"even {line.prose(line.easy)}, {lowest}, missed the objective; {_move(case, hard=False)}"
    if holds:
        return _one_bound(case, f"{line.prose(holds.value)} passed", "no harder value")
    return _one_bound(case, f"{line.prose(fails.value)} failed", "no easier value") if fails else _UNDECIDED


def _one_bound(case: Case, bound: str, missing: str) -> str:
    """One bound, and why the other one is missing."""
    beside = next((p for p in case.known.undecided if p.unmeasured), None)
    if beside is None:
        return f"{bound}; {missing} could be decided"
    return f"{bound}; {_unmeasured(case.line, beside)}"


def _unmeasured(line: Line, point: Point) -> str:
    return f"{line.prose(point.value)} could not be measured because {_first(point.invalid[-1].verdict.reasons)}"


def _at(line: Line, point: Point) -> str:
    return f"{line.text(point.value)} was {unmeasured(point.invalid)}"


def _demand(case: Case, status: Status, holds: Point | None, fails: Point | None) -> str | None:
    load = f"load {format_value(case.line.fixed[0][1], 'rate')}" if case.line.fixed else "the load"
    if holds and fails:
        failing = f"{case.line.text(fails.value)} fail{'s' if fails.value == 1 else ''}"
        if status == "bracketed":
            return f"{load} needs {_instances(holds.value)} ({failing})"
        return f"{load} needs at most {_instances(holds.value)} ({failing}; nothing between them could be decided)"
    if holds and status == "all-hold":
        if case.line.hard <= 1:
            return f"{load} needs {_instances(holds.value)}, the smallest number"
        return f"{load} passes with {_instances(holds.value)}, the end of the range; {_move(case, hard=True)}"
    return f"{load} {_no_demand(case)}" if fails and status == "none-holds" else None


def _no_demand(case: Case) -> str:
    """No number of instances holds: more of them may, unless they are slower."""
    most, best = _instances(case.line.easy), peak.most(case.known)
    if best is None:
        return f"fails even with {most}, the end of the range; {_move(case, hard=False)}"
    fastest = f"{_instances(best[0])} processed the most, {format_value(best[1], 'rate')}, and more are slower"
    return f"fails with {case.line.hard:g} to {most}: {fastest}; lower the load"


def _move(case: Case, hard: bool) -> str:
    """Which end of the range the user should move."""
    line = case.line
    span = case.experiment.instances if line.dimension == "instances" else case.experiment.span
    up = line.upwards == hard
    if span.between is not None:
        return f"{'raise' if up else 'lower'} {line.dimension}.between[{1 if up else 0}]"
    return f"add a {'higher' if up else 'lower'} value to {line.dimension}"


def _subject(case: Case) -> str:
    """What the sentence is about, where the line alone does not say it."""
    fixed = dict(case.line.fixed)
    if case.line.dimension not in ("load", "instances"):
        return f"{case.line.dimension} "
    if "instances" in fixed:
        return f"with {_instances(fixed['instances'])}: "
    return f"load {format_value(fixed['load'], 'rate')}: " if "load" in fixed else ""


def _topic(case: Case) -> str:
    """What a result is about: the sustainable throughput, or the parameter that was searched."""
    fixed = dict(case.line.fixed)
    if case.line.dimension != "load":
        return f"{case.line.dimension}: " if case.line.dimension != "instances" else _subject(case)
    deployed = f" with {_instances(fixed['instances'])}" if "instances" in fixed else ""
    return f"{TOPIC.removesuffix(': ')}{deployed}: "


def _lowest(case: Case) -> bool:
    """A crash at a high load is an overload; at the lowest load the system under test is broken."""
    if case.line.dimension != "instances" or not case.line.fixed:
        return True
    span = case.experiment.span
    return case.line.fixed[0][1] <= min(span.between or span.values)


def _easiest(case: Case) -> str:
    if case.line.dimension == "instances":
        return f"the lowest load with {_instances(case.line.easy)}"
    return f"{_subject(case)}{case.line.text(case.line.easy)}, the easiest value"


def _up_to(line: Line) -> str:
    return "up to" if line.upwards else "down to"


def _instances(count: float) -> str:
    return f"{count:g} instance{'' if count == 1 else 's'}"


def _name(line: Line) -> str:
    return Ask(line.dimension, line.easy, "probe", line.fixed).line


def _first(reasons: tuple[str, ...] | list[str]) -> str:
    return reasons[0] if reasons else "no reason was given"
