"""Shares: once the bracket is found, what the system does at a share of the load that it holds.

Karimov reports latencies at 100 % and at 90 % of the sustainable throughput. Where a confirmation was so close to a
share that the precision of the search does not tell them apart, it is the measurement, under its true share. Else one
more trial measures. It proves nothing: it is kept apart from the search, so that it can never move the bracket.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Told
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Ask
from streamgauge.model.units import format_share
from streamgauge.search.axes import Line
from streamgauge.search.notes import unmeasured

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Part:
    """A share of what holds, and the trial that measured it, if one did."""

    share: float
    value: float
    told: Told | None
    invalid: tuple[Told, ...] = ()
    """Its trials, if all were INVALID as often as they may be."""


def split(experiment: Experiment, trials: Sequence[Told]) -> tuple[list[Told], list[Told]]:
    """The trials of the search, and those at shares of what it found."""
    if experiment.what == "nothing":
        return list(trials), []
    searched = [t for t in trials if t.ask.purpose != "measure"]
    return searched, [t for t in trials if t.ask.purpose == "measure"]


def parts(
    experiment: Experiment, line: Line, holds: float | None, searched: Sequence[Told], beside: Sequence[Told]
) -> tuple[Part, ...]:
    """Every share that the experiment asks for; none where nothing holds. INVALID trials measured nothing."""
    if holds is None:
        return ()
    valid = {t.ask.value: t for t in beside if t.verdict.kind is not VerdictKind.INVALID}
    invalid = [t for t in beside if t.verdict.kind is VerdictKind.INVALID]
    full = [t for t in searched if t.ask.purpose == "confirm" and t.verdict.holds and t.ask.value != holds]
    found = (_part(line, share, holds, valid, full) for share in experiment.search.also)
    return tuple(_without(part, invalid, experiment.trial.invalid_retries) for part in found)


def _without(part: Part, invalid: Sequence[Told], retries: int) -> Part:
    """The part, given up if its trials were INVALID more often than they are repeated."""
    failed = tuple(t for t in invalid if t.ask.value == part.value)
    return replace(part, invalid=failed) if part.told is None and len(failed) > retries else part


def _part(line: Line, share: float, holds: float, valid: Mapping[float, Told], full: Sequence[Told]) -> Part:
    value = line.rounded(share * holds)
    near = min(full, key=lambda t: abs(t.ask.value - value), default=None)
    if value in valid or near is None or abs(near.ask.value / value - 1) > line.precision / 2:
        return Part(share, value, valid.get(value))
    return Part(round(near.ask.value / holds, _DIGITS), near.ask.value, near)


def next_ask(line: Line, wanted: Sequence[Part]) -> Ask | None:
    """The next share to measure; an INVALID one again, as often as it may be."""
    left = (part for part in wanted if part.told is None and not part.invalid)
    return next((Ask(line.dimension, part.value, "measure", line.fixed) for part in left), None)


def measured(wanted: Sequence[Part]) -> tuple[tuple[float, int], ...]:
    """(share, trial) of what was measured."""
    return tuple((part.share, part.told.trial) for part in wanted if part.told)


def notes(line: Line, wanted: Sequence[Part], why: str) -> Iterator[str]:
    """What a reader of the finding must know of them; ``why`` is the reason for what was not measured."""
    for part in wanted:
        place = f"{format_share(part.share)} of the passing load ({line.text(part.value)})"
        told = part.told
        if part.invalid:
            yield f"{place} was not measured: {unmeasured(part.invalid)}"
        elif told is None:
            yield f"{place} was not measured: {why}"
        elif told.verdict.holds is not True:
            reason = told.verdict.reasons[0] if told.verdict.reasons else "no reason was given"
            yield f"{place} was {told.verdict.kind} in trial {told.trial}, which does not change the bounds: {reason}"
