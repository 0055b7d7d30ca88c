"""Seconds → Measurement: where the warm-up ends, how lag and latency move, what the outputs took."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from streamgauge.judge.rule import ASSUMED_ERROR, is_runaway
from streamgauge.model.measurement import Interval, LatencySummary, Measurement
from streamgauge.model.seconds import OUTPUT_KINDS, Kind, Seconds
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND
from streamgauge.stats import buckets, steady, trend

Floats = npt.NDArray[np.float64]

PERCENTILES = {"p5": 0.05, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


@dataclass(frozen=True, slots=True)
class Trends:
    """How lag and latency move after warm-up: all that a look at a growing trial needs."""

    load: float
    warmup_seconds: int
    judged_seconds: int
    steady: bool
    lag_trend: Interval | None
    latency_trend: Interval | None
    lag_corridor: float
    latency_corridor: float
    lag_start: float
    lag_end: float
    lag_spread: float
    lag_reversion: float
    lag_seconds: float
    """From the first to the last acknowledgement."""

    @property
    def runaway(self) -> bool:
        """The lag runs away, whatever the interval says."""
        if not self.lag_seconds or not self.load:
            return False
        grown = (self.lag_end - self.lag_start) / self.lag_seconds / self.load
        return is_runaway(grown, self.lag_seconds)


def trends(trial: Trial, seconds: Seconds, latencies: bool = True) -> Trends:
    """The trends of a trial so far; ``latencies=False`` leaves that of the latency out."""
    warm, is_steady = warmup(trial, seconds)
    time, lag = lag_samples(seconds)
    # the last acknowledgement before the judged stretch is where its growth begins
    first = max(int(np.searchsorted(time, warm, "right")) - 1, 0)
    time, lag = time[first:], lag[first:]
    load = trial.profile.mean_between(warm * SECOND, seconds.stop * SECOND)
    when, latency = latency_samples(seconds.between(warm, seconds.stop)) if latencies else (time[:0], lag[:0])
    return Trends(
        load=load,
        warmup_seconds=warm,
        judged_seconds=max(seconds.stop - warm, 0),
        steady=is_steady,
        lag_trend=trend.increments(time, lag),
        latency_trend=trend.increments(when, latency),
        lag_corridor=_range(lag),
        latency_corridor=_range(latency),
        lag_start=float(lag[0]) if lag.size else 0.0,
        lag_end=float(lag[-1]) if lag.size else 0.0,
        lag_spread=_spread(time, lag),
        lag_reversion=trend.reversion(lag / load) if load else 0.0,
        lag_seconds=float(time[-1] - time[0]) if time.size else 0.0,
    )


def _range(level: Floats) -> float:
    return float(level.max() - level.min()) if level.size else 0.0


def _spread(time: Floats, level: Floats) -> float:
    """Standard deviation of a level around the line through its two ends."""
    if len(time) < 3:
        return 0.0
    slope = (level[-1] - level[0]) / (time[-1] - time[0])
    return float(np.std(level - slope * time))


def measure(recording: Recording) -> Measurement:
    """A trial in numbers: everything after warm-up, and nothing that the sample cannot support."""
    seconds, moves = recording.seconds, trends(recording.trial, recording.seconds)
    judged = seconds.between(moves.warmup_seconds, seconds.stop)
    length = max(len(judged), 1)
    offered, published = int(judged["offered"].sum()), int(judged["published"].sum())
    return Measurement(
        load=moves.load,
        published_rate=published / length,
        served_rate=float(judged["served"].sum()) / length,
        warmup_seconds=moves.warmup_seconds,
        judged_seconds=moves.judged_seconds,
        steady=moves.steady,
        lag_trend=moves.lag_trend,
        latency_trend=moves.latency_trend,
        runaway=moves.runaway,
        lag_spread=moves.lag_spread,
        lag_reversion=moves.lag_reversion,
        lag_seconds=moves.lag_seconds,
        capacity=_capacity(offered / length, moves),
        lag_start=moves.lag_start,
        lag_end=moves.lag_end,
        lag_corridor=moves.lag_corridor,
        latency_corridor=moves.latency_corridor,
        longest_queue=int(judged["queue"].max(initial=0)),
        drops=int(seconds["drops"].sum()),
        latencies={kind: s for kind in OUTPUT_KINDS if (s := _summary(judged, kind)) is not None},
        account=recording.outcome.account,
        negative=int(judged["negative"].sum()),
        schedule_lag_p99=float(np.quantile(judged["schedule_lag"], 0.99)) if len(judged) else 0.0,
        schedule_lag_worst=float(judged["schedule_lag"].max(initial=0)),
        achieved_share=published / offered if offered else 1.0,
        run_delay_share=float(judged["run_delay"].sum()) / SECOND / length,
        foreign_share=max(_share(judged, "foreign"), _share(judged, "steal")),
        steal_share=_share(judged, "steal"),
        clock_step=float(np.abs(seconds["clock_step"]).max(initial=0)),
        sut_cpu_seconds=float(judged["sut_cpu"].sum()) / 1e6,
        driver_cpu_seconds=float(judged["driver_cpu"].sum()) / 1e6,
        carries=_carries(recording, judged),
    )


def _carries(recording: Recording, judged: Seconds) -> float:
    """What the cores of the system under test would carry without a pause."""
    cores, used = len(recording.facts.get("sut_cores", ())), float(judged["sut_cpu"].sum()) / 1e6
    return cores * float(judged["acknowledged"].sum()) / used if used else 0.0


def _share(judged: Seconds, name: str) -> float:
    """The mean of a column in parts per million, as a share."""
    return float(judged[name].mean()) / 1e6 if len(judged) else 0.0


def warmup(trial: Trial, seconds: Seconds) -> tuple[int, bool]:
    """Seconds to leave out at the beginning, and whether what follows is one steady stretch."""
    if trial.warmup is not None:
        return min(-(-trial.warmup // SECOND), seconds.stop), True
    time, lag = lag_samples(seconds)
    if len(time) <= trend.LEAST_INCREMENTS:
        return 0, False
    growth = np.diff(lag) / np.diff(time)
    # the cut is found in growth per sample; the sample before it is where the steady stretch begins
    cut = steady.cut(growth)
    begin = int(time[cut]) if cut else 0
    bounded = min(begin, trial.warmup_limit // SECOND)
    return bounded, steady.is_steady(growth[cut:])


def lag_samples(seconds: Seconds) -> tuple[Floats, Floats]:
    """Lag at the last acknowledgement of each second that has one: time in seconds, events."""
    has = seconds["ack_time"] >= 0
    return seconds["ack_time"][has] / SECOND, seconds["ack_lag"][has].astype(np.float64)


def latency_samples(seconds: Seconds) -> tuple[Floats, Floats]:
    """Mean event-time latency of each second that has outputs: time and latency in seconds."""
    latency = seconds.latency("event-time")
    at, place = np.unique(latency.second, return_inverse=True)
    weight = np.bincount(place, latency.count)
    mean = np.bincount(place, latency.count * buckets.middle(latency.bucket)) / weight
    return at.astype(np.float64), mean / 1e6


def _capacity(rate: float, moves: Trends) -> Interval | None:
    """What the SUT gets done per second while its queue grows; None when the queue does not clearly grow."""
    growth = moves.lag_trend
    if growth is not None and growth.low > 0:
        low, high = rate - growth.high, rate - growth.low
        return replace(growth, mean=rate - growth.mean, low=low, high=high)
    if not moves.runaway:
        return None
    mean = rate - (moves.lag_end - moves.lag_start) / moves.lag_seconds
    error = abs(mean) * ASSUMED_ERROR / math.sqrt(moves.lag_seconds)
    return Interval(mean, mean - 2 * error, mean + 2 * error, error, samples=1)


def _summary(seconds: Seconds, kind: Kind) -> LatencySummary | None:
    latency = seconds.latency(kind)
    rows = int(latency.count.sum())
    if not rows:
        return None
    firings = int(seconds["firings"].sum())
    # all rows of one firing share one latency, so the firings carry the percentile, not the rows
    percentiles = {
        name: buckets.quantile(latency.bucket, latency.count, share) * 1000.0
        for name, share in PERCENTILES.items()
        if buckets.supported(share, firings)
    }
    used = latency.bucket[latency.count > 0]
    return LatencySummary(
        rows=rows,
        firings=firings,
        average=buckets.mean(latency.bucket, latency.count) * 1000.0,
        least=float(buckets.lowest(used.min())) * 1000.0,
        most=float(buckets.highest(used.max())) * 1000.0,
        percentiles=percentiles,
    )
