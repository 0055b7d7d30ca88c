"""Notes: what a finding must not hide, each a sentence with its numbers."""

from collections.abc import Iterable, Iterator, Sequence

from streamgauge.model.finding import Told
from streamgauge.search.axes import Line
from streamgauge.search.history import Known, Point


def notes(known: Known) -> Iterator[str]:
    """Everything about a line that a reader of its bracket should know."""
    yield from _taken(known)
    yield from _worse(known)
    yield from _estimated(known)
    for point in known.points:
        yield from _disagreement(known, point)
        yield from _overruled(known.line, point)
        yield from _undecided(known.line, point)
    yield from _not_monotone(known)


def short_ends(known: Known) -> Iterator[str]:
    """The ends of an unfinished bracket that only short trials speak for."""
    for point, word in ((known.holds, "passed"), (known.fails, "failed")):
        if point and not point.firm:
            yield f"{known.line.text(point.value)} {word} so far, but only in short trials ({numbers(point.proof)})"


def numbers(trials: Iterable[int]) -> str:
    """``trial 3`` or ``trials 3, 5``."""
    listed = [str(n) for n in trials]
    return f"trial{'' if len(listed) == 1 else 's'} {', '.join(listed)}"


def _taken(known: Known) -> Iterator[str]:
    taken = known.line.taken
    if taken is None:
        return
    count = known.line.text(taken.value)
    fewer, plural = "" if taken.value == known.line.hard else " or fewer", "" if taken.value == 1 else "s"
    yield (
        f"{count}{fewer} instance{plural} {'were' if fewer or plural else 'was'} not tested, because {count} already "
        f"failed at the lower load {taken.where} ({numbers(taken.trials)})"
    )


def _estimated(known: Known) -> Iterator[str]:
    """A failing end that is computed from what other processes took."""
    fails = known.fails
    if fails is not None and fails.estimated:
        share = max((t.verdict.taken for t in known.answers if t.trial in fails.proof), default=0.0)
        yield (
            f"the failing bound {known.line.text(fails.value)} is estimated, because other processes or the hypervisor "
            f"used up to {share:.1%} of the CPU of the system under test in {numbers(fails.proof)}; stop other work on "
            "its cores and run again"
        )


def _worse(known: Known) -> Iterator[str]:
    """The other end of a demand: with more instances than hold it fails as well."""
    if known.worse:
        counts = sorted(p.value for p in known.worse)
        listed = ", ".join(f"{count:g}" for count in counts[:-1])
        shown = f"{listed} and {counts[-1]:g} instances" if listed else f"{counts[-1]:g} instances"
        trials = sorted({number for p in known.worse for number in p.proof})
        yield f"the load also fails with {shown} ({numbers(trials)}): more instances make this system slower"


def _disagreement(known: Known, point: Point) -> Iterator[str]:
    """Trials of one kind and one value that said different things."""
    text = known.line.text(point.value)
    for kind, answers in (("full-length trials", point.full), ("short trials", point.short)):
        if len({t.verdict.holds for t in answers}) < 2:
            continue
        held = sum(t.verdict.holds is True for t in answers)
        what = "repetitions" if len(answers) <= known.repetitions else kind
        contradict = ": the verdicts contradict each other, so it counts as undecided" if point.contradictory else ""
        yield f"{text}: {held} of {len(answers)} {what} passed ({numbers(_trials(answers))}){contradict}"


def _overruled(line: Line, point: Point) -> Iterator[str]:
    """Full-length trials that contradict the short ones before them."""
    opposite = [t for t in point.short if t.verdict.holds is (not point.state)]
    if point.state is None or not point.full or not opposite:
        return
    said, says = ("failed", "passed") if point.state else ("passed", "failed")
    yield (
        f"{line.text(point.value)} {said} in a short trial ({numbers(_trials(opposite))}) but {says} "
        f"at full length ({numbers(point.proof)}); the full-length result counts"
    )


def unmeasured(invalid: Sequence[Told]) -> str:
    """Why a value could not be measured: how often its trial was INVALID, and the last reason."""
    reasons = invalid[-1].verdict.reasons
    often = "once" if len(invalid) == 1 else f"{len(invalid)} times"
    return f"INVALID {often} ({numbers(_trials(invalid))}): {reasons[0] if reasons else 'no reason was given'}"


def _undecided(line: Line, point: Point) -> Iterator[str]:
    if point.invalid:
        full = "" if point.unmeasured else " again"
        yield f"{line.text(point.value)} could not be measured{full}: {unmeasured(point.invalid)}"
    if point.state is not None or point.contradictory or point.unmeasured:
        return
    reasons = [reason for t in point.deciding for reason in t.verdict.reasons]
    why = f": {reasons[0]}" if reasons else ""
    yield f"{line.text(point.value)} could not be decided ({numbers(_trials(point.deciding))}){why}"


def _not_monotone(known: Known) -> Iterator[str]:
    fails = known.fails
    for point in known.beyond:
        if fails is None:
            return
        yield (
            f"not monotone: {known.line.text(fails.value)} failed ({numbers(fails.proof)}), but the harder value "
            f"{known.line.text(point.value)} passed ({numbers(point.proof)}); the bounds end at the failure"
        )


def _trials(answers: Iterable[Told]) -> list[int]:
    return [t.trial for t in answers]
