"""Answer: the kept trials of a run → its findings and its exit code. Runs nothing, so any run can be asked again."""

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
    """The codes of every verb, the same everywhere."""

    FINE = 0
    MISSED = 1
    """The objective is missed, or there is a regression."""
    USAGE = 2
    INVALID = 3
    """The driver or the machine failed: nothing is said of the system under test."""
    SUT_FAILED = 4
    NOTHING_MEASURED = 5
    NO_ANSWER = 6
    """Trials were measured, but the question is not answered: it stayed undecided, or the run ended too early."""
    BUG = 70
    INTERRUPTED = 130


_OF_STATUS = {"failed": ExitCode.SUT_FAILED, "invalid": ExitCode.INVALID}
_WORST_FIRST = (
    ExitCode.SUT_FAILED,
    ExitCode.NOTHING_MEASURED,
    ExitCode.INVALID,
    ExitCode.MISSED,
    ExitCode.NO_ANSWER,
)


@dataclass(frozen=True, slots=True)
class Explored:
    """What a run found, why it ended if not by itself, and the time of its trials in nanoseconds."""

    findings: tuple[Finding, ...]
    ended: str
    exit_code: ExitCode
    spent: int


def answer(experiment: Experiment, run: Run, ended: str = "") -> Explored:
    """What the kept trials of a run say, whether it is finished or not. Runs nothing."""
    findings: list[Finding] = []
    for choice in experiment.engines:
        past, starts = run.trial_results(choice.label), range(experiment.search.starts)
        searches = [build(experiment, choice.label, hint_of(run, choice.label, start), start) for start in starts]
        findings += combine([search.findings(past, ended) for search in searches])
    verdicts = {k.trial.number: k.verdict for k in run.trials() if _measured(k.measurement, k.verdict)}
    return Explored(tuple(findings), ended, exit_code_of(findings, verdicts), spent(run))


def _measured(measurement: Measurement, verdict: Verdict) -> bool:
    """Whether a trial says anything: events were published, or the system under test failed before any was."""
    return measurement.published_rate > 0 or verdict.kind is VerdictKind.FAILED


def hint_of(run: Run, engine: str, start: int = 0) -> float:
    """The load that an engine's search began with after this start, where its warm-up hinted at one, as the first
    trial keeps it.

    Without it a search that went by the hint would be answered as one that did not, and be called unfinished.
    """
    own = (kept for kept in run.trials() if (kept.trial.engine, kept.trial.ask.start) == (engine, start))
    warm_up = next((kept.facts.warm_up for kept in own), None)
    return float(warm_up.estimated_limit or 0.0) if warm_up else 0.0


def spent(run: Run) -> int:
    """Nanoseconds that the kept trials of a run took, in their own time."""
    return sum(kept.extent.count for kept in run.trials()) * SECOND


def exit_code_of(findings: Sequence[Finding], verdicts: Mapping[int, Verdict]) -> ExitCode:
    """The code for these findings; ``verdicts`` are those of the trials that say anything, by number."""
    codes = set() if verdicts else {ExitCode.NOTHING_MEASURED}
    for engine in {finding.engine for finding in findings}:
        codes |= _of_engine([f for f in findings if f.engine == engine], verdicts)
    if ExitCode.INVALID in codes and any(verdict.holds is not None for verdict in verdicts.values()):
        codes = (codes - {ExitCode.INVALID}) | {ExitCode.NO_ANSWER}  # some trials were decided: the rest is missing
    return next((code for code in _WORST_FIRST if code in codes), ExitCode.FINE)


def _of_engine(findings: Sequence[Finding], verdicts: Mapping[int, Verdict]) -> set[ExitCode]:
    codes = {_OF_STATUS.get(finding.status, ExitCode.FINE) for finding in findings}
    if not all(_answered(finding) for finding in findings):
        codes.add(ExitCode.NO_ANSWER)
    if all(finding.status == "none-holds" for finding in findings):
        codes.add(ExitCode.MISSED)  # where some line holds, those that do not are part of the answer
    missed = [f.fails for f in findings if f.status == "measured" and f.fails is not None]
    if missed:
        codes.add(ExitCode.MISSED)
    if missed and findings[0].fails is missed[0]:  # the easiest value: a crash above it is an overload
        kinds = {verdicts[number].kind for number in missed[0].trials if number in verdicts}
        codes |= {ExitCode.SUT_FAILED} if VerdictKind.FAILED in kinds else set()
    return codes


def _answered(finding: Finding) -> bool:
    """Whether a finding answers its question: with both bounds, or for a range that passes or fails as a whole."""
    if finding.status == "measured":
        return finding.holds is not None or finding.fails is not None
    if finding.status == "wide":
        return finding.holds is not None and finding.fails is not None
    return finding.status != "unfinished"
