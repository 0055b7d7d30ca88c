"""The sequential rule: look at a growing trial, and say when it may stop."""

import math
from collections.abc import Sequence
from dataclasses import replace

from streamgauge.judge import rule
from streamgauge.judge.checks import TRENDS, check, evidence
from streamgauge.judge.measure import measure
from streamgauge.model.measurement import Measurement
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND

ESTIMATE_ERROR = 0.01
"""An estimate is good enough once the standard error of the boundary is this share of it."""
LONGEST_PROBE = 2
"""A probe that is still unclear ends after this many times the trial's duration."""
_LATER_LOOKS = 1.15


class Watch:
    """Decides after each second whether a trial has said enough. Pure: it sees nothing but the seconds."""

    def __init__(self, trial: Trial, objectives: Sequence[Objective]) -> None:
        self._trial = replace(trial, queue_bound=0)
        self._trends = [o for o in objectives if o.metric in TRENDS]
        self._others = [o for o in objectives if o.metric in ("queue", "drops", "event-time", "processing-time")]
        self._full = trial.duration / SECOND
        self._lean = rule.lean_of(trial.may_end_early, self._full)
        self._limit = max(trial.limit / SECOND, self._full)
        self._next_look = self._full if not trial.may_end_early else 0.0

    def look(self, seconds: Seconds) -> bool:
        """True: the trial may stop now, because it is decided or because its time is up."""
        known = self._trial.warmup
        if known is not None and seconds.stop - known / SECOND < self._next_look:
            return False
        if seconds.stop < self._next_look:
            return False
        measured = measure(Recording(self._trial, seconds))
        length = measured.judged_seconds
        settled = measured.steady or seconds.stop >= self._trial.warmup_limit / SECOND + self._full
        if length >= self._limit:
            return True
        if self._trial.may_end_early:
            return self._ends_early(measured, length, settled)
        if length < max(self._next_look, self._full):
            return False
        self._next_look = math.ceil(length * _LATER_LOOKS)
        return self._trial.ask.purpose == "measure" or (settled and self._is_clear(measured))

    def _is_clear(self, measured: Measurement) -> bool:
        states = [check(o, measured).state for o in self._trends]
        return "broken" in states or "unclear" not in states

    def _ends_early(self, measured: Measurement, length: int, settled: bool) -> bool:
        if length >= LONGEST_PROBE * self._full:
            return True
        if not settled:
            return False
        seen = [e for o in self._trends if (e := evidence(o, measured)) is not None]
        states = [self._lean(e) for e in seen]
        if "broken" in states:
            return self._trial.ask.purpose != "estimate" or self._is_sharp(measured) or length >= self._full
        if any(check(o, measured).state == "broken" and o.metric in ("queue", "drops") for o in self._others):
            return True
        # a percentile has no sequential rule: where a latency is judged, only the full length says that it holds
        latency = any(o.metric in ("event-time", "processing-time") for o in self._others)
        if len(seen) < len(self._trends) or not self._trends or latency:
            return length >= self._full
        return all(s == "holds" for s in states)

    @staticmethod
    def _is_sharp(measured: Measurement) -> bool:
        capacity = measured.capacity
        return capacity is not None and capacity.error <= ESTIMATE_ERROR * capacity.mean
