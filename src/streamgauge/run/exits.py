"""Exit codes: what a run says to the shell."""

from collections.abc import Mapping, Sequence
from enum import IntEnum

from streamgauge.model.finding import Finding
from streamgauge.model.measurement import Verdict, VerdictKind


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
    BUG = 70
    INTERRUPTED = 130


_OF_VERDICT = {
    VerdictKind.FAILED: ExitCode.SUT_FAILED,
    VerdictKind.INVALID: ExitCode.INVALID,
    VerdictKind.OVERLOADED: ExitCode.MISSED,
}
_WORST_FIRST = (ExitCode.SUT_FAILED, ExitCode.INVALID, ExitCode.NOTHING_MEASURED, ExitCode.MISSED)


def exit_code_of(findings: Sequence[Finding], verdicts: Mapping[str, Sequence[Verdict]]) -> ExitCode:
    """The code for these findings; ``verdicts`` are those of every trial, by engine."""
    codes = {_of_finding(f, verdicts.get(f.engine, ())) for f in findings}
    codes |= {_of_engine([f for f in findings if f.engine == engine]) for engine in {f.engine for f in findings}}
    if not any(verdicts.values()):
        codes.add(ExitCode.NOTHING_MEASURED)
    return next((code for code in _WORST_FIRST if code in codes), ExitCode.FINE)


def _of_finding(finding: Finding, verdicts: Sequence[Verdict]) -> ExitCode:
    if finding.status == "failed":
        return ExitCode.SUT_FAILED
    if finding.status == "invalid":
        return ExitCode.INVALID
    if finding.status == "measured":
        kinds = {_OF_VERDICT.get(v.kind, ExitCode.FINE) for v in verdicts if v.kind is not VerdictKind.INVALID}
        return next((code for code in _WORST_FIRST if code in kinds), ExitCode.FINE)
    return ExitCode.FINE


def _of_engine(findings: Sequence[Finding]) -> ExitCode:
    """Missed where no line of an engine holds anywhere; single lines that do not are part of the answer."""
    return ExitCode.MISSED if all(f.status == "none-holds" for f in findings) else ExitCode.FINE
