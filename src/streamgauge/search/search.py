"""Search: a pure function from the results of past trials to the next trial. It runs nothing and keeps no state."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Finding, TrialResult
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Purpose, TrialRequest
from streamgauge.model.units import format_value
from streamgauge.search import answer, forecast, goals, near_hint, shares, strategies
from streamgauge.search.axes import InheritedFailure, SearchAxis
from streamgauge.search.history import EXTRA_REPEATS, AxisHistory, Bounds, NextTrial, Step, summarise

_MAX_VALUES_OF_RANGE = 60  # values of a range that may be requested before the search ends
_MAX_UNMEASURED = 2
"""The search ends after so many values in a row that could not be measured, because the machine stays disturbed."""


@dataclass(frozen=True)
class AxisState:
    """The state of one series: its history, and what comes next, a trial or the bounds."""

    history: AxisHistory
    next: TrialRequest | Bounds
    bounds: Bounds | None = None
    """None until they are found. They are set while shares of the passing load are still to be measured."""
    measurements: tuple[shares.ShareMeasurement, ...] = ()


@dataclass(frozen=True)
class Search:
    """The search of one experiment on one engine. It depends only on the past, so a run can be resumed."""

    experiment: Experiment
    engine: str
    hint: float = 0.0
    """An estimate of the limit from the warm-up, where the first trial is made; 0: there is none."""
    start: int = 0
    """The start of the system, if the whole search is repeated. Only the trials of this start count."""
    _cached: dict[SearchAxis, tuple[list[TrialResult], AxisState]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The last state of each series with its trials. It saves time and never changes a result."""

    @cached_property
    def axes(self) -> tuple[SearchAxis, ...]:
        """The axes of the experiment, those of the load with the hint."""
        axes = goals.axes_of(self.experiment)
        return tuple(replace(axis, hint=self.hint) if axis.dimension == "load" else axis for axis in axes)

    def next(self, past: Sequence[TrialResult]) -> TrialRequest | None:
        """The next trial; None if all bounds are found, or no more can be found."""
        results = self._of_this_start(past)
        if self._stopped(results):
            return None
        request = next((p.next for p in self._states(results) if isinstance(p.next, TrialRequest)), None)
        return replace(request, start=self.start) if request else None

    def _of_this_start(self, past: Sequence[TrialResult]) -> list[TrialResult]:
        """The trials of this start, as if it were the only one."""
        results = [result for result in past if result.ask.start == self.start]
        return [replace(result, ask=replace(result.ask, start=0)) for result in results] if self.start else results

    def findings(self, past: Sequence[TrialResult], ended: str = "") -> tuple[Finding, ...]:
        """The findings so far. ``ended`` is the reason why the run ended before the search was done."""
        results = self._of_this_start(past)
        stop = self._stopped(results)
        found: list[Finding] = []
        for state in self._states(results):
            stop_here = stop if stop and _belongs(stop, state.history.axis) else None
            why_ended = answer.stop_reason(stop) if stop else ended
            context = answer.AnswerContext(
                self.experiment,
                self.engine,
                state.history,
                state.bounds,
                stop_here,
                why_ended,
                state.measurements,
                confirmed=_both_confirmed(state),
            )
            found += answer.findings(context)
        return tuple(found)

    def forecast(self) -> forecast.Forecast:
        """The number of trials of all starts, if every verdict is clear."""
        return forecast.forecast(self.axes, self.next).times(self.experiment.search.starts)

    def max_trials(self, retries: int) -> int:
        """The largest possible number of trials, if each may be INVALID ``retries`` times in a row."""
        trial = self.experiment.trial
        if not self.experiment.searches:
            valid = sum(len(axis.values) for axis in self.axes) * trial.repetitions
        else:
            valid = sum(_max_results(axis, trial.repetitions) + trial.repetitions for axis in self.axes)
            valid += len(self.axes) * len(self.experiment.search.also)
        return (valid * (retries + 1) + (1 if retries else 0)) * self.experiment.search.starts

    def _stopped(self, past: Sequence[TrialResult]) -> TrialResult | None:
        """The trial after which the search cannot continue; None if it can.

        Its outputs were wrong, or it is the last of two values in a row that were INVALID too often.
        """
        for result in past:
            if result.verdict.stops_run:
                return result
        limit = _MAX_UNMEASURED * (self.experiment.trial.invalid_retries + 1)
        tail = past[-limit:]
        often = len(tail) == limit and all(t.verdict.kind is VerdictKind.INVALID for t in tail)
        return tail[-1] if often else None

    def _states(self, past: Sequence[TrialResult]) -> Iterator[AxisState]:
        """The state of every series, in order, because the demand of a load restricts the next one."""
        trials: dict[tuple[str, tuple[tuple[str, float], ...]], list[TrialResult]] = {}
        for result in past:
            trials.setdefault((result.ask.dimension, result.ask.fixed), []).append(result)
        state: AxisState | None = None
        for unrestricted in self.axes:
            axis = self._restricted(unrestricted, state) if state else unrestricted
            state = self._cached_state(axis, trials.get((axis.dimension, axis.fixed), []))
            yield state

    def _restricted(self, axis: SearchAxis, before: AxisState) -> SearchAxis:
        """Lower-bound restriction (Theodolite): what fails at a load fails at every higher load."""
        fails = before.history.fails
        restricts = self.experiment.what == "demand" and self.experiment.search.lower_bound
        if not restricts or fails is None or isinstance(before.next, TrialRequest):
            return axis
        where = format_value(before.history.axis.fixed[0][1], "rate")
        if fails.inherited and before.history.axis.inherited:
            return replace(axis, inherited=before.history.axis.inherited)
        return replace(axis, inherited=InheritedFailure(fails.value, fails.proof, where))

    def _cached_state(self, axis: SearchAxis, trials: list[TrialResult]) -> AxisState:
        cached, state = self._cached.get(axis, (None, None))
        if cached is None or state is None or len(cached) != len(trials) or not all(map(is_, cached, trials)):
            state = self._state(axis, trials)
            self._cached[axis] = (trials, state)
        return state

    def _state(self, axis: SearchAxis, trials: list[TrialResult]) -> AxisState:
        searched, extra = shares.split(self.experiment, trials)
        trial = self.experiment.trial
        history = summarise(axis, searched, trial.repetitions, trial.invalid_retries)
        step = self._repeat(history, searched) or self._advance(axis, history)
        history = replace(history, trials=len(trials))
        if isinstance(step, TrialRequest):
            return AxisState(history, step)
        holds, _ = answer.confirmed_bounds(history, step)
        measurements = shares.requested_shares(self.experiment, axis, holds.value if holds else None, searched, extra)
        return AxisState(history, shares.next_request(axis, measurements) or step, step, measurements)

    def _repeat(self, history: AxisHistory, trials: list[TrialResult]) -> TrialRequest | None:
        """A repetition of the last trial: because it was INVALID, or because its value needs more repetitions."""
        if not trials:
            return None
        last, entry = trials[-1].ask, history.at(trials[-1].ask.value)
        if trials[-1].verdict.kind is VerdictKind.INVALID:
            given_up = entry is not None and any(t.ask == last for t in entry.invalid)
            return None if given_up else last
        if last.purpose == "estimate":
            return None
        request = self._request(history, last.value, last.purpose)
        return request if request.repetition < history.repetitions else None

    def _advance(self, axis: SearchAxis, history: AxisHistory) -> TrialRequest | Bounds:
        """The next step of the strategy. If it returns bounds, both are confirmed at full length.

        With a hint, the failing bound is measured a second time, whatever the strategy is.
        """
        step = self._step(axis, history)
        if isinstance(step, NextTrial):
            return self._within_limit(history, step)
        for bound in (step.holds, step.fails):
            if bound is not None and not history.is_confirmed(bound):
                return self._within_limit(history, NextTrial(bound, "confirm"))
        again = near_hint.to_repeat(history) if axis.hint and step.fails is not None else None
        return step if again is None else self._within_limit(history, NextTrial(again, "confirm"))

    def _step(self, axis: SearchAxis, history: AxisHistory) -> Step:
        if not self.experiment.searches:
            return strategies.measure(axis, history)
        return strategies.next_step(self.experiment.search.strategy, axis, history)

    def _within_limit(self, history: AxisHistory, step: NextTrial) -> TrialRequest | Bounds:
        """The trial of a step, or the bounds if the series already has more trials than a search should need."""
        purpose = step.purpose
        if purpose == "probe" and not self.experiment.trial.early:
            purpose = "confirm"
        request = self._request(history, step.value, purpose)
        max_repetitions = history.repetitions + EXTRA_REPEATS
        requested = len(history.results) + sum(entry.unmeasured for entry in history.entries)
        given_up = (entry := history.at(step.value)) is not None and any(t.ask == request for t in entry.invalid)
        is_allowed = requested < _max_results(history.axis, history.repetitions) and not given_up
        if request.repetition < max_repetitions and is_allowed:
            return request
        why = "" if given_up else f"the verdicts still contradict each other after {len(history.results)} trials"
        return history.bounds(why)

    def _request(self, history: AxisHistory, value: float, purpose: Purpose) -> TrialRequest:
        entry = history.at(value)
        done = sum(t.ask.purpose == purpose for t in entry.results) if entry else 0
        return TrialRequest(history.axis.dimension, value, purpose, history.axis.fixed, done)


def build(experiment: Experiment, engine: str, hint: float = 0.0, start: int = 0) -> Search:
    """The search of this experiment on the engine with this label, after this start of it."""
    return Search(experiment, engine, hint, start)


def _both_confirmed(state: AxisState) -> bool:
    """Whether both bounds so far were measured as often as the rules require, even if the search is not done."""
    history, request = state.history, state.next
    ends = (history.holds, history.fails)
    if any(end is None or not end.confirmed or end.estimated for end in ends):
        return False
    if isinstance(request, TrialRequest) and any(end and end.value == request.value for end in ends):
        return False
    return not history.axis.hint or near_hint.to_repeat(history) is None


def _max_results(axis: SearchAxis, repetitions: int) -> int:
    """The number of valid trials after which the search of a series ends; a search should need fewer."""
    return 2 * (repetitions + EXTRA_REPEATS) * (len(axis.values) or _MAX_VALUES_OF_RANGE)


def _belongs(result: TrialResult, axis: SearchAxis) -> bool:
    return (result.ask.dimension, result.ask.fixed) == (axis.dimension, axis.fixed)
