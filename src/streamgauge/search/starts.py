"""Starts: the whole search, made again on processes that were started for it, as one answer.

A system that is started again may hold another load: memory is laid out otherwise, other code was compiled. The answer
is that of the start whose middle is the median, with the results of all starts beside it.
"""

from collections.abc import Sequence
from dataclasses import replace

from streamgauge.model.finding import Finding, Start
from streamgauge.search.answer import TOPIC
from streamgauge.search.axes import format_value

_ANSWERED = ("bracketed", "wide", "all-hold", "none-holds")


def combine(searches: Sequence[Sequence[Finding]]) -> tuple[Finding, ...]:
    """One finding for each line, from those of every start in order. ``measured`` ones, without a search, are as they
    were."""
    return tuple(_combined(found) for found in zip(*searches, strict=True))


def _combined(found: Sequence[Finding]) -> Finding:
    starts = {n: _start(n, f) for n, f in enumerate(found, 1) if f.status in _ANSWERED and (f.holds or f.fails)}
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
    holds, fails = (end.value if end else None for end in (finding.holds, finding.fails))
    return Start(number, holds, fails, finding.trials)


def spread_of(finding: Finding) -> str:
    """How far the results of the starts are apart, in words."""
    if finding.spread is None:
        return "one start"
    middles = sorted(start.middle for start in finding.starts)
    unit = finding.unit
    low, high = (format_value(value, unit) for value in (middles[0], middles[-1]))  # type: ignore[arg-type]
    return f"the midpoints of {len(middles)} starts range from {low} to {high}, {finding.spread:.1%} apart"
