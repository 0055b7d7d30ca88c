"""One finding from the searches of several starts of the system under test.

After another start, a system may sustain another load, because its memory layout and its compiled code differ. The
finding is that of the start whose middle is the median. It contains the results of all starts.
"""

from collections.abc import Sequence
from dataclasses import replace

from streamgauge.model.finding import Finding, Start
from streamgauge.model.units import format_value
from streamgauge.search.answer import TOPIC

_WITH_RESULT = ("bracketed", "wide", "all-hold", "none-holds")


def combine(searches: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """One finding for each series, from the findings of every start in order."""
    return tuple(_combined(found) for found in zip(*searches, strict=True))


def _combined(found: Sequence[Finding]) -> Finding:
    starts = {n: _start(n, f) for n, f in enumerate(found, 1) if f.status in _WITH_RESULT and (f.holds or f.fails)}
    listed = tuple(starts.values())
    if len(found) == 1:
        return replace(found[0], starts=listed)
    trials, of = sum(f.trials for f in found), f"of {len(found)}"
    for number, finding in enumerate(found, 1):
        if finding.status == "failed":
            sentence = f"start {number} {of}: {finding.sentence}"
            return replace(finding, sentence=sentence, trials=trials, starts=listed)
    if not listed:
        return replace(found[0], trials=trials)
    middle = sorted(listed, key=lambda start: start.middle)[(len(listed) - 1) // 2]
    chosen = found[middle.number - 1]
    missing = (
        f"start {n} {of} has no result: {f.sentence.removeprefix(TOPIC)}"
        for n, f in enumerate(found, 1)
        if n not in starts
    )
    chosen = replace(chosen, trials=trials, starts=listed, notes=(*chosen.notes, *missing))
    return replace(chosen, sentence=f"{chosen.sentence}; {spread_of(chosen)}")


def _start(number: int, finding: Finding) -> Start:
    holds, fails = (bound.value if bound else None for bound in (finding.holds, finding.fails))
    return Start(number, holds, fails, finding.trials)


def spread_of(finding: Finding) -> str:
    """How far the results of the starts are apart, as a sentence."""
    if finding.spread is None:
        return "one start"
    middles = sorted(start.middle for start in finding.starts)
    low, high = (format_value(value, finding.unit) for value in (middles[0], middles[-1]))
    return f"the midpoints of {len(middles)} starts range from {low} to {high}, {finding.spread * 100:.1f} % apart"
