"""LoadProfile and Plan: the moment at which each event is due, as a pure and exact function of its number.

A profile is divided into segments of at most one second. Segment i starts at ``start[i]`` and contains the
events ``first[i] … first[i + 1] − 1``, evenly spread; ``first[i]`` is the floor of the exact integral of
the rate. All of it is integer arithmetic, so there is no drift and events keep their order, even after
billions of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from streamgauge.model.units import SECOND

Ints = npt.NDArray[np.int64]
Shape = Literal["constant", "steps", "ramp", "spikes", "fluctuating", "replay"]

_RAMP_STEP = SECOND // 10
_MAX_PER_SEGMENT = 9 * 10**9  # keeps count × nanoseconds inside 64 bits
_ROWS = 16_384  # rows of a column that fits into the CPU cache
_FEW_PER_SEGMENT = 32  # with fewer rows per segment, one search per event is cheaper
_COUNTING = np.arange(_ROWS, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the profile: the rate changes linearly from ``rate`` to ``until`` over ``duration``."""

    duration: int
    rate: float
    until: float

    def count(self, elapsed: int) -> Fraction:
        """Exact number of events due in the first ``elapsed`` nanoseconds."""
        t = Fraction(elapsed, SECOND)
        slope = (Fraction(self.until) - Fraction(self.rate)) / Fraction(self.duration, SECOND)
        return Fraction(self.rate) * t + slope * t * t / 2

    def floors(self, before: Fraction, elapsed: list[int]) -> list[int]:
        """Whole events due by each moment, if ``before`` were due at the start of the piece; faster than ``count``."""
        if self.rate != self.until:
            return [int(before + self.count(e)) for e in elapsed]
        rate = Fraction(self.rate)
        below = before.denominator * rate.denominator * SECOND
        at_start, per_nano = before.numerator * rate.denominator * SECOND, rate.numerator * before.denominator
        return [(at_start + per_nano * e) // below for e in elapsed]


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """The rate over time. After the last piece the profile continues with its last rate."""

    shape: Shape
    pieces: tuple[Piece, ...]

    @property
    def last_rate(self) -> float:
        """The rate at the end of the last piece."""
        return self.pieces[-1].until

    @property
    def peak(self) -> float:
        """The highest rate."""
        return max(max(p.rate, p.until) for p in self.pieces)

    @property
    def duration(self) -> int:
        """Length of all pieces."""
        return sum(p.duration for p in self.pieces)

    def mean_between(self, start: int, stop: int) -> float:
        """Mean events per second planned from ``start`` to ``stop``; an empty interval has the rate at its start."""
        first = self.pieces[0].rate
        if all(p.rate == p.until == first for p in self.pieces):
            return first
        stop = max(stop, start + 1)
        return float((self._count(stop) - self._count(start)) / Fraction(stop - start, SECOND))

    def _count(self, until: int) -> Fraction:
        """Exact number of events due in the first ``until`` nanoseconds."""
        total, left = Fraction(0), until
        for piece in self.pieces:
            total += piece.count(min(left, piece.duration))
            left -= piece.duration
            if left <= 0:
                return total
        return total + Fraction(self.last_rate) * Fraction(left, SECOND)

    def reaches(self, rate: float) -> int | None:
        """The first nanosecond at which this rate is planned; None: never."""
        begin = 0
        for piece in self.pieces:
            if piece.rate >= rate:
                return begin
            if piece.until >= rate:
                return begin + int(piece.duration * (rate - piece.rate) / (piece.until - piece.rate))
            begin += piece.duration
        return None

    def plan(self, horizon: int) -> "Plan":
        """The plan of all events of the first ``horizon`` nanoseconds."""
        pieces = list(self.pieces)
        rest = horizon - self.duration
        if rest > 0:
            pieces.append(Piece(rest, self.last_rate, self.last_rate))
        starts, firsts = [0], [0]
        begin, before = 0, Fraction(0)
        for piece in pieces:
            step = SECOND if piece.rate == piece.until else _RAMP_STEP
            elapsed = [*range(step, piece.duration, step), piece.duration]
            starts += [begin + e for e in elapsed]
            firsts += piece.floors(before, elapsed)
            begin, before = begin + piece.duration, before + piece.count(piece.duration)
        return Plan(np.array(starts, np.int64), np.array(firsts, np.int64))


@dataclass(frozen=True, eq=False)
class Plan:
    """The planned moment of every event: ``due(n)`` and its inverse ``count(t)``."""

    start: Ints
    first: Ints

    def __post_init__(self) -> None:
        if int(np.diff(self.first).max(initial=0)) > _MAX_PER_SEGMENT:
            raise ValueError("more than nine billion events in one second cannot be planned")

    @cached_property
    def total(self) -> int:
        """Number of events in the plan."""
        return int(self.first[-1])

    @cached_property
    def horizon(self) -> int:
        """End of the plan in nanoseconds."""
        return int(self.start[-1])

    def due(self, n: npt.ArrayLike) -> Ints:
        """Nanoseconds from the start of the load at which event ``n`` is due."""
        number = np.asarray(n, np.int64)
        if number.size and (int(number.min()) < 0 or int(number.max()) >= self.total):
            raise IndexError(f"the plan has the events 0 … {self.total - 1}")
        i = np.searchsorted(self.first, number, side="right") - 1
        length = self.start[i + 1] - self.start[i]
        held = self.first[i + 1] - self.first[i]
        result: Ints = self.start[i] + (number - self.first[i]) * length // held
        return result

    def due_range(self, start: int, stop: int, step: int = 1, *, origin: int = 0, unit: int = 1) -> Ints:
        """``(origin + due(n)) // unit`` for n = start, start + step … below stop: many times faster than ``due``.

        One division per event, by a number that is the same for a whole segment. ``unit`` is at most 10^6.
        """
        rows = max(0, -((start - stop) // step))
        if rows and (start < 0 or start + (rows - 1) * step >= self.total):
            raise IndexError(f"the plan has the events 0 … {self.total - 1}")
        ends = np.searchsorted(self.first, [start, stop])
        if rows < _FEW_PER_SEGMENT * int(ends[1] - ends[0]):
            return (origin + self.due(np.arange(start, stop, step))) // unit
        result = np.empty(rows, np.int64)
        done = 0
        while done < rows:
            number = start + done * step
            i = int(np.searchsorted(self.first, number, side="right")) - 1
            length, held = int(self.start[i + 1] - self.start[i]), int(self.first[i + 1] - self.first[i])
            into = number - int(self.first[i])
            here = result[done : done + min(_ROWS, -((into - held) // step))]
            whole, rest = divmod(origin + int(self.start[i]), unit)
            np.multiply(_COUNTING[: len(here)], step * length, out=here)
            here += into * length + rest * held
            here //= held * unit
            here += whole
            done += len(here)
        return result

    def count(self, t: npt.ArrayLike) -> Ints:
        """Number of events due before ``t`` nanoseconds: the least n with ``due(n) >= t``."""
        at = np.clip(np.asarray(t, np.int64), 0, self.horizon)
        i = np.clip(np.searchsorted(self.start, at, side="right") - 1, 0, len(self.start) - 2)
        length = self.start[i + 1] - self.start[i]
        held = self.first[i + 1] - self.first[i]
        result: Ints = self.first[i] - (-(at - self.start[i]) * held // length)
        return result


def constant(rate: float, duration: int = SECOND) -> LoadProfile:
    """A profile with one rate."""
    return LoadProfile("constant", (Piece(duration, rate, rate),))


def steps(levels: list[tuple[int, float]], shape: Shape = "steps") -> LoadProfile:
    """A profile of several rates in turn: ``(duration, rate)`` each."""
    return LoadProfile(shape, tuple(Piece(d, r, r) for d, r in levels))


def ramp(start: float, end: float, duration: int) -> LoadProfile:
    """A profile whose rate changes linearly."""
    return LoadProfile("ramp", (Piece(duration, start, end),))


def spikes(base: float, peak: float, every: int, length: int, duration: int) -> LoadProfile:
    """A profile with a base rate and a spike at the end of each period."""
    levels: list[tuple[int, float]] = []
    left = duration
    while left > 0:
        for part, rate in ((every - length, base), (length, peak)):
            cut = min(part, left)
            if cut > 0:
                levels.append((cut, rate))
            left -= cut
    return steps(levels, "spikes")


def fluctuating(rate: float, low: float, duration: int) -> LoadProfile:
    """Karimov's experiment 5: the full rate, a low rate and the full rate again, a third of the time each."""
    third = duration // 3
    return steps([(third, rate), (third, low), (duration - 2 * third, rate)], "fluctuating")


def replay(rates: list[float], step: int = SECOND) -> LoadProfile:
    """A profile of recorded rates, one per ``step``."""
    return steps([(step, rate) for rate in rates], "replay")


def planned_load(profile: LoadProfile, warmup: int | None, duration: int) -> float:
    """Mean of the planned events per second in the measurement phase: ``duration`` after the warm-up.

    A warm-up that a steady-state test ends (None) has no length before the trial, and counts as 0.
    """
    return profile.mean_between(warmup or 0, (warmup or 0) + duration)


def scaled(profile: LoadProfile, by: Callable[[float], float]) -> LoadProfile:
    """The same profile with ``by`` applied to every rate."""
    return LoadProfile(profile.shape, tuple(Piece(p.duration, by(p.rate), by(p.until)) for p in profile.pieces))
