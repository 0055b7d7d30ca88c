"""The circumstances of a result: what a reader needs to compare the bounds with others, each with its figure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Bound, Finding, Start
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.units import (
    SECOND,
    duration_text,
    format_count,
    format_duration,
    format_rate,
    format_share,
    share_text,
)
from streamgauge.report.view.run_report import JudgedTrial, failing_trial, holding_trial
from streamgauge.report.view.setup import resolution

_GROWTH = ("lag-trend", "latency-trend")
_FULL = ("confirm", "measure")
_WARM = 0.05
"""By how much the CPU time per event may fall during a search whose system was warm when it began."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How often one bound was measured, and how many of these trials had the same verdict."""

    trials: int
    agree: int


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How the bounds of one finding came about. None: not known, or it does not apply."""

    starts: int
    measured: dict[str, Measured]
    """By end, ``holds`` and ``fails``."""
    growth: dict[str, Any] | None
    """The objective that bounds growth, and the seconds over which each end was judged."""
    invalid: int
    undecided: int
    foreign: float | None
    """The largest share of the system's cores that others took, hypervisor included, in the trials of both ends."""
    steal: float | None
    """The same, the hypervisor only."""
    batch_over_trigger: float | None
    """Mean duration of a micro-batch at the passing end, as a share of the trigger."""
    warmup_steady: bool | None
    sentences: tuple[str, ...]
    resolution: str | None = None
    """How fine latencies are, in a sentence, which is one of ``sentences`` too; None in simulated time."""


def circumstances(finding: Finding, trials: Sequence[JudgedTrial], asked: Experiment | None) -> Circumstances:
    """Those of a finding; ``trials`` are all of its line."""
    passing = holding_trial(finding, trials)
    proofs = [t for t in trials if t.number in _proof(finding) and not t.virtual]
    count = {kind: sum(t.verdict.kind is kind for t in trials) for kind in (VerdictKind.INVALID, VerdictKind.UNDECIDED)}
    objective = next((o for o in asked.objectives if o.metric in _GROWTH), None) if asked else None
    seconds = {name: t.measurement.judged_seconds for name, t in _bound_trials(finding, trials)}
    batch, warm, fine = _batch(passing), _warm(trials, asked), resolution(trials)
    measured = {name: _measured(end, trials) for name, end in _ends(finding)}
    foreign = max((t.measurement.foreign_share for t in proofs), default=None)
    steal = max((t.measurement.steal_share for t in proofs), default=None)
    sentences = (
        _starts(finding),
        *_often(finding, measured),
        *_allowed(finding, objective, seconds),
        *_counted(len(trials), count[VerdictKind.INVALID], count[VerdictKind.UNDECIDED]),
        *_taken(foreign, steal),
        *([batch[1]] if batch else []),
        *([warm[1]] if warm else []),
        *([fine] if fine else []),
    )
    return Circumstances(
        starts=max(len(finding.starts), 1),
        measured=measured,
        growth={"objective": objective.text, "seconds": seconds} if objective else None,
        invalid=count[VerdictKind.INVALID],
        undecided=count[VerdictKind.UNDECIDED],
        foreign=foreign,
        steal=steal,
        batch_over_trigger=batch[0] if batch else None,
        warmup_steady=warm[0] if warm else None,
        sentences=sentences,
        resolution=fine or None,
    )


def _ends(finding: Finding) -> Iterator[tuple[str, Bound]]:
    for name, end in (("holds", finding.holds), ("fails", finding.fails)):
        if end is not None:
            yield name, end


def _proof(finding: Finding) -> set[int]:
    return {number for _, end in _ends(finding) for number in end.trials}


def _bound_trials(finding: Finding, trials: Sequence[JudgedTrial]) -> Iterator[tuple[str, JudgedTrial]]:
    for name, judged in (("holds", holding_trial(finding, trials)), ("fails", failing_trial(finding, trials))):
        if judged is not None:
            yield name, judged


def _measured(end: Bound, trials: Sequence[JudgedTrial]) -> Measured:
    """Full-length trials at this value after the start that the bound is of; short ones if there are no others."""
    starts = {t.trial.ask.start for t in trials if t.number in end.trials}
    valid = [
        t
        for t in trials
        if t.trial.ask.value == end.value and t.trial.ask.start in starts and t.verdict.kind is not VerdictKind.INVALID
    ]
    full = [t for t in valid if t.trial.ask.purpose in _FULL] or valid
    return Measured(len(full), sum(t.number in end.trials for t in full))


def _starts(finding: Finding) -> str:
    if len(finding.starts) < 2:
        return "one start of the system under test"
    shown = [_range(finding, start) for start in finding.starts]
    return f"{len(shown)} starts: {', '.join(shown[:-1])} and {shown[-1]}"


def _range(finding: Finding, start: Start) -> str:
    ends = [_value(finding, value) for value in (start.holds, start.fails) if value is not None]
    return " to ".join(ends)


