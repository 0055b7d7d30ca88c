"""The sequential rule: whether a running trial may stop, checked after each of its seconds."""

import math
from collections.abc import Sequence
from dataclasses import replace

from streamgauge.judge import hang, trend_rules
from streamgauge.judge.disturbed import Mask, burst, until_renewal
from streamgauge.judge.measure import Trends, measure, measure_trends
from streamgauge.judge.objectives import TRENDS, evaluate, has_runaway_lag, trend_evidence
from streamgauge.model.measurement import ObjectiveState
from streamgauge.model.objective import Objective
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND

ESTIMATE_ERROR = 0.01
"""An estimate is precise if the standard error of the limit is at most this share of it."""
MAX_PROBE_LENGTH = 2
"""A probe that is not decided ends after this multiple of its duration."""
_MIN_CHECK_INTERVAL = 2
"""Seconds between two checks of a short trial, at least."""


class EarlyStopRule:
    """Decides after each second whether a trial may stop. It depends only on the seconds so far."""

    def __init__(self, trial: Trial, objectives: Sequence[Objective], exact: bool = True) -> None:
        """``exact``: the search needs a precise estimate of the limit, for which an overloaded trial is continued."""
        self._trial, self._exact = replace(trial, queue_bound=0), exact
        self._trends = [o for o in objectives if o.metric in TRENDS]
        self._maxima = [o for o in objectives if o.metric in ("queue", "drops")]
        self._latencies = [o for o in objectives if o.metric in ("event-time", "processing-time")]
        self._duration = trial.duration / SECOND
        self._limit = max(trial.limit / SECOND, self._duration)
        self._rule = trend_rules.trend_rule_for(trial.may_end_early, self._duration, self._limit)
        self._needs_latencies = any(o.metric == "latency-trend" for o in objectives)
        # no check before so many seconds can end the trial
        confirms = trial.ask.purpose == "confirm"
        first = max(trend_rules.BROKEN_SECONDS, self._duration / 2) if confirms else self._duration
        judged = float(trend_rules.BROKEN_SECONDS) if trial.may_end_early else min(first, self._duration)
        self._next_check = judged + (trial.warmup or 0) / SECOND
        self._check_interval = self._duration / 4 if confirms else math.inf
        self._last_acknowledgement = -1
        self.silence = 0
        """Nanoseconds without an acknowledgement, if the trial was extended until the next one; otherwise 0."""
        self.stalled = False
        """Whether there was none within ``trial.stall``."""

    def due(self, stop: int) -> bool:
        """Whether a check after so many seconds could end the trial. If not, they need not be assembled."""
        return stop >= self._next_check

    def decided(self, seconds: Seconds) -> bool:
        """Whether the trial may stop, because it is decided or has its longest duration.

        If the system under test acknowledges nothing, its lag is unknown. Then the trial continues until the next
        acknowledgement or until it has stalled.
        """
        if not self.due(seconds.stop):
            return False
        if self._last_acknowledgement >= 0:
            return self._acknowledged_or_stalled(seconds)
        if not self._may_stop(seconds):
            return False
        if not hang.unacknowledged_time(seconds, self._trial.trigger) or self._has_missed(seconds):
            return True
        self._last_acknowledgement = hang.last_acknowledgement(seconds)
        return self._acknowledged_or_stalled(seconds)

    def _acknowledged_or_stalled(self, seconds: Seconds) -> bool:
        """Whether the next acknowledgement came, or none came for too long."""
        self._next_check = 0.0
        latest = hang.last_acknowledgement(seconds)
        self.stalled = (
            latest <= self._last_acknowledgement
            and seconds.stop * SECOND - self._last_acknowledgement > self._trial.stall
        )
        self.silence = max(latest, seconds.stop * SECOND if self.stalled else 0) - self._last_acknowledgement
        return self.stalled or latest > self._last_acknowledgement

    def _has_missed(self, seconds: Seconds) -> bool:
        """Whether an objective is missed that a longer trial could not meet, and not only because of a burst.

        The burst is excluded as it is for the verdict. If lag did not return to its floor after it, only the trend of
        the other seconds counts.
        """
        disturbed = burst(self._trial, seconds)
        excluded = None if disturbed is None else until_renewal(self._trial, seconds, disturbed)
        without = disturbed if excluded is None else excluded
        trends = measure_trends(self._trial, seconds, latencies=self._needs_latencies, excluded=without)
        if "broken" in self._trend_states(trends) or has_runaway_lag(self._trends, trends):
            return True
        counts = bool(self._maxima) and (disturbed is None or excluded is not None)
        return counts and self._misses_maximum(seconds, excluded)

    def _may_stop(self, seconds: Seconds) -> bool:
        trends = measure_trends(self._trial, seconds, latencies=self._needs_latencies)
        length = trends.judged_seconds
        past_warm_up = trends.steady or seconds.stop >= self._trial.warmup_limit / SECOND + self._duration
        if length >= self._limit:
            return True
        if self._trial.may_end_early:
            self._next_check = seconds.stop + max(_MIN_CHECK_INTERVAL, seconds.stop // 20)
            return self._ends_early(seconds, trends, past_warm_up)
        if length < self._duration:
            self._next_check = seconds.stop + min(math.ceil(self._duration - length), self._check_interval)
            return past_warm_up and self._has_failed(seconds, trends)
        return self._full_length_is_clear(seconds, trends, past_warm_up)

    def _full_length_is_clear(self, seconds: Seconds, trends: Trends, past_warm_up: bool) -> bool:
        """Whether a trial of full length is decided."""
        length = trends.judged_seconds
        later = min(length * (trend_rules.LATER_CHECKS - 1), self._limit - length)
        self._next_check = math.ceil(seconds.stop + later)
        if past_warm_up and self._holds_despite_burst(seconds, trends):
            return True
        disturbed = burst(self._trial, seconds)
        if disturbed is not None:
            return past_warm_up and self._is_clear_without_burst(seconds, disturbed)
        if self._maxima and self._misses_maximum(seconds):
            return True
        return past_warm_up and self._is_clear(seconds, trends) and not self._needs_precise_estimate(trends)

    def _needs_precise_estimate(self, trends: Trends) -> bool:
        """Whether a longer overloaded confirmation would give the search a more precise estimate of the limit."""
        if not self._exact or self._trial.ask.purpose != "confirm" or "broken" not in self._trend_states(trends):
            return False
        return not self._estimate_is_precise(trends) and not has_runaway_lag(self._trends, trends)

    def _has_failed(self, seconds: Seconds, trends: Trends) -> bool:
        """Whether an undisturbed confirmation has failed before its full length.

        If the search needs its estimate of the limit, only lag that grows without bound ends it.
        """
        confirms = self._trial.ask.purpose == "confirm" and trends.judged_seconds >= self._duration / 2
        if not confirms or burst(self._trial, seconds) is not None:
            return False
        evidence = [e for o in self._trends if not self._exact and (e := trend_evidence(o, trends)) is not None]
        missed = any(trend_rules.classify_full(e, trend_rules.EARLY_CONFIDENCE) == "broken" for e in evidence)
        if missed or has_runaway_lag(self._trends, trends):
            return True
        return bool(not self._exact and self._maxima and self._misses_maximum(seconds))

    def _holds_despite_burst(self, seconds: Seconds, trends: Trends) -> bool:
        """Whether every objective is met in spite of other processes, so that no seconds need to be excluded."""
        states = self._trend_states(trends)
        within = not (self._maxima and self._misses_maximum(seconds))
        return within and set(states) <= {"holds"} and not self._latencies

    def _is_clear_without_burst(self, seconds: Seconds, disturbed: Mask) -> bool:
        """Whether the trial is decided without a burst of other work and the seconds until lag is back at its floor."""
        excluded = until_renewal(self._trial, seconds, disturbed)
        trends = measure_trends(
            self._trial, seconds, latencies=self._needs_latencies, excluded=disturbed if excluded is None else excluded
        )
        if excluded is None:
            return "broken" in self._trend_states(trends)
        if trends.judged_seconds < self._duration:
            return False
        out = self._maxima and self._misses_maximum(seconds, excluded)
        return bool(out) or self._is_clear(seconds, trends, excluded)

    def _trend_states(self, trends: Trends) -> list[ObjectiveState]:
        return [self._rule(e) if (e := trend_evidence(o, trends)) is not None else "unclear" for o in self._trends]

    def _is_clear(self, seconds: Seconds, trends: Trends, excluded: Mask | None = None) -> bool:
        states = self._trend_states(trends)
        return "broken" in states or not ("unclear" in states or self._needs_outputs(seconds, excluded))

    def _needs_outputs(self, seconds: Seconds, excluded: Mask | None = None) -> bool:
        """Whether a latency is not decided and more outputs would help, because outputs have latencies."""
        if not self._latencies:
            return False
        measured = measure(Recording(self._trial, seconds), excluded)
        has_latencies = bool(measured.latencies) or not seconds["outputs"].any()
        states = [evaluate(o, measured).state for o in self._latencies]
        return has_latencies and "unclear" in states and "broken" not in states

    def _needs_results(self, seconds: Seconds) -> bool:
        """Whether a short trial needs more outputs; its first ones must have arrived."""
        return any(len(latency.count) for latency in seconds.latencies.values()) and self._needs_outputs(seconds)

    def _ends_early(self, seconds: Seconds, trends: Trends, past_warm_up: bool) -> bool:
        length = trends.judged_seconds
        runaway = has_runaway_lag(self._trends, trends) and seconds.stop >= self._trial.warmup_limit / SECOND / 2
        too_long = length >= MAX_PROBE_LENGTH * self._duration
        if not past_warm_up or runaway or too_long:
            return runaway or (too_long and not self._needs_results(seconds))
        states = self._trend_states(trends)
        if "broken" in states:
            precise = length >= trend_rules.HOLDS_SECONDS and self._estimate_is_precise(trends)
            return self._trial.ask.purpose != "estimate" or precise or length >= self._duration
        if self._maxima and self._misses_maximum(seconds):
            return True
        # there is no sequential rule for percentiles, so an objective on a latency needs the full length
        if not states or self._latencies:
            return length >= self._duration and not self._needs_results(seconds)
        checkable = length * SECOND >= self._trial.least
        return checkable and all(state == "holds" for state in states)

    def _misses_maximum(self, seconds: Seconds, excluded: Mask | None = None) -> bool:
        """Whether the longest queue or the disconnects miss an objective; a longer trial does not change that."""
        measured = measure(Recording(self._trial, seconds), excluded)
        return any(evaluate(o, measured).state == "broken" for o in self._maxima)

    @staticmethod
    def _estimate_is_precise(trends: Trends) -> bool:
        growth = trends.lag_trend
        return growth is not None and growth.error <= ESTIMATE_ERROR * (trends.load - growth.mean)
