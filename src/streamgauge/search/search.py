"""Search: asked for the next trial, told the verdict. It runs nothing and knows only the past it is shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import is_

from streamgauge.model.experiment import Experiment
from streamgauge.model.finding import Finding, Told
from streamgauge.model.measurement import VerdictKind
from streamgauge.model.trial import Ask, Purpose
from streamgauge.search import answer, forecast, goals, shares, strategies
from streamgauge.search.axes import Line, Taken, format_value
from streamgauge.search.history import EXTRA, Bracket, Known, Step, Try, learn

_LONGEST_SPAN = 60  # values that a continuous line may ask for before it is told to stop


_UNMEASURED = 2
"""Values in a row that could not be measured before the search ends: the machine does not get quieter."""


@dataclass(frozen=True)
class Place:
    """Where one line stands: what is known of it, and what comes next, a trial or its bracket."""

    known: Known
    next: Ask | Bracket
    bracket: Bracket | None = None
    """Once it is found, also while shares of it are still to be measured."""
    parts: tuple[shares.Part, ...] = ()


@dataclass(frozen=True)
class Search:
    """The search of one experiment on one engine: a pure function of the past, so it replays and resumes."""

    experiment: Experiment
    engine: str
    hint: float = 0.0
    """A load near the limit, where a warm-up hints at one: the first trial need not go to the end of the range."""
    start: int = 0
    """Which start of the system it is of, where the whole search is repeated: only its own trials count."""
    _last: dict[Line, tuple[list[Told], Place]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Where each line stood when last looked at. It saves work on lines that are done and never changes an answer."""

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        lines = goals.lines(self.experiment)
        return tuple(replace(line, hint=self.hint) if line.dimension == "load" else line for line in lines)

    def next(self, past: Sequence[Told]) -> Ask | None:
        """The next trial; None when everything is found, or nothing more can be."""
        own = self._own(past)
        if self._stopped(own):
            return None
        ask = next((p.next for p in self._places(own) if isinstance(p.next, Ask)), None)
        return replace(ask, start=self.start) if ask else None

    def _own(self, past: Sequence[Told]) -> list[Told]:
        """The trials of this start, as if there were no other."""
        own = [told for told in past if told.ask.start == self.start]
        return [replace(told, ask=replace(told.ask, start=0)) for told in own] if self.start else own

    def findings(self, past: Sequence[Told], ended: str = "") -> tuple[Finding, ...]:
        """The answers so far. ``ended`` says why the run stops before the search is done."""
        own = self._own(past)
        stop = self._stopped(own)
        found: list[Finding] = []
        for place in self._places(own):
            here = stop if stop and _belongs(stop, place.known.line) else None
            elsewhere = answer.stop_reason(stop) if stop else ended
            case = answer.Case(self.experiment, self.engine, place.known, place.bracket, here, elsewhere, place.parts)
            found += answer.findings(case)
        return tuple(found)

    def forecast(self) -> forecast.Forecast:
        """How many trials this will take if every trial is clear, over all starts."""
        return forecast.forecast(self.lines, self.next).times(self.experiment.search.starts)

    def most_trials(self, retries: int) -> int:
        """A bound on the number of trials, whatever they say, if each may be INVALID ``retries`` times in a row."""
        trial = self.experiment.trial
        if self.experiment.what == "nothing":
            valid = sum(len(line.values) for line in self.lines) * trial.repetitions
        else:
            valid = sum(_most_answers(line, trial.repetitions) + trial.repetitions for line in self.lines)
            valid += len(self.lines) * len(self.experiment.search.also)
        return (valid * (retries + 1) + (1 if retries else 0)) * self.experiment.search.starts

    def _stopped(self, past: Sequence[Told]) -> Told | None:
        """The trial after which no search can go on: falsified output, or two values in a row that were INVALID as
        often as they may be."""
        for told in past:
            if told.verdict.stops_run:
                return told
        most = _UNMEASURED * (self.experiment.trial.invalid_retries + 1)
        tail = past[-most:]
        often = len(tail) == most and all(t.verdict.kind is VerdictKind.INVALID for t in tail)
        return tail[-1] if often else None

    def _places(self, past: Sequence[Told]) -> Iterator[Place]:
        """Where every line stands. One after the other, as the demand of a load helps the next."""
        trials: dict[tuple[str, tuple[tuple[str, float], ...]], list[Told]] = {}
        for told in past:
            trials.setdefault((told.ask.dimension, told.ask.fixed), []).append(told)
        place: Place | None = None
        for plain in self.lines:
            line = self._restricted(plain, place) if place else plain
            place = self._remembered(line, trials.get((line.dimension, line.fixed), []))
            yield place

    def _restricted(self, line: Line, before: Place) -> Line:
        """Lower-bound restriction (Theodolite): what fails at a load fails at every higher one."""
        fails = before.known.fails
        restricts = self.experiment.what == "demand" and self.experiment.search.lower_bound
        if not restricts or fails is None or isinstance(before.next, Ask):
            return line
        where = format_value(before.known.line.fixed[0][1], "rate")
        if fails.taken and before.known.line.taken:
            return replace(line, taken=before.known.line.taken)
        return replace(line, taken=Taken(fails.value, fails.proof, where))

    def _remembered(self, line: Line, trials: list[Told]) -> Place:
        seen, place = self._last.get(line, (None, None))
        if seen is None or place is None or len(seen) != len(trials) or not all(map(is_, seen, trials)):
            place = self._place(line, trials)
            self._last[line] = (trials, place)
        return place

    def _place(self, line: Line, trials: list[Told]) -> Place:
        searched, beside = shares.split(self.experiment, trials)
        trial = self.experiment.trial
        known = learn(line, searched, trial.repetitions, trial.invalid_retries)
        step = self._again(known, searched) or self._onward(line, known)
        known = replace(known, trials=len(trials))
        if isinstance(step, Ask):
            return Place(known, step)
        holds, _ = answer.ends(known, step)
        parts = shares.parts(self.experiment, line, holds.value if holds else None, searched, beside)
        return Place(known, shares.next_ask(line, parts) or step, step, parts)

    def _again(self, known: Known, trials: list[Told]) -> Ask | None:
        """An INVALID trial is repeated as it was, as often as it may be, and a value as often as there are
        repetitions."""
        if not trials:
            return None
        last, point = trials[-1].ask, known.at(trials[-1].ask.value)
        if trials[-1].verdict.kind is VerdictKind.INVALID:
            given_up = point is not None and any(t.ask == last for t in point.invalid)
            return None if given_up else last
        if last.purpose == "estimate":
            return None
        ask = self._ask(known, last.value, last.purpose)
        return ask if ask.repetition < known.repetitions else None

    def _onward(self, line: Line, known: Known) -> Ask | Bracket:
        """The strategy's next step; when it has its bracket, both ends are confirmed at full length."""
        step = self._step(line, known)
        if isinstance(step, Try):
            return self._bounded(known, step)
        for end in (step.holds, step.fails):
            if end is not None and not known.firm(end):
                return self._bounded(known, Try(end, "confirm"))
        return step

    def _step(self, line: Line, known: Known) -> Step:
        if self.experiment.what == "nothing":
            return strategies.measure(line, known)
        return strategies.next_step(self.experiment.search.strategy, line, known)

    def _bounded(self, known: Known, step: Try) -> Ask | Bracket:
        """The trial that a step wants, unless the line has had more than any sound search needs."""
        purpose = step.purpose
        if purpose == "probe" and not self.experiment.trial.early:
            purpose = "confirm"
        ask = self._ask(known, step.value, purpose)
        most = known.repetitions + EXTRA
        asked = len(known.answers) + sum(point.unmeasured for point in known.points)
        given_up = (point := known.at(step.value)) is not None and any(t.ask == ask for t in point.invalid)
        if ask.repetition < most and asked < _most_answers(known.line, known.repetitions) and not given_up:
            return ask
        why = "" if given_up else f"the verdicts still contradict each other after {len(known.answers)} trials"
        return known.bracket(why)

    def _ask(self, known: Known, value: float, purpose: Purpose) -> Ask:
        point = known.at(value)
        done = sum(t.ask.purpose == purpose for t in point.answers) if point else 0
        return Ask(known.line.dimension, value, purpose, known.line.fixed, done)


def build(experiment: Experiment, engine: str, hint: float = 0.0, start: int = 0) -> Search:
    """The search of this experiment on the engine with this label, after this start of it."""
    return Search(experiment, engine, hint, start)


def _most_answers(line: Line, repetitions: int) -> int:
    """Valid trials after which a line is not searched any further: more than any sound search needs."""
    return 2 * (repetitions + EXTRA) * (len(line.values) or _LONGEST_SPAN)


def _belongs(told: Told, line: Line) -> bool:
    return (told.ask.dimension, told.ask.fixed) == (line.dimension, line.fixed)
