"""Known: what the past says about one line, value by value."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from streamgauge.model.finding import Told
from streamgauge.model.measurement import Estimate, VerdictKind
from streamgauge.model.trial import Ask, Purpose
from streamgauge.search.axes import Line


@dataclass(frozen=True, slots=True)
class Try:
    """Ask for a trial at this value."""

    value: float
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Bracket:
    """Nothing is left to explore: the hardest value that holds and the easiest that fails.

    The search has both ends confirmed and then asks the strategy once more, since a confirmation may
    contradict. ``reason`` says why a bracket is wider than asked for.
    """

    holds: float | None
    fails: float | None
    reason: str = ""


Step = Try | Bracket


EXTRA = 2
"""Full-length trials of one value beyond its repetitions, at most."""

_FIRM = ("confirm", "measure")


@dataclass(frozen=True)
class Point:
    """What is known of one value."""

    value: float
    state: bool | None
    """It holds, it fails, or (None) its trials could not decide."""
    firm: bool
    """Full-length trials say so, all repetitions of them."""
    answers: tuple[Told, ...] = ()
    proof: tuple[int, ...] = ()
    """Numbers of the trials that say so."""
    taken: bool = False
    """Not tried here: it failed at an easier place (lower-bound restriction)."""
    estimated: bool = False
    """No trial says so by itself: others took a share of the cores in one at a lower load, or in those here."""
    invalid: tuple[Told, ...] = ()
    """Trials that were INVALID as often as they may be: the search goes on without this value."""

    @property
    def full(self) -> tuple[Told, ...]:
        """The full-length trials."""
        return tuple(t for t in self.answers if t.ask.purpose in _FIRM)

    @property
    def short(self) -> tuple[Told, ...]:
        """Probes and estimates."""
        return tuple(t for t in self.answers if t.ask.purpose not in _FIRM)

    @property
    def deciding(self) -> tuple[Told, ...]:
        """A full-length trial overrides short ones."""
        return self.full or self.short

    @property
    def unmeasured(self) -> bool:
        """No trial here could be measured."""
        return self.state is None and bool(self.invalid)

    @property
    def contradictory(self) -> bool:
        """Full-length trials went on contradicting each other."""
        return self.state is None and len({t.verdict.holds for t in self.full} - {None}) > 1

    @property
    def crashed(self) -> bool:
        """The system under test itself failed here."""
        return self.state is False and any(t.verdict.kind is VerdictKind.FAILED for t in self.deciding)


@dataclass(frozen=True)
class Known:
    """Everything the past says about a line. ``points`` go from easy to hard."""

    line: Line
    points: tuple[Point, ...]
    answers: tuple[Told, ...]
    """The trials of this line in order, without the INVALID ones."""
    repetitions: int = 1
    trials: int = 0
    """How many trials this line took, INVALID ones too."""

    @cached_property
    def _by_value(self) -> dict[float, Point]:
        return {p.value: p for p in self.points}

    def at(self, value: float) -> Point | None:
        """What is known of a value; None if it was never asked for."""
        return self._by_value.get(value)

    def state(self, value: float) -> bool | None:
        """Does it hold? None: not asked, or undecided."""
        point = self.at(value)
        return point.state if point else None

    def firm(self, value: float) -> bool:
        """Did full-length trials say so?"""
        point = self.at(value)
        return point is not None and point.firm

    @cached_property
    def fails(self) -> Point | None:
        """The easiest value that fails; of instances, with fewer than hold."""
        return next((p for p in self.points[len(self._past_peak) :] if p.state is False), None)

    @cached_property
    def _past_peak(self) -> tuple[Point, ...]:
        """The easy end of a line that may peak, as far as nothing holds there; none where nothing holds at all."""
        first = next((i for i, p in enumerate(self.points) if p.state), 0)
        return self.points[:first] if self.line.may_peak else ()

    @cached_property
    def worse(self) -> tuple[Point, ...]:
        """More instances than hold, which fail as well."""
        return tuple(p for p in self._past_peak if p.state is False)

    @cached_property
    def holds(self) -> Point | None:
        """The hardest value that holds below the easiest failure: careful where the truth is not monotone."""
        below = (p for p in self.points if self.fails is None or self.line.harder(self.fails.value, p.value))
        return max((p for p in below if p.state), key=lambda p: self.line.order(p.value), default=None)

    def bracket(self, reason: str = "") -> Bracket:
        """Both ends as they are known now."""
        return Bracket(self.holds.value if self.holds else None, self.fails.value if self.fails else None, reason)

    @cached_property
    def undecided(self) -> tuple[Point, ...]:
        """Values between the two ends whose trials could not decide."""
        return tuple(p for p in self.points if p.state is None and self._inside(p.value))

    @cached_property
    def beyond(self) -> tuple[Point, ...]:
        """Values that hold although an easier one fails: the truth is not monotone."""
        fails = self.fails
        return tuple(p for p in self.points if fails and p.state and self.line.harder(p.value, fails.value))

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Where each trial saw the boundary of the load, in order."""
        return tuple(t.verdict.estimate for t in self.answers if t.verdict.estimate is not None)

    @cached_property
    def pooled(self) -> Estimate | None:
        """All estimates in one, weighted by the inverse of their variance."""
        usable = [e for e in self.estimates if math.isfinite(e.boundary) and e.boundary > 0]
        if not usable:
            return None
        # An error of zero would silence all others; nothing is known better than a ten-thousandth.
        weights = [1 / max(e.error, 1e-4 * e.boundary) ** 2 for e in usable]
        total = sum(weights)
        mean = sum(w * e.boundary for w, e in zip(weights, usable, strict=True)) / total
        return Estimate(mean, total**-0.5)

    def _inside(self, value: float) -> bool:
        harder = self.line.harder
        above = self.holds is None or harder(value, self.holds.value)
        return above and (self.fails is None or harder(self.fails.value, value))


