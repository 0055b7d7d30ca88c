"""The notes of a finding: contradictions, estimates and values without a measurement, each as a sentence."""

from collections.abc import Iterable, Iterator, Sequence

from streamgauge.model.finding import TrialResult
from streamgauge.search.axes import SearchAxis
from streamgauge.search.history import AxisHistory, ValueHistory


def notes(history: AxisHistory) -> Iterator[str]:
    """All notes on one series."""
    yield from _inherited(history)
    yield from _too_many_instances(history)
    yield from _estimated(history)
    for entry in history.entries:
        yield from _disagreement(history, entry)
        yield from _overruled(history.axis, entry)
        yield from _undecided(history.axis, entry)
    yield from _not_monotone(history)


def short_bounds(history: AxisHistory) -> Iterator[str]:
    """A note for each bound of an unfinished search that only short trials support."""
    for entry, word in ((history.holds, "passed"), (history.fails, "failed")):
        if entry and not entry.confirmed:
            trials = trial_numbers(entry.proof)
            yield f"{history.axis.text(entry.value)} {word} so far, but only in short trials ({trials})"


def trial_numbers(trials: Iterable[int]) -> str:
    """``trial 3`` or ``trials 3, 5``."""
    listed = [str(n) for n in trials]
    return f"trial{'' if len(listed) == 1 else 's'} {', '.join(listed)}"


def _inherited(history: AxisHistory) -> Iterator[str]:
    inherited = history.axis.inherited
    if inherited is None:
        return
    count = history.axis.text(inherited.value)
    fewer, plural = "" if inherited.value == history.axis.hard else " or fewer", "" if inherited.value == 1 else "s"
    yield (
        f"{count}{fewer} instance{plural} {'were' if fewer or plural else 'was'} not tested, because {count} already "
        f"failed at the lower load {inherited.where} ({trial_numbers(inherited.trials)})"
    )


def _estimated(history: AxisHistory) -> Iterator[str]:
    """A failing bound that is computed from the CPU time of other processes."""
    fails = history.fails
    if fails is not None and fails.estimated:
        share = max((t.verdict.taken for t in history.results if t.trial in fails.proof), default=0.0)
        yield (
            f"the failing bound {history.axis.text(fails.value)} is estimated, because other processes or the "
            f"hypervisor used up to {share * 100:.1f} % of the CPU of the system under test in "
            f"{trial_numbers(fails.proof)}; "
            "stop other work on its cores and run again"
        )


def _too_many_instances(history: AxisHistory) -> Iterator[str]:
    """Numbers of instances that fail although a smaller number passes."""
    if history.worse:
        counts = sorted(p.value for p in history.worse)
        listed = ", ".join(f"{count:g}" for count in counts[:-1])
        text = f"{listed} and {counts[-1]:g} instances" if listed else f"{counts[-1]:g} instances"
        trials = sorted({number for p in history.worse for number in p.proof})
        yield f"the load also fails with {text} ({trial_numbers(trials)}): more instances make this system slower"


def _disagreement(history: AxisHistory, entry: ValueHistory) -> Iterator[str]:
    """Trials of one kind at one value that have different verdicts."""
    text = history.axis.text(entry.value)
    for kind, results in (("full-length trials", entry.full), ("short trials", entry.short)):
        if len({t.verdict.holds for t in results}) < 2:
            continue
        passed = sum(t.verdict.holds is True for t in results)
        what = "repetitions" if len(results) <= history.repetitions else kind
        contradict = ": the verdicts contradict each other, so it counts as undecided" if entry.contradictory else ""
        yield f"{text}: {passed} of {len(results)} {what} passed ({trial_numbers(_trials(results))}){contradict}"


def _overruled(axis: SearchAxis, entry: ValueHistory) -> Iterator[str]:
    """Full-length trials that contradict short ones."""
    opposite = [t for t in entry.short if t.verdict.holds is (not entry.state)]
    if entry.state is None or not entry.full or not opposite:
        return
    short_outcome, full_outcome = ("failed", "passed") if entry.state else ("passed", "failed")
    yield (
        f"{axis.text(entry.value)} {short_outcome} in a short trial ({trial_numbers(_trials(opposite))}) but "
        f"{full_outcome} at full length ({trial_numbers(entry.proof)}); the full-length result counts"
    )


def unmeasured(invalid: Sequence[TrialResult]) -> str:
    """Why a value could not be measured: how often its trial was INVALID, and the last reason."""
    reasons = invalid[-1].verdict.reasons
    often = "once" if len(invalid) == 1 else f"{len(invalid)} times"
    return f"INVALID {often} ({trial_numbers(_trials(invalid))}): {reasons[0] if reasons else 'no reason was given'}"


def _undecided(axis: SearchAxis, entry: ValueHistory) -> Iterator[str]:
    if entry.invalid:
        again = "" if entry.unmeasured else " again"
        yield f"{axis.text(entry.value)} could not be measured{again}: {unmeasured(entry.invalid)}"
    if entry.state is not None or entry.contradictory or entry.unmeasured:
        return
    reasons = [reason for t in entry.deciding for reason in t.verdict.reasons]
    why = f": {reasons[0]}" if reasons else ""
    yield f"{axis.text(entry.value)} could not be decided ({trial_numbers(_trials(entry.deciding))}){why}"


def _not_monotone(history: AxisHistory) -> Iterator[str]:
    fails = history.fails
    for entry in history.non_monotone:
        if fails is None:
            return
        yield (
            f"not monotone: {history.axis.text(fails.value)} failed ({trial_numbers(fails.proof)}), but the harder "
            f"value {history.axis.text(entry.value)} passed ({trial_numbers(entry.proof)}); the bounds end at the "
            "failure"
        )


def _trials(results: Iterable[TrialResult]) -> list[int]:
    return [t.trial for t in results]
