"""Seconds → Measurement: the end of the warm-up, the trends of lag and latency, and the latencies of outputs."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from streamgauge.judge.trend_rules import ASSUMED_ERROR, is_runaway
from streamgauge.model.measurement import Floor, Interval, LatencySummary, Measurement
from streamgauge.model.objective import SHARES
from streamgauge.model.seconds import OUTPUT_KINDS, Kind, Latencies, Seconds
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND
from streamgauge.stats import buckets, steady, trend

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_FLOOR_QUANTILE = 0.1
_FLOOR_MARGIN, _MIN_FLOOR_MARGIN = 0.25, 0.1
"""How far the observed floor, a low quantile of lag, may be above the trigger: a share of it, and seconds at least."""
_BAND, _MIN_BAND = 0.025, 0.05
"""How far lag at its floor varies because triggers are late: a share of the trigger, and seconds at least."""


@dataclass(frozen=True, slots=True)
class Trends:
    """The trends of lag and latency after the warm-up: all that a check of a running trial needs."""

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
    """Time from the first to the last judged acknowledgement."""
    lag_late: float | None
    latency_late: float | None
    lag_recent: Interval | None
    lag_floor: Floor | None

    @property
    def runaway(self) -> bool:
        """Whether lag grows without bound, whatever its interval is."""
        if not self.lag_seconds or not self.load:
            return False
        grown = (self.lag_end - self.lag_start) / self.lag_seconds / self.load
        return is_runaway(grown, self.lag_seconds)


def measure_trends(trial: Trial, seconds: Seconds, latencies: bool = True, excluded: Mask | None = None) -> Trends:
    """The trends of a trial so far, without the ``excluded`` seconds; ``latencies=False`` omits that of the latency."""
    warmup_seconds, is_steady = warmup(trial, seconds)
    time, lag = lag_samples(seconds)
    # the growth of the judged seconds begins at the last acknowledgement before them
    first = max(int(np.searchsorted(time, warmup_seconds, "right")) - 1, 0)
    time, lag = time[first:], lag[first:]
    load = trial.profile.mean_between(warmup_seconds * SECOND, seconds.stop * SECOND)
    when, latency = latency_samples(seconds.between(warmup_seconds, seconds.stop)) if latencies else (time[:0], lag[:0])
    waiting, excluded_seconds = lag, 0
    if excluded is not None:
        time, lag, waiting = _without_excluded(time, lag, excluded, seconds.start)
        keep = ~excluded[(when - seconds.start).astype(np.int64)]
        when, latency = when[keep], latency[keep]
        excluded_seconds = int(np.count_nonzero(excluded[max(warmup_seconds - seconds.start, 0) :]))
    return Trends(
        load=load,
        warmup_seconds=warmup_seconds,
        judged_seconds=max(seconds.stop - warmup_seconds - excluded_seconds, 0),
        steady=is_steady,
        lag_trend=trend.increments(time, lag),
        latency_trend=trend.increments(when, latency),
        lag_corridor=_span(lag),
        latency_corridor=_span(latency),
        lag_start=float(lag[0]) if lag.size else 0.0,
        lag_end=float(lag[-1]) if lag.size else 0.0,
        lag_spread=_spread(time, lag),
        lag_reversion=trend.reversion(lag / load) if load else 0.0,
        lag_seconds=float(time[-1] - time[0]) if time.size else 0.0,
        lag_late=_second_half_growth(time, lag),
        latency_late=_second_half_growth(when, latency),
        lag_recent=trend.recent(time, lag) if trial.trigger else None,
        lag_floor=floor(time, waiting, load, trial.trigger / SECOND),
    )


def _without_excluded(time: Floats, lag: Floats, excluded: Mask, start: int) -> tuple[Floats, Floats, Floats]:
    """Time and lag without the excluded seconds, as if these had not existed, and the real lag at each kept sample."""
    if len(time) < 2:
        return time, lag, lag
    edges = np.concatenate([[0], np.cumsum(excluded)])
    place = np.clip(np.floor(time).astype(np.int64) - start, 0, len(excluded))
    last = np.clip(np.ceil(time).astype(np.int64) - start, 0, len(excluded))
    keep = edges[last[1:]] - edges[place[:-1]] == 0  # no second between two samples is excluded
    spans, steps = np.diff(time)[keep], np.diff(lag)[keep]
    joined = np.concatenate([[0.0], np.cumsum(spans)]) + time[0]
    return joined, np.concatenate([[0.0], np.cumsum(steps)]) + lag[0], np.concatenate([lag[:1], lag[1:][keep]])


def _second_half_growth(time: Floats, level: Floats) -> float | None:
    """Mean growth from the last sample of the first half to the end; None with too few samples."""
    if len(time) < 2:
        return None
    middle = _middle(time)
    return float((level[-1] - level[middle]) / (time[-1] - time[middle]))


def _middle(time: Floats) -> int:
    """Index of the last sample of the first half."""
    return max(int(np.searchsorted(time, (time[0] + time[-1]) / 2, "right")) - 1, 0)


def floor_level(waits: Floats, trigger: float) -> float:
    """The largest lag, in seconds of load, that counts as the floor.

    The floor is the lowest tenth of the lag. If that is above the trigger by more than a margin, lag never returned.
    """
    lowest = max(float(np.quantile(waits, _FLOOR_QUANTILE)), 0.0)
    observed = min(lowest, trigger + max(_FLOOR_MARGIN * trigger, _MIN_FLOOR_MARGIN))
    return observed + _MIN_BAND + _BAND * min(lowest, trigger)


def floor(time: Floats, lag: Floats, load: float, trigger: float) -> Floor | None:
    """How often lag returned to its floor in the second half; None with too few acknowledgements.

    At an acknowledgement, the events of about one trigger wait although the system keeps up. The observed lag may show
    that it is a little more. If it is less, the trigger is not the cause of the lag, and the lowest lag is the floor.
    """
    if not load or len(time) <= trend.MIN_INCREMENTS:
        return None
    middle, waits = _middle(time), lag / load
    level = floor_level(waits, trigger)
    return Floor(
        visits=int(np.count_nonzero(waits[middle + 1 :] <= level)),
        before=float(time[middle] - time[0]),
        step=float(time[-1] - time[middle]) / max(len(time) - 1 - middle, 1),
        slack=level - max(min(float(waits.min()), trigger), 0.0),
        noise=trend.spread(time, waits),
    )


def _span(level: Floats) -> float:
    return float(level.max() - level.min()) if level.size else 0.0


def _spread(time: Floats, level: Floats) -> float:
    """Standard deviation of a level around the straight line through its first and last value."""
    if len(time) < 3:
        return 0.0
    slope = (level[-1] - level[0]) / (time[-1] - time[0])
    return float(np.std(level - slope * time))


def measure(recording: Recording, excluded: Mask | None = None) -> Measurement:
    """A trial in numbers: the seconds after the warm-up without the ``excluded`` ones.

    A number that the samples do not support is None.
    """
    seconds, trends = recording.seconds, measure_trends(recording.trial, recording.seconds, excluded=excluded)
    judged = seconds.between(trends.warmup_seconds, seconds.stop)
    if excluded is not None:
        judged = _without_seconds(judged, excluded, seconds.start)
    length = max(len(judged), 1)
    offered, published = int(judged["offered"].sum()), int(judged["published"].sum())
    return Measurement(
        load=trends.load,
        published_rate=published / length,
        served_rate=float(judged["served"].sum()) / length,
        warmup_seconds=trends.warmup_seconds,
        judged_seconds=trends.judged_seconds,
        steady=trends.steady,
        lag_trend=trends.lag_trend,
        latency_trend=trends.latency_trend,
        runaway=trends.runaway,
        lag_spread=trends.lag_spread,
        lag_reversion=trends.lag_reversion,
        lag_seconds=trends.lag_seconds,
        lag_late=trends.lag_late,
        latency_late=trends.latency_late,
        lag_recent=trends.lag_recent,
        lag_floor=trends.lag_floor,
        capacity=_capacity(offered / length, trends),
        lag_start=trends.lag_start,
        lag_end=trends.lag_end,
        lag_corridor=trends.lag_corridor,
        latency_corridor=trends.latency_corridor,
        longest_queue=int(judged["queue"].max(initial=0)),
        drops=int(seconds["drops"].sum()),
        latencies={kind: s for kind in OUTPUT_KINDS if (s := _summary(judged, kind)) is not None},
        account=recording.outcome.account,
        negative=int(judged["negative"].sum()),
        schedule_lag_p99=_delay(judged, "send-delay", 0.99),
        schedule_lag_worst=float(judged["schedule_lag"].max(initial=0)),
        append_delay_p99=_delay(judged, "append-delay", 0.99),
        append_delay_worst=_delay(judged, "append-delay", 1.0),
        hiccups=_by_statistic(judged["hiccup"]),
        collector_hiccups=_by_statistic(judged["collector_hiccup"]),
        skew=float(seconds["skew"].max(initial=0)),
        achieved_share=published / offered if offered else 1.0,
        run_delay_share=float(judged["run_delay"].sum()) / SECOND / length,
        foreign_share=max(_share(judged, "foreign"), _share(judged, "steal")),
        steal_share=_share(judged, "steal"),
        clock_step=float(np.abs(seconds["clock_step"]).max(initial=0)),
        sut_cpu_seconds=float(judged["sut_cpu"].sum()) / 1e6,
        driver_cpu_seconds=float(judged["driver_cpu"].sum()) / 1e6,
        carries=_cpu_limit(recording, trends.warmup_seconds),
    )


def _without_seconds(judged: Seconds, excluded: Mask, start: int) -> Seconds:
    """Judged seconds without the excluded ones; only for sums, because they are no longer consecutive."""
    kept = ~excluded[judged.start - start :]
    kinds = {
        kind: Latencies(*(column[~excluded[each.second - start]] for column in (each.second, each.bucket, each.count)))
        for kind, each in judged.latencies.items()
    }
    return Seconds(judged.start, {name: column[kept] for name, column in judged.columns.items()}, kinds)


def _delay(judged: Seconds, kind: Kind, share: float) -> float:
    """The delay that this share of the events did not exceed, in nanoseconds; 0 if none were counted."""
    late = judged.latency(kind)
    return buckets.quantile(late.bucket, late.count, share) * 1000.0 if late.count.sum() else 0.0


def _by_statistic(pauses: npt.NDArray[np.int64]) -> dict[str, float]:
    """Statistics of the longest pause of each second, by their names in objectives; empty without pauses."""
    if not pauses.any():
        return {}
    found = {name: float(np.quantile(pauses, share)) for name, share in SHARES.items()}
    return {"avg": float(pauses.mean()), "min": float(pauses.min()), **found, "max": float(pauses.max())}


def _cpu_limit(recording: Recording, warmup_seconds: int) -> float:
    """Events per second that the cores of the system under test could process if they were never idle; 0: unknown.

    It is computed from the CPU time between the first and the last judged acknowledgement. A micro-batch is
    acknowledged as a whole, so a count by whole seconds would be wrong by up to one batch.
    """
    judged = recording.seconds.between(warmup_seconds, recording.seconds.stop)
    acked = np.flatnonzero(judged["ack_time"] >= 0)
    if len(acked) < 2:
        return 0.0
    used = np.concatenate([[0], np.cumsum(judged["sut_cpu"])]) / 1e6
    moments = judged["ack_time"][acked[[0, -1]]] / SECOND - judged.start
    used_before, used_after = np.interp(moments, np.arange(len(used)), used)
    events = float(judged["acknowledged"][acked[0] + 1 : acked[-1] + 1].sum())
    cpu = used_after - used_before
    return len(recording.facts.sut_cores) * events / cpu if cpu > 0 else 0.0


def _share(judged: Seconds, name: str) -> float:
    """The mean of a column in parts per million, as a share."""
    return float(judged[name].mean()) / 1e6 if len(judged) else 0.0


def warmup(trial: Trial, seconds: Seconds) -> tuple[int, bool]:
    """The number of seconds of the warm-up, and whether the seconds after it are steady."""
    if trial.warmup is not None:
        return min(-(-trial.warmup // SECOND), seconds.stop), True
    time, lag = lag_samples(seconds)
    if len(time) <= trend.MIN_INCREMENTS:
        return 0, False
    growth = np.diff(lag) / np.diff(time)
    # the steady part begins at the sample before the first steady growth
    samples = steady.warm_up_samples(growth)
    begin = int(time[samples]) if samples else 0
    return min(begin, trial.warmup_limit // SECOND), steady.is_steady(growth[samples:])


def lag_samples(seconds: Seconds) -> tuple[Floats, Floats]:
    """Times in seconds and lags in events, at the last acknowledgement of each second that has one."""
    sampled = seconds["ack_time"] >= 0
    return seconds["ack_time"][sampled] / SECOND, seconds["ack_lag"][sampled].astype(np.float64)


def latency_samples(seconds: Seconds) -> tuple[Floats, Floats]:
    """Times and mean event-time latencies in seconds, of each second that has outputs."""
    latency = seconds.latency("event-time")
    sampled = latency.count > 0
    count, bucket = latency.count[sampled], latency.bucket[sampled]
    at, place = np.unique(latency.second[sampled], return_inverse=True)
    mean = np.bincount(place, count * buckets.middle(bucket)) / np.bincount(place, count)
    return at.astype(np.float64), mean / 1e6


def _capacity(rate: float, trends: Trends) -> Interval | None:
    """The processing rate while the lag grows; None if the lag does not clearly grow."""
    growth = trends.lag_trend
    if growth is not None and growth.low > 0:
        low, high = rate - growth.high, rate - growth.low
        return replace(growth, mean=rate - growth.mean, low=low, high=high)
    if not trends.runaway:
        return None
    mean = rate - (trends.lag_end - trends.lag_start) / trends.lag_seconds
    error = abs(mean) * ASSUMED_ERROR / math.sqrt(trends.lag_seconds)
    return Interval(mean, mean - 2 * error, mean + 2 * error, error, samples=1)


def _summary(seconds: Seconds, kind: Kind) -> LatencySummary | None:
    """The latencies of one kind; None if there are none.

    Percentiles are over rows, as in Karimov's paper. Objectives on percentiles are judged by window results.
    """
    latency, results = seconds.rows(kind), seconds.results(kind)
    rows = int(latency.count.sum())
    if not rows:
        return None
    percentiles = {
        name: buckets.quantile(latency.bucket, latency.count, share) * 1000.0
        for name, share in SHARES.items()
        if buckets.supported(share, rows)
    }
    used = latency.bucket[latency.count > 0]
    return LatencySummary(
        rows=rows,
        firings=int(results.count.sum()),
        average=buckets.mean(latency.bucket, latency.count) * 1000.0,
        least=float(buckets.lowest(used.min())) * 1000.0,
        most=float(buckets.highest(used.max())) * 1000.0,
        percentiles=percentiles,
        results=_by_bucket(results),
        missing=int(seconds.latency("missing").count.sum()) if kind == "event-time" else 0,
    )


def _by_bucket(latency: Latencies) -> tuple[tuple[int, int], ...]:
    """The counts of all seconds by bucket, in ascending order."""
    found, place = np.unique(latency.bucket, return_inverse=True)
    counts = np.zeros(len(found), np.int64)
    np.add.at(counts, place, latency.count)
    return tuple(zip(found.tolist(), counts.tolist(), strict=True))
