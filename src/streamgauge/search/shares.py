"""Measurements at shares of the passing load, after the bounds are found.

Karimov reports latencies at 100 % and at 90 % of the sustainable throughput. If a confirmation was as close to a share
as the precision of the search, it is the measurement, with its real share. Otherwise one more trial is made. It is
separate from the search, so it never changes the bounds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import TrialRequest
from streamgauge.model.units import share_text
from streamgauge.search.axes import SearchAxis
from streamgauge.search.notes import unmeasured

_DIGITS = 3


@dataclass(frozen=True, slots=True)
class ShareMeasurement:
    """A share of the passing load, and the trial that measured it; None: there is none yet."""

    share: float
    value: float
    result: TrialResult | None
    invalid: tuple[TrialResult, ...] = ()
    """Its trials, if they were INVALID too often."""


def split(experiment: Experiment, trials: Sequence[TrialResult]) -> tuple[list[TrialResult], list[TrialResult]]:
    """The trials of the search, and those at shares of its result."""
    if not experiment.searches:
        return list(trials), []
    searched = [t for t in trials if t.ask.purpose != "measure"]
    return searched, [t for t in trials if t.ask.purpose == "measure"]


def requested_shares(
    experiment: Experiment,
    axis: SearchAxis,
    holds: float | None,
    searched: Sequence[TrialResult],
    extra: Sequence[TrialResult],
) -> tuple[ShareMeasurement, ...]:
    """Every share that the experiment requests; none if no load passes."""
    if holds is None:
        return ()
    valid = {t.ask.value: t for t in extra if t.verdict.kind is not VerdictKind.INVALID}
    invalid = [t for t in extra if t.verdict.kind is VerdictKind.INVALID]
    full = [t for t in searched if t.ask.purpose == "confirm" and t.verdict.holds and t.ask.value != holds]
    found = (_share(axis, share, holds, valid, full) for share in experiment.search.also)
    return tuple(_given_up(each, invalid, experiment.trial.invalid_retries) for each in found)


def _given_up(measurement: ShareMeasurement, invalid: Sequence[TrialResult], retries: int) -> ShareMeasurement:
    """The measurement; without a further trial if its trials were INVALID more than ``retries`` times."""
    failed = tuple(t for t in invalid if t.ask.value == measurement.value)
    return replace(measurement, invalid=failed) if measurement.result is None and len(failed) > retries else measurement


def _share(
    axis: SearchAxis, share: float, holds: float, valid: Mapping[float, TrialResult], full: Sequence[TrialResult]
) -> ShareMeasurement:
    value = axis.rounded(share * holds)
    near = min(full, key=lambda t: abs(t.ask.value - value), default=None)
    if value in valid or near is None or abs(near.ask.value / value - 1) > axis.precision / 2:
        return ShareMeasurement(share, value, valid.get(value))
    return ShareMeasurement(round(near.ask.value / holds, _DIGITS), near.ask.value, near)


def next_request(axis: SearchAxis, measurements: Sequence[ShareMeasurement]) -> TrialRequest | None:
    """The next share to measure; None if there is no further one."""
    remaining = (each for each in measurements if each.result is None and not each.invalid)
    return next((TrialRequest(axis.dimension, each.value, "measure", axis.fixed) for each in remaining), None)


def measured(measurements: Sequence[ShareMeasurement]) -> tuple[tuple[float, int], ...]:
    """(share, trial) of each share that was measured."""
    return tuple((each.share, each.result.trial) for each in measurements if each.result)


def notes(axis: SearchAxis, measurements: Sequence[ShareMeasurement], why: str) -> Iterator[str]:
    """A note for each share that was not measured or did not pass; ``why`` is the reason if the run ended before."""
    for measurement in measurements:
        place = f"{share_text(measurement.share)} of the passing load ({axis.text(measurement.value)})"
        result = measurement.result
        if measurement.invalid:
            yield f"{place} was not measured: {unmeasured(measurement.invalid)}"
        elif result is None:
            yield f"{place} was not measured: {why}"
        elif result.verdict.holds is not True:
            reason = result.verdict.reasons[0] if result.verdict.reasons else "no reason was given"
            verdict = f"{result.verdict.kind} in trial {result.trial}"
            yield f"{place} was {verdict}, which does not change the bounds: {reason}"
