"""Seconds → Measurement: where the warm-up ends, how lag and latency move, what the outputs took."""

import numpy as np
import numpy.typing as npt

from streamgauge.model.measurement import Interval, LatencySummary, Measurement
from streamgauge.model.seconds import KINDS, Kind, Seconds
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND
from streamgauge.stats import buckets, steady, trend

Floats = npt.NDArray[np.float64]

PERCENTILES = {"p5": 0.05, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}


def measure(recording: Recording) -> Measurement:
    """A trial in numbers: everything after warm-up, and nothing that the sample cannot support."""
    trial, seconds, outcome = recording.trial, recording.seconds, recording.outcome
    warm, is_steady = warmup(trial, seconds)
    judged = seconds.between(warm, seconds.stop)
    length = max(len(judged), 1)
    lag = lag_samples(judged)
    latency = latency_samples(judged)
    growth = trend.increments(*lag)
    offered = int(judged["offered"].sum())
    return Measurement(
        load=trial.load,
        published_rate=float(judged["published"].sum()) / length,
        served_rate=float(judged["served"].sum()) / length,
        warmup_seconds=warm,
        judged_seconds=len(judged),
        steady=is_steady,
        lag_trend=growth,
        latency_trend=trend.increments(*latency),
        capacity=_capacity(offered / length, growth),
        lag_start=float(lag[1][0]) if lag[1].size else 0.0,
        lag_end=float(lag[1][-1]) if lag[1].size else 0.0,
        lag_corridor=float(np.ptp(lag[1])) if lag[1].size else 0.0,
        latency_corridor=float(np.ptp(latency[1])) if latency[1].size else 0.0,
        longest_queue=int(judged["queue"].max(initial=0)),
        drops=int(seconds["drops"].sum()),
        latencies={kind: s for kind in KINDS if (s := _summary(judged, kind)) is not None},
        account=outcome.account,
        negative=int(judged["negative"].sum()),
        schedule_lag_p99=float(np.quantile(judged["schedule_lag"], 0.99)) if len(judged) else 0.0,
        achieved_share=float(judged["published"].sum()) / offered if offered else 1.0,
        run_delay_share=float(judged["run_delay"].sum()) / SECOND / length,
        foreign_share=float(judged["foreign"].mean()) / 1e6 if len(judged) else 0.0,
        clock_step=float(np.abs(seconds["clock_step"]).max(initial=0)),
        sut_cpu_seconds=float(judged["sut_cpu"].sum()) / 1e6,
        driver_cpu_seconds=float(judged["driver_cpu"].sum()) / 1e6,
    )


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


def _capacity(rate: float, growth: Interval | None) -> Interval | None:
    """What the SUT gets done per second while its queue grows; None when the queue does not clearly grow."""
    if growth is None or growth.low <= 0:
        return None
    low, high = rate - growth.high, rate - growth.low
    return Interval(rate - growth.mean, low, high, growth.error, growth.samples, growth.correlation, growth.freedom)


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
