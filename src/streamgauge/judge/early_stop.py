"""The sequential rule: look at a growing trial, and say when it may stop."""

import math
from collections.abc import Sequence
from dataclasses import replace

from streamgauge.judge import hang, trend_rules
from streamgauge.judge.disturbed import Mask, burst, until_renewal
from streamgauge.judge.measure import Trends, measure, trends
from streamgauge.judge.objectives import TRENDS, check, evidence, runs_away
from streamgauge.model.measurement import Holding
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND

ESTIMATE_ERROR = 0.01
"""An estimate is good enough once the standard error of the boundary is this share of it."""
LONGEST_PROBE = 2
"""A probe that is still unclear ends after this many times the trial's duration."""
_BETWEEN_LOOKS = 2


class Watch:
    """Decides after each second whether a trial has said enough. Pure: it sees nothing but the seconds."""

    def __init__(self, trial: Trial, objectives: Sequence[Objective], exact: bool = True) -> None:
        """``exact``: the search rests on where an overloaded trial sees the limit, which a longer one tells better."""
        self._trial, self._exact = replace(trial, queue_bound=0), exact
        self._trends = [o for o in objectives if o.metric in TRENDS]
        self._bounds = [o for o in objectives if o.metric in ("queue", "drops")]
        self._latencies = [o for o in objectives if o.metric in ("event-time", "processing-time")]
        self._full = trial.duration / SECOND
        self._limit = max(trial.limit / SECOND, self._full)
        self._lean = trend_rules.lean_of(trial.may_end_early, self._full, self._limit)
        self._needs_latencies = any(o.metric == "latency-trend" for o in objectives)
        # before this many seconds no look can end the trial
        confirms = trial.ask.purpose == "confirm"
        first = max(trend_rules.BROKEN_SECONDS, self._full / 2) if confirms else self._full
        judged = float(trend_rules.BROKEN_SECONDS) if trial.may_end_early else min(first, self._full)
        self._next_look = judged + (trial.warmup or 0) / SECOND
        self._between = self._full / 4 if confirms else math.inf
        self._heard = -1
        self.silence = 0
        """Nanoseconds without an acknowledgement, where the trial went on until the next one came; else 0."""
        self.stalled = False
        """None came until the trial's limit on stalls."""

    def wants(self, stop: int) -> bool:
        """Whether a look after so many seconds could end the trial; saves putting them together for nothing."""
        return stop >= self._next_look

    def look(self, seconds: Seconds) -> bool:
        """True: the trial may stop now, because it is decided or because its time is up.

        While the system under test acknowledges nothing, its lag is unknown: the trial goes on until it
        does, and ends then, or has stalled.
        """
        if not self.wants(seconds.stop):
            return False
        if self._heard >= 0:
            return self._waited(seconds)
        if not self._may_stop(seconds):
            return False
        if not hang.silence(seconds, self._trial.trigger) or self._is_broken(seconds):
            return True
        self._heard = hang.last_heard(seconds)
        return self._waited(seconds)

    def _waited(self, seconds: Seconds) -> bool:
        """Whether the next acknowledgement has come, or none came for too long."""
        self._next_look = 0.0
        heard = hang.last_heard(seconds)
        self.stalled = heard <= self._heard and seconds.stop * SECOND - self._heard > self._trial.stall
        self.silence = max(heard, seconds.stop * SECOND if self.stalled else 0) - self._heard
        return self.stalled or heard > self._heard

    def _is_broken(self, seconds: Seconds) -> bool:
        """Whether more of the trial would not make it better."""
        moves = trends(self._trial, seconds, latencies=self._needs_latencies)
        broken = "broken" in self._leans(moves) or runs_away(self._trends, moves)
        return broken or bool(self._bounds and self._out_of_bounds(seconds))

    def _may_stop(self, seconds: Seconds) -> bool:
        moves = trends(self._trial, seconds, latencies=self._needs_latencies)
        length = moves.judged_seconds
        settled = moves.steady or seconds.stop >= self._trial.warmup_limit / SECOND + self._full
        if length >= self._limit:
            return True
        if self._trial.may_end_early:
            self._next_look = seconds.stop + max(_BETWEEN_LOOKS, seconds.stop // 20)
            return self._ends_early(seconds, moves, settled)
        if length < self._full:
            self._next_look = seconds.stop + min(math.ceil(self._full - length), self._between)
            return settled and self._has_failed(seconds, moves)
        return self._decided(seconds, moves, settled)

    def _decided(self, seconds: Seconds, moves: Trends, settled: bool) -> bool:
        """Whether a trial that has its full length is clear."""
        length = moves.judged_seconds
        later = min(length * (trend_rules.LATER_LOOKS - 1), self._limit - length)
        self._next_look = math.ceil(seconds.stop + later)
        if settled and self._holds(seconds, moves):
            return True
        much = burst(self._trial, seconds)
        if much is not None:
            return settled and self._clear_without(seconds, much)
        if self._bounds and self._out_of_bounds(seconds):
            return True
        return settled and self._is_clear(seconds, moves) and not self._could_be_sharper(moves)

    def _could_be_sharper(self, moves: Trends) -> bool:
        """Whether more of an overloaded confirmation would say better where the limit is, which the search needs."""
        if not self._exact or self._trial.ask.purpose != "confirm" or "broken" not in self._leans(moves):
            return False
        return not self._is_sharp(moves) and not runs_away(self._trends, moves)

    def _has_failed(self, seconds: Seconds, moves: Trends) -> bool:
        """Whether an undisturbed confirmation need not have its full length, because more of it would not help.

        Where the search rests on its estimate of the limit, only a queue that runs away ends it.
        """
        confirms = self._trial.ask.purpose == "confirm" and moves.judged_seconds >= self._full / 2
        if not confirms or burst(self._trial, seconds) is not None:
            return False
        seen = [e for o in self._trends if not self._exact and (e := evidence(o, moves)) is not None]
        if any(trend_rules.lean_full(e, trend_rules.CLEAR_EARLY) == "broken" for e in seen) or runs_away(
            self._trends, moves
        ):
            return True
        return bool(not self._exact and self._bounds and self._out_of_bounds(seconds))

    def _holds(self, seconds: Seconds, moves: Trends) -> bool:
        """Everything holds, whoever else used the cores: then nothing has to be cut out."""
        states = self._leans(moves)
        within = not (self._bounds and self._out_of_bounds(seconds))
        return within and set(states) <= {"holds"} and not self._latencies

    def _clear_without(self, seconds: Seconds, much: Mask) -> bool:
        """The trial is clear without a burst of other work, up to where lag was back at its floor after it."""
        cut = until_renewal(self._trial, seconds, much)
        moves = trends(self._trial, seconds, latencies=self._needs_latencies, cut=much if cut is None else cut)
        if cut is None:
            return "broken" in self._leans(moves)
        if moves.judged_seconds < self._full:
            return False
        out = self._bounds and self._out_of_bounds(seconds, cut)
        return bool(out) or self._is_clear(seconds, moves, cut)

    def _leans(self, moves: Trends) -> list[Holding]:
        return [self._lean(e) if (e := evidence(o, moves)) is not None else "unclear" for o in self._trends]

    def _is_clear(self, seconds: Seconds, moves: Trends, cut: Mask | None = None) -> bool:
        states = self._leans(moves)
        return "broken" in states or not ("unclear" in states or self._needs_outputs(seconds, cut))

    def _needs_outputs(self, seconds: Seconds, cut: Mask | None = None) -> bool:
        """Whether a latency cannot be judged yet, and more outputs would help: those that came carry latencies."""
        if not self._latencies:
            return False
        measured = measure(Recording(self._trial, seconds), cut)
        carried = bool(measured.latencies) or not seconds["outputs"].any()
        states = [check(o, measured).state for o in self._latencies]
        return carried and "unclear" in states and "broken" not in states

    def _needs_results(self, seconds: Seconds) -> bool:
        """The same of a short trial, whose outputs must have begun to come."""
        return any(len(latency.count) for latency in seconds.latencies.values()) and self._needs_outputs(seconds)

    def _ends_early(self, seconds: Seconds, moves: Trends, settled: bool) -> bool:
        length = moves.judged_seconds
        ran_away = runs_away(self._trends, moves) and seconds.stop >= self._trial.warmup_limit / SECOND / 2
        longest = length >= LONGEST_PROBE * self._full
        if not settled or ran_away or longest:
            return ran_away or (longest and not self._needs_results(seconds))
        states = self._leans(moves)
        if "broken" in states:
            sharp = length >= trend_rules.HOLDS_SECONDS and self._is_sharp(moves)
            return self._trial.ask.purpose != "estimate" or sharp or length >= self._full
        if self._bounds and self._out_of_bounds(seconds):
            return True
        # a percentile has no sequential rule: where a latency is judged, only the full length says that it holds
        if not states or self._latencies:
            return length >= self._full and not self._needs_results(seconds)
        checkable = length * SECOND >= self._trial.least
        return checkable and all(state == "holds" for state in states)

    def _out_of_bounds(self, seconds: Seconds, cut: Mask | None = None) -> bool:
        """A longest queue or a dropped connection does not get better with time."""
        measured = measure(Recording(self._trial, seconds), cut)
        return any(check(o, measured).state == "broken" for o in self._bounds)

    @staticmethod
    def _is_sharp(moves: Trends) -> bool:
        growth = moves.lag_trend
        return growth is not None and growth.error <= ESTIMATE_ERROR * (moves.load - growth.mean)
