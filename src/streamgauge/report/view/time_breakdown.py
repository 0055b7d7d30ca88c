"""Where the seconds of a run went: starting, warm-up, measurement, drain and checking of every trial."""

from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.model.facts import Phases
from streamgauge.model.units import SECOND
from streamgauge.report.view.run_report import JudgedTrial, RunReport

_BETWEEN = "before and between the trials"
PARTS = ("starting", "warm-up", "measurement", "drain", "checking")


@dataclass(frozen=True, slots=True)
class TrialTime:
    """Seconds of one trial by part, as in ``PARTS``; None if it was not recorded."""

    trial: int
    parts: tuple[float | None, ...]

    @property
    def known(self) -> float:
        return sum(part for part in self.parts if part is not None)


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """The whole run."""

    trials: tuple[TrialTime, ...]
    totals: tuple[float | None, ...]
    warm_up: float | None
    """Seconds in which systems that serve many trials were started and warmed up; None where there were none."""
    other: float | None
    """Seconds from the beginning of the run to the end of its last trial that are in no part of a trial.

    The pauses of a run that was resumed are not among them.
    """
    other_is: str
    sentence: str


def time_breakdown(report: RunReport) -> TimeBreakdown:
    """What can be computed from the folder of the run."""
    times = tuple(_trial_time(t) for t in report.trials)
    totals = tuple(_total([time.parts[n] for time in times]) for n in range(len(PARTS)))
    segments = _invocations(report)
    wall = sum(segments) if segments else None
    known = sum(time.known for time in times)
    warm_up = _warm_up(report.trials)
    other = None if wall is None else max(wall - known - (warm_up or 0.0), 0.0)
    recorded = all(t.facts.phases for t in report.trials)
    other_is = _BETWEEN if recorded else f"starting, drain and checking of the trials, or {_BETWEEN}"
    return TimeBreakdown(times, totals, warm_up, other, other_is, _sentence(report.trials, known, segments))


def _total(parts: Sequence[float | None]) -> float | None:
    recorded = [part for part in parts if part is not None]
    return sum(recorded) if recorded else None


def _warm_up(trials: Sequence[JudgedTrial]) -> float | None:
    """Every trial of a system names the same start and warm-up of it: each is counted once."""
    warm_ups = [t.facts.warm_up for t in trials if t.facts.warm_up]
    systems = [warm_up for n, warm_up in enumerate(warm_ups) if n == 0 or warm_up != warm_ups[n - 1]]
    return _total([part for warm_up in systems for part in (warm_up.started, warm_up.seconds)])


def _trial_time(judged: JudgedTrial) -> TrialTime:
    phases, m = judged.facts.phases or Phases(), judged.measurement
    recorded, tail = m.warmup_seconds + m.judged_seconds, phases.tail
    if phases.load is not None:  # the load runs on while its last second is written: no measurement, so it is tail
        tail = (tail or 0.0) + max(phases.load - recorded, 0.0)
    warm, good = float(m.warmup_seconds), float(m.judged_seconds)
    return TrialTime(judged.number, (phases.starting, warm, good, tail, phases.checking))


def _invocations(report: RunReport) -> list[float]:
    """Seconds of wall-clock time of each run segment, from its start or resume to the end of its last kept trial.

    The pauses between them are not counted. A recording of an earlier version has no segments: all is one.
    """
    if report.created is None:
        return []
    spans = dict[float, float]()
    for judged in report.trials:
        end = _end(judged)
        if end is not None:
            segment = judged.facts.segment_ns
            began = report.created.timestamp() if segment is None else segment / SECOND
            spans[began] = max(end - began, spans.get(began, 0.0))
    return list(spans.values())


def _end(judged: JudgedTrial) -> float | None:
    """When a trial was over, in seconds since 1970; None if it was simulated or its load did not begin."""
    wall, after = judged.facts.wall_ns, _trial_time(judged)
    return None if wall is None else wall / SECOND + after.known - (after.parts[0] or 0.0)


def _sentence(trials: Sequence[JudgedTrial], known: float, segments: Sequence[float]) -> str:
    if not trials:
        return "No trial was finished."
    judged, wall = sum(t.measurement.judged_seconds for t in trials), sum(segments)
    if all(t.virtual for t in trials):
        return f"{known:.0f} s of simulated time, {judged} s of it in measurement phases."
    if not wall or wall < known:
        return f"{known:.0f} s were recorded, {judged} s of them in measurement phases."
    span = "from the start of the run to the end of the last trial"
    if len(segments) > 1:
        span = f"in {len(segments)} run segments, each to the end of its last trial, without the pauses between them"
    return f"{wall:.0f} s {span}; {judged / wall * 100:.0f} % of them in measurement phases."
