"""The findings and the exit code of a run, computed from its stored trials. It runs nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Finding
from streamgauge.model.measurement import Measurement, Verdict, VerdictKind
from streamgauge.model.units import SECOND
from streamgauge.search import build
from streamgauge.search.starts import combine
from streamgauge.store import Run


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    OBJECTIVE_MISSED = 1
    """An objective is missed, or there is a regression."""
    USAGE = 2
    INVALID = 3
    """The load driver or the machine failed, so nothing is known about the system under test."""
    SUT_FAILED = 4
    NOTHING_MEASURED = 5
    NO_ANSWER = 6
    """Trials were measured, but there is no result: it stayed undecided, or the run ended too early."""
    INTERNAL_ERROR = 70
    INTERRUPTED = 130


_OF_STATUS = {"failed": ExitCode.SUT_FAILED, "invalid": ExitCode.INVALID}
_WORST_FIRST = (
    ExitCode.SUT_FAILED,
    ExitCode.NOTHING_MEASURED,
    ExitCode.INVALID,
    ExitCode.OBJECTIVE_MISSED,
    ExitCode.NO_ANSWER,
)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The findings of a run, why it ended before its search was done, if it did, and the time of its trials."""

    findings: tuple[Finding, ...]
    ended: str
    exit_code: ExitCode
    trial_time_ns: int


def result_of(experiment: Experiment, run: Run, ended: str = "") -> RunResult:
    """The result of the stored trials of a run, whether it is finished or not."""
    findings: list[Finding] = []
    for choice in experiment.engines:
        past, starts = run.trial_results(choice.label), range(experiment.search.starts)
        searches = [build(experiment, choice.label, stored_hint(run, choice.label, start), start) for start in starts]
        findings += combine([search.findings(past, ended) for search in searches])
    verdicts = {k.trial.number: k.verdict for k in run.trials() if _measured(k.measurement, k.verdict)}
    return RunResult(tuple(findings), ended, exit_code_of(findings, verdicts), trial_time_ns(run))


def _measured(measurement: Measurement, verdict: Verdict) -> bool:
    """Whether a trial has a result: events were published, or the system under test failed before."""
    return measurement.published_rate > 0 or verdict.kind is VerdictKind.FAILED


def stored_hint(run: Run, engine: str, start: int = 0) -> float:
    """The hint with which the search of an engine began after this start, as its first trial stores it; 0: none.

    Without it, the search would be recomputed without a hint and would seem unfinished.
    """
    own = (kept for kept in run.trials() if (kept.trial.engine, kept.trial.ask.start) == (engine, start))
    warm_up = next((kept.facts.warm_up for kept in own), None)
    return float(warm_up.estimated_limit or 0.0) if warm_up else 0.0


def trial_time_ns(run: Run) -> int:
    """The total length of the stored trials of a run in nanoseconds."""
    return sum(kept.extent.count for kept in run.trials()) * SECOND


def exit_code_of(findings: Sequence[Finding], verdicts: Mapping[int, Verdict]) -> ExitCode:
    """The exit code of these findings; ``verdicts`` are those of the trials with a result, by number."""
    codes = set() if verdicts else {ExitCode.NOTHING_MEASURED}
    for engine in {finding.engine for finding in findings}:
        codes |= _of_engine([f for f in findings if f.engine == engine], verdicts)
    if ExitCode.INVALID in codes and any(verdict.holds is not None for verdict in verdicts.values()):
        codes = (codes - {ExitCode.INVALID}) | {
            ExitCode.NO_ANSWER
        }  # some trials were decided, so only a part of the result is missing
    return next((code for code in _WORST_FIRST if code in codes), ExitCode.OK)


def _of_engine(findings: Sequence[Finding], verdicts: Mapping[int, Verdict]) -> set[ExitCode]:
    codes = {_OF_STATUS.get(finding.status, ExitCode.OK) for finding in findings}
    if not all(_answered(finding) for finding in findings):
        codes.add(ExitCode.NO_ANSWER)
    if all(finding.status == "none-holds" for finding in findings):
        codes.add(ExitCode.OBJECTIVE_MISSED)  # if one series passes, the others are part of the result
    missed = [f.fails for f in findings if f.status == "measured" and f.fails is not None]
    if missed:
        codes.add(ExitCode.OBJECTIVE_MISSED)
    if missed and findings[0].fails is missed[0]:  # the easiest value: a crash above it is an overload
        kinds = {verdicts[number].kind for number in missed[0].trials if number in verdicts}
        codes |= {ExitCode.SUT_FAILED} if VerdictKind.FAILED in kinds else set()
    return codes


def _answered(finding: Finding) -> bool:
    """Whether a finding is complete: it has both bounds, or the range passes or fails as a whole."""
    if finding.status == "measured":
        return finding.holds is not None or finding.fails is not None
    if finding.status == "wide":
        return finding.holds is not None and finding.fails is not None
    return finding.status != "unfinished"