def learn(line: Line, past: Iterable[Told], repetitions: int = 1, retries: int = 2) -> Known:
    """What the past says about this line. ``past`` has only trials of this line; each may be INVALID ``retries`` times
    before the search goes on without it."""
    trials = tuple(past)
    answers = tuple(t for t in trials if t.verdict.kind is not VerdictKind.INVALID)
    groups: dict[float, list[Told]] = {}
    for told in answers:
        groups.setdefault(told.ask.value, []).append(told)
    given_up = _given_up(trials, retries)
    points = [
        _point(value, tuple(groups.get(value, ())), repetitions, given_up.get(value, ()), votes=bool(line.hint))
        for value in dict.fromkeys((*groups, *given_up))
    ]
    points = _steered(line, answers, {p.value: p for p in points})
    points += [p for p in _taken(line) if p.value not in groups and p.value not in given_up]
    return Known(line, tuple(sorted(points, key=lambda p: line.order(p.value))), answers, repetitions, len(trials))


def _steered(line: Line, answers: Iterable[Told], points: dict[float, Point]) -> list[Point]:
    """What disturbed overloads add: with a share s of the cores taken at the load L, L / (1 − s) fails.

    A trial there may say so by itself, or be disturbed too: then the failure is an estimate.
    """
    for told in answers:
        verdict = told.verdict
        if line.dimension != "load" or verdict.kind is not VerdictKind.OVERLOADED or verdict.holds is not None:
            continue
        value = _failing(line, told.ask.value / (1 - verdict.taken))
        if value is None:
            continue
        point = points.get(value) or Point(value, None, firm=False)
        if point.state is None and not point.contradictory:
            proof = (*point.proof, told.trial) if point.estimated else (told.trial,)
            points[value] = replace(point, state=False, firm=bool(point.full), proof=proof, estimated=True)
    return list(points.values())


def _failing(line: Line, load: float) -> float | None:
    """The easiest value of the line that is no easier than a load that fails; None: the line ends before it."""
    if line.values:
        return min((v for v in line.values if v >= load), default=None)
    return line.plain(load) if load <= line.hard else None


def _given_up(trials: Iterable[Told], retries: int) -> dict[float, tuple[Told, ...]]:
    """By value, the trials of an ask that was INVALID more often than it is repeated."""
    by_ask: dict[Ask, list[Told]] = {}
    for told in trials:
        if told.verdict.kind is VerdictKind.INVALID:
            by_ask.setdefault(told.ask, []).append(told)
    return {ask.value: tuple(failed) for ask, failed in by_ask.items() if len(failed) > retries}


def _point(
    value: float, answers: tuple[Told, ...], repetitions: int, invalid: tuple[Told, ...], *, votes: bool
) -> Point:
    """What these trials say of a value; ``votes``: the majority counts, however often they contradict each other."""
    full = tuple(t for t in answers if t.ask.purpose in _FIRM)
    deciding = full or answers
    state = _majority(deciding) if deciding else None
    if not votes and len(full) >= repetitions + EXTRA and len({t.verdict.holds for t in full}) > 1:
        state = None
    if invalid and not full and invalid[-1].ask.purpose in _FIRM:
        state = None  # what short trials said could not be confirmed
    proof = tuple(t.trial for t in deciding if t.verdict.holds is state)
    return Point(value, state, len(full) >= repetitions or bool(full and invalid), answers, proof, invalid=invalid)


def _majority(answers: tuple[Told, ...]) -> bool | None:
    votes = [t.verdict.holds for t in answers]
    if 2 * votes.count(True) > len(votes):
        return True
    # A tie counts as failing: only what is shown to hold holds.
    failing = votes.count(False)
    return False if failing and 2 * failing >= len(votes) else None


def _taken(line: Line) -> list[Point]:
    taken = line.taken
    if taken is None:
        return []
    values = (v for v in line.values if not line.harder(taken.value, v))
    return [Point(v, False, True, (), taken.trials, taken=True) for v in values]
