"""The sequential rule: look at a growing trial, and say when it may stop."""

import math
from collections.abc import Sequence
from dataclasses import replace

from streamgauge.judge import rule
from streamgauge.judge.checks import TRENDS, check, evidence, runs_away
from streamgauge.judge.measure import Trends, measure, trends
from streamgauge.model.measurement import Holding
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND

ESTIMATE_ERROR = 0.01
"""An estimate is good enough once the standard error of the boundary is this share of it."""
LONGEST_PROBE = 2
"""A probe that is still unclear ends after this many times the trial's duration."""
_LATER_LOOKS = 1.15
_BETWEEN_LOOKS = 2


class Watch:
    """Decides after each second whether a trial has said enough. Pure: it sees nothing but the seconds."""

    def __init__(self, trial: Trial, objectives: Sequence[Objective]) -> None:
        self._trial = replace(trial, queue_bound=0)
        self._trends = [o for o in objectives if o.metric in TRENDS]
        self._bounds = [o for o in objectives if o.metric in ("queue", "drops")]
        self._latencies = [o for o in objectives if o.metric in ("event-time", "processing-time")]
        self._full = trial.duration / SECOND
        self._lean = rule.lean_of(trial.may_end_early, self._full)
        self._limit = max(trial.limit / SECOND, self._full)
        self._needs_latencies = any(o.metric == "latency-trend" for o in objectives)
        # before this many seconds after a known warm-up no look can end the trial
        self._next_look = float(rule.BROKEN_SECONDS) if trial.may_end_early else self._full

    def wants(self, stop: int) -> bool:
        """Whether a look after so many seconds could end the trial; saves putting them together for nothing."""
        known = self._trial.warmup
        return stop - (known / SECOND if known is not None else 0) >= self._next_look

    def look(self, seconds: Seconds) -> bool:
        """True: the trial may stop now, because it is decided or because its time is up."""
        if not self.wants(seconds.stop):
            return False
        moves = trends(self._trial, seconds, latencies=self._needs_latencies)
        length = moves.judged_seconds
        settled = moves.steady or seconds.stop >= self._trial.warmup_limit / SECOND + self._full
        if length >= self._limit:
            return True
        if self._trial.may_end_early:
            self._next_look = seconds.stop + max(_BETWEEN_LOOKS, seconds.stop // 20)
            return self._ends_early(seconds, moves, settled)
        if length < self._full:
            self._next_look = seconds.stop + math.ceil(self._full - length)
            return False
        later = min(length * (_LATER_LOOKS - 1), self._limit - length)
        self._next_look = math.ceil(seconds.stop + later)
        if self._bounds and self._out_of_bounds(seconds):
            return True
        return settled and self._is_clear(seconds, moves)

    def _leans(self, moves: Trends) -> list[Holding]:
        return [self._lean(e) if (e := evidence(o, moves)) is not None else "unclear" for o in self._trends]

    def _is_clear(self, seconds: Seconds, moves: Trends) -> bool:
        states = self._leans(moves)
        return "broken" in states or not ("unclear" in states or self._needs_outputs(seconds))

    def _needs_outputs(self, seconds: Seconds) -> bool:
        """Whether a latency cannot be judged yet, and more outputs would help: those that came carry latencies."""
        if not self._latencies:
            return False
        measured = measure(Recording(self._trial, seconds))
        carried = bool(measured.latencies) or not seconds["outputs"].any()
        return carried and any(check(o, measured).state == "unclear" for o in self._latencies)

    def _ends_early(self, seconds: Seconds, moves: Trends, settled: bool) -> bool:
        length = moves.judged_seconds
        ran_away = runs_away(self._trends, moves) and seconds.stop >= self._trial.warmup_limit / SECOND / 2
        if not settled or ran_away or length >= LONGEST_PROBE * self._full:
            return ran_away or length >= LONGEST_PROBE * self._full
        states = self._leans(moves)
        if "broken" in states:
            sharp = length >= rule.HOLDS_SECONDS and self._is_sharp(moves)
            return self._trial.ask.purpose != "estimate" or sharp or length >= self._full
        if self._bounds and self._out_of_bounds(seconds):
            return True
        # a percentile has no sequential rule: where a latency is judged, only the full length says that it holds
        if not states or self._latencies:
            return length >= self._full
        return all(state == "holds" for state in states)

    def _out_of_bounds(self, seconds: Seconds) -> bool:
        """A longest queue or a dropped connection does not get better with time."""
        measured = measure(Recording(self._trial, seconds))
        return any(check(o, measured).state == "broken" for o in self._bounds)

    @staticmethod
    def _is_sharp(moves: Trends) -> bool:
        growth = moves.lag_trend
        return growth is not None and growth.error <= ESTIMATE_ERROR * (moves.load - growth.mean)
