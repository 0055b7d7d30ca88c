"""Whether the outputs were checked, in a sentence."""

from collections.abc import Sequence

from streamgauge.model.measurement import VerdictKind
from streamgauge.model.seconds import Account
from streamgauge.model.units import format_count
from streamgauge.report.story import Judged

NO_ANSWER = "there is no reference result for this workload or pipeline to compare them with"


def outputs_checked(trials: Sequence[Judged]) -> str:
    """What was compared and what came out, or that nothing was, and why."""
    if not trials:
        return "Correctness is unchecked: no trial was finished."
    valid = [t for t in trials if t.verdict.kind is not VerdictKind.INVALID]
    if not valid:
        return (
            "Correctness is unchecked: every trial was INVALID, so nothing is known about the outputs."
            f"{_invalid(trials)}"
        )
    done = [t for t in valid if _compared(t.outcome.account)]
    if not done and (early := [t for t in valid if t.outcome.account.checked]):
        return f"Correctness is unchecked: no output was due before the trial ended ({early[-1].outcome.ending})."
    if not done:
        return f"Correctness is unchecked: {_why_not(valid)}. Counts and latency are still judged."
    accounts = [t.outcome.account for t in done]
    rows = sum(a.observed for a in accounts)
    counts = [(sum(getattr(a, name) for a in accounts), name) for name in ("lost", "duplicate", "wrong", "late")]
    bad = ", ".join(f"{format_count(n)} {name}" for n, name in counts)
    spoilt = _invalid(trials)
    where = f"{len(done)} trial{'' if len(done) == 1 else 's'}"
    left = len(valid) - len(done)
    rest = "" if not left else f" {left} trial{'' if left == 1 else 's'} could not be checked."
    if all(t.virtual for t in done):
        return (
            f"No outputs were checked (simulated run: outputs are modelled, nothing was computed). The model has "
            f"{format_count(rows)} rows in {where}: {bad}.{rest}{spoilt}"
        )
    return (
        f"Outputs were checked: {format_count(rows)} rows of {where} were compared with the reference result: "
        f"{bad}.{rest}{spoilt}"
    )


def _invalid(trials: Sequence[Judged]) -> str:
    """What was found in the outputs of INVALID trials; nothing if nothing was."""
    accounts = [t.outcome.account for t in trials if t.verdict.kind is VerdictKind.INVALID]
    counts = [(sum(getattr(a, name) for a in accounts), name) for name in ("lost", "duplicate", "wrong")]
    if not any(n for n, _ in counts):
        return ""
    shown = ", ".join(f"{format_count(n)} {name}" for n, name in counts)
    return f" Outputs of INVALID trials, whose cause is unknown: {shown}."


def _compared(account: Account) -> bool:
    """Whether there was anything to compare: an output that came, or one that had to."""
    return account.checked and (account.observed > 0 or account.expected > account.not_reached)


def _why_not(trials: Sequence[Judged]) -> str:
    """The engine's own reason first: it knows whose function had no reference."""
    for judged in trials:
        said = judged.facts.get("unchecked")
        if isinstance(said, str) and said.strip():
            return said.strip().rstrip(".")
    if any(t.trial.options.get("pipeline") and not t.trial.options.get("reference") for t in trials):
        return "the job is your own function, and engine.reference names no function that computes its expected results"
    broken = [t.outcome.ending for t in trials]
    if all(ending not in ("completed", "decided") for ending in broken):
        return f"no trial ran to its end ({broken[-1]})"
    return NO_ANSWER