def _value(finding: Finding, value: float) -> str:
    formats = {"rate": format_rate, "duration": format_duration, "share": format_share}
    return formats.get(finding.unit, format_count)(value)


def _noun(finding: Finding) -> str:
    return "load" if finding.dimension == "load" else "value"


def _often(finding: Finding, measured: Mapping[str, Measured]) -> Iterator[str]:
    noun, parts = _noun(finding), list[str]()
    for name, adjective, done in (("holds", "passing", "passed"), ("fails", "failing", "failed")):
        found = measured.get(name)
        if found is None or not found.trials:
            continue
        agree = "" if found.agree == found.trials else f" ({found.agree} of them {done})"
        parts.append(f"the {adjective} {noun}{'' if parts else ' was measured'} {_times(found.trials)}{agree}")
    if parts:
        yield ", ".join(parts)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _allowed(finding: Finding, objective: Objective | None, seconds: Mapping[str, int]) -> Iterator[str]:
    if objective is None or not seconds:
        return
    noun, threshold = _noun(finding), objective.threshold
    if objective.metric == "latency-trend":
        what = f"the latency may grow by {duration_text(threshold * SECOND)} per second"
    else:
        allowed = f"{share_text(threshold)} of the load" if objective.relative else format_rate(threshold)
        what = f"the lag may grow by {allowed}"
    names = {"holds": f"passing {noun}", "fails": f"failing {noun}"}
    yield f"{what}, judged over " + " and ".join(f"{value} s at the {names[end]}" for end, value in seconds.items())


def _counted(trials: int, invalid: int, undecided: int) -> Iterator[str]:
    if not trials:
        return
    if not invalid and not undecided:
        yield "no trial was INVALID or UNDECIDED"
        return
    counts = ((invalid, "INVALID"), (undecided, "UNDECIDED"))
    shown = " and ".join(f"{n} {'was' if n == 1 else 'were'} {kind}" for n, kind in counts if n)
    yield f"of {trials} trial{'' if trials == 1 else 's'} {shown}"


def _taken(foreign: float | None, steal: float | None) -> Iterator[str]:
    if foreign is None or steal is None:
        return
    taken, stolen = (share_text(round(max(share, 0.0), 3)) for share in (foreign, steal))
    yield (
        f"other processes and the hypervisor used up to {taken} of the CPU of the system under test at the two bounds "
        f"(steal time up to {stolen})"
    )


def _batch(passing: JudgedTrial | None) -> tuple[float, str] | None:
    """How long micro-batches were, as a share of the trigger: how near the passing load is to the limit."""
    batches = passing.facts.micro_batches if passing else None
    if batches is None or not batches.mean_ms or not batches.trigger_ms:
        return None
    share, took = batches.mean_ms / batches.trigger_ms, duration_text(round(batches.mean_ms) * SECOND // 1000)
    return share, f"micro-batches took {took} at the passing load, {share * 100:.0f} % of the trigger"


def _warm(trials: Sequence[JudgedTrial], asked: Experiment | None) -> tuple[bool, str] | None:
    """Whether the warm-up became steady: that of a system which serves many trials, or of each trial."""
    systems = [t.facts.warm_up for t in trials if t.facts.warm_up]
    steady_times = [(warm_up.steady, warm_up.seconds or 0.0) for warm_up in systems if warm_up.steady is not None]
    if steady_times:
        steady, seconds = min(steady_times)
        took = duration_text(round(seconds) * SECOND)
        how = f"became steady after {took}" if steady else f"did not become steady in {took}"
        return steady, f"the warm-up of the system {how}"
    if any(warm_up.estimated_limit for warm_up in systems):
        return _became_faster(trials)
    if asked is None or asked.trial.warmup is not None or not trials:
        return None
    valid = [t for t in trials if t.verdict.kind is not VerdictKind.INVALID]
    steady = all(t.measurement.steady for t in valid)
    shaky = ", ".join(str(t.number) for t in valid if not t.measurement.steady)
    return steady, f"every trial became steady after its warm-up{'' if steady else f', except {shaky}'}"


def _became_faster(trials: Sequence[JudgedTrial]) -> tuple[bool, str] | None:
    """Whether a growing load warmed the system up: an event then costs as much CPU time in the first trial as later.

    Under the growing load itself the cost falls anyway, because micro-batches become larger.
    """
    valid = [t for t in trials if t.trial.ask.purpose == "confirm" and t.verdict.kind is not VerdictKind.INVALID]
    rates = [t.measurement.carries for t in valid if t.measurement.carries]
    if len(rates) < 2:
        return None
    saved = 1 - rates[0] / rates[-1]
    changed = f"{'fell' if saved >= 0 else 'rose'} by {share_text(abs(saved))}"
    steady = saved <= _WARM
    outcome = "so the warm-up was long enough" if steady else "so the system was not warm yet in the first trial"
    return steady, f"the CPU time per event {changed} from the first to the last confirmation, {outcome}"
