"""AxisHistory: the results of the past trials of one series, value by value."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from streamgauge.model.finding import TrialResult
from streamgauge.model.measurement import Estimate, VerdictKind
from streamgauge.model.trial import Purpose, TrialRequest
from streamgauge.search.axes import SearchAxis


@dataclass(frozen=True, slots=True)
class NextTrial:
    """The next trial: its value and its purpose."""

    value: float
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Bounds:
    """The strategy is done: the hardest value that passes and the easiest that fails.

    The search confirms both and then calls the strategy again, because a confirmation may contradict it. ``reason``
    explains why the bounds are further apart than requested.
    """

    holds: float | None
    fails: float | None
    reason: str = ""


Step = NextTrial | Bounds


EXTRA_REPEATS = 2
"""The maximum number of full-length trials of one value in addition to its repetitions."""
_MIN_ERROR = 1e-4
"""No estimate counts as more precise than this share of it."""

_FULL_LENGTH = ("confirm", "measure")


@dataclass(frozen=True)
class ValueHistory:
    """The results of the trials at one value."""

    value: float
    state: bool | None
    """True: it passes. False: it fails. None: its trials could not decide."""
    confirmed: bool
    """All repetitions at full length were made."""
    results: tuple[TrialResult, ...] = ()
    proof: tuple[int, ...] = ()
    """Numbers of the trials with this outcome."""
    inherited: bool = False
    """It has no trial, because it failed at a lower load (lower-bound restriction)."""
    estimated: bool = False
    """The outcome is computed from trials here or at a lower load in which other processes used some CPU time."""
    invalid: tuple[TrialResult, ...] = ()
    """The trials of a request that was INVALID too often. The search continues without this value."""

    @property
    def full(self) -> tuple[TrialResult, ...]:
        """The full-length trials."""
        return tuple(t for t in self.results if t.ask.purpose in _FULL_LENGTH)

    @property
    def short(self) -> tuple[TrialResult, ...]:
        """Probes and estimates."""
        return tuple(t for t in self.results if t.ask.purpose not in _FULL_LENGTH)

    @property
    def deciding(self) -> tuple[TrialResult, ...]:
        """The full-length trials, or the short ones if there are none."""
        return self.full or self.short

    @property
    def unmeasured(self) -> bool:
        """Every trial at this value was INVALID."""
        return self.state is None and bool(self.invalid)

    @property
    def contradictory(self) -> bool:
        """The full-length trials contradict each other after all repetitions."""
        return self.state is None and len({t.verdict.holds for t in self.full} - {None}) > 1

    @property
    def crashed(self) -> bool:
        """The system under test failed at this value, for example with an error."""
        return self.state is False and any(t.verdict.kind is VerdictKind.FAILED for t in self.deciding)


@dataclass(frozen=True)
class AxisHistory:
    """The results of all past trials of one series. ``entries`` are ordered from easy to hard."""

    axis: SearchAxis
    entries: tuple[ValueHistory, ...]
    results: tuple[TrialResult, ...]
    """The trials of this series in order, without the INVALID ones."""
    repetitions: int = 1
    trials: int = 0
    """The number of trials of this series, including INVALID ones."""

    @cached_property
    def _by_value(self) -> dict[float, ValueHistory]:
        return {p.value: p for p in self.entries}

    def at(self, value: float) -> ValueHistory | None:
        """The results at a value; None if it was never requested."""
        return self._by_value.get(value)

    def state(self, value: float) -> bool | None:
        """Whether a value passes; None: not requested, or undecided."""
        entry = self.at(value)
        return entry.state if entry else None

    def is_confirmed(self, value: float) -> bool:
        """Whether all repetitions of a value were made at full length."""
        entry = self.at(value)
        return entry is not None and entry.confirmed

    @cached_property
    def fails(self) -> ValueHistory | None:
        """The easiest value that fails; for instances, with fewer than the passing number."""
        return next((p for p in self.entries[len(self._past_peak) :] if p.state is False), None)

    @cached_property
    def _past_peak(self) -> tuple[ValueHistory, ...]:
        """The values before the first passing one, if a harder value may pass where an easier one fails."""
        first = next((i for i, p in enumerate(self.entries) if p.state), 0)
        return self.entries[:first] if self.axis.may_peak else ()

    @cached_property
    def worse(self) -> tuple[ValueHistory, ...]:
        """Failing numbers of instances that are larger than the passing number."""
        return tuple(p for p in self._past_peak if p.state is False)

    @cached_property
    def holds(self) -> ValueHistory | None:
        """The hardest passing value that is easier than the easiest failing one, even if a harder value passes too."""
        below = (p for p in self.entries if self.fails is None or self.axis.harder(self.fails.value, p.value))
        return max((p for p in below if p.state), key=lambda p: self.axis.difficulty(p.value), default=None)

    def bounds(self, reason: str = "") -> Bounds:
        """Both bounds, as far as the trials show them."""
        return Bounds(self.holds.value if self.holds else None, self.fails.value if self.fails else None, reason)

    @cached_property
    def undecided(self) -> tuple[ValueHistory, ...]:
        """Values between the bounds whose trials could not decide."""
        return tuple(p for p in self.entries if p.state is None and self._between_bounds(p.value))

    @cached_property
    def non_monotone(self) -> tuple[ValueHistory, ...]:
        """Values that pass although an easier one fails."""
        fails = self.fails
        return tuple(p for p in self.entries if fails and p.state and self.axis.harder(p.value, fails.value))

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """The estimates of the limit by the trials, in order."""
        return tuple(t.verdict.estimate for t in self.results if t.verdict.estimate is not None)

    @cached_property
    def pooled(self) -> Estimate | None:
        """All estimates of the limit as one."""
        return pool(self.estimates, _MIN_ERROR)

    def _between_bounds(self, value: float) -> bool:
        harder = self.axis.harder
        above = self.holds is None or harder(value, self.holds.value)
        return above and (self.fails is None or harder(self.fails.value, value))


def pool(estimates: Iterable[Estimate], min_error: float) -> Estimate | None:
    """All estimates as one, weighted by the inverse of their variance; None if there are none.

    ``min_error`` is the smallest error of an estimate, as a share of it. Without it, an estimate with an error of zero
    would outweigh all others.
    """
    usable = [e for e in estimates if math.isfinite(e.boundary) and e.boundary > 0]
    if not usable:
        return None
    weights = [1 / max(e.error, min_error * e.boundary) ** 2 for e in usable]
    total = sum(weights)
    mean = sum(w * e.boundary for w, e in zip(weights, usable, strict=True)) / total
    return Estimate(mean, total**-0.5)


def summarise(axis: SearchAxis, past: Iterable[TrialResult], repetitions: int = 1, retries: int = 2) -> AxisHistory:
    """The history of a series. ``past`` contains only trials of this series.

    If a request was INVALID more than ``retries`` times, the search continues without its value.
    """
    trials = tuple(past)
    results = tuple(t for t in trials if t.verdict.kind is not VerdictKind.INVALID)
    groups: dict[float, list[TrialResult]] = {}
    for result in results:
        groups.setdefault(result.ask.value, []).append(result)
    given_up = _given_up(trials, retries)
    entries = [
        _value_history(value, tuple(groups.get(value, ())), repetitions, given_up.get(value, ()), votes=bool(axis.hint))
        for value in dict.fromkeys((*groups, *given_up))
    ]
    entries = _with_disturbed_overloads(axis, results, {p.value: p for p in entries})
    entries += [p for p in _inherited(axis) if p.value not in groups and p.value not in given_up]
    return AxisHistory(
        axis, tuple(sorted(entries, key=lambda p: axis.difficulty(p.value))), results, repetitions, len(trials)
    )


def _with_disturbed_overloads(
    axis: SearchAxis, results: Iterable[TrialResult], entries: dict[float, ValueHistory]
) -> list[ValueHistory]:
    """The entries with the failures that follow from disturbed trials.

    If other processes used a share s of the cores and the load L failed, then L / (1 − s) fails too. Such a failure is
    an estimate, unless an undisturbed trial confirms it.
    """
    for result in results:
        verdict = result.verdict
        if axis.dimension != "load" or verdict.kind is not VerdictKind.OVERLOADED or verdict.holds is not None:
            continue
        value = _failing(axis, result.ask.value / (1 - verdict.taken))
        if value is None:
            continue
        entry = entries.get(value) or ValueHistory(value, None, confirmed=False)
        if entry.state is None and not entry.contradictory:
            proof = (*entry.proof, result.trial) if entry.estimated else (result.trial,)
            entries[value] = replace(entry, state=False, confirmed=bool(entry.full), proof=proof, estimated=True)
    return list(entries.values())


def _failing(axis: SearchAxis, load: float) -> float | None:
    """The easiest value of the axis that is at least as hard as a failing load; None if there is none."""
    if axis.values:
        return min((v for v in axis.values if v >= load), default=None)
    return axis.rounded_within(load) if load <= axis.hard else None


def _given_up(trials: Iterable[TrialResult], retries: int) -> dict[float, tuple[TrialResult, ...]]:
    """By value, the trials of a request that was INVALID more than ``retries`` times."""
    by_request: dict[TrialRequest, list[TrialResult]] = {}
    for result in trials:
        if result.verdict.kind is VerdictKind.INVALID:
            by_request.setdefault(result.ask, []).append(result)
    return {request.value: tuple(failed) for request, failed in by_request.items() if len(failed) > retries}


def _value_history(
    value: float, results: tuple[TrialResult, ...], repetitions: int, invalid: tuple[TrialResult, ...], *, votes: bool
) -> ValueHistory:
    """The history of one value; ``votes``: the majority counts, even if trials still contradict each other."""
    full = tuple(t for t in results if t.ask.purpose in _FULL_LENGTH)
    deciding = full or results
    state = _majority(deciding) if deciding else None
    if not votes and len(full) >= repetitions + EXTRA_REPEATS and len({t.verdict.holds for t in full}) > 1:
        state = None
    if invalid and not full and invalid[-1].ask.purpose in _FULL_LENGTH:
        state = None  # the outcome of the short trials could not be confirmed
    proof = tuple(t.trial for t in deciding if t.verdict.holds is state)
    return ValueHistory(
        value, state, len(full) >= repetitions or bool(full and invalid), results, proof, invalid=invalid
    )


def _majority(results: tuple[TrialResult, ...]) -> bool | None:
    votes = [t.verdict.holds for t in results]
    if 2 * votes.count(True) > len(votes):
        return True
    # a tie counts as failing, because a value passes only if the trials show it
    failing = votes.count(False)
    return False if failing and 2 * failing >= len(votes) else None


def _inherited(axis: SearchAxis) -> list[ValueHistory]:
    inherited = axis.inherited
    if inherited is None:
        return []
    values = (v for v in axis.values if not axis.harder(inherited.value, v))
    return [ValueHistory(v, False, True, (), inherited.trials, inherited=True) for v in values]
