"""Seconds → Measurement: where the warm-up ends, how lag and latency move, what the outputs took."""

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

_LOWEST = 0.1
_ABOVE, _LEAST_ABOVE = 0.25, 0.1
"""How far the floor that is seen, a low quantile, may be above the trigger: as a share of it, seconds at least."""
_BAND, _LEAST_BAND = 0.025, 0.05
"""How far lag that is at its floor strays because triggers are late: a share of the trigger, and seconds."""


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
    lag_late: float | None
    lag_recent: Interval | None
    lag_floor: Floor | None

    @property
    def runaway(self) -> bool:
        """The lag runs away, whatever the interval says."""
        if not self.lag_seconds or not self.load:
            return False
        grown = (self.lag_end - self.lag_start) / self.lag_seconds / self.load
        return is_runaway(grown, self.lag_seconds)


def trends(trial: Trial, seconds: Seconds, latencies: bool = True, cut: Mask | None = None) -> Trends:
    """The trends of a trial so far; ``latencies=False`` leaves that of the latency out, ``cut`` these seconds."""
    warm, is_steady = warmup(trial, seconds)
    time, lag = lag_samples(seconds)
    # the last acknowledgement before the judged stretch is where its growth begins
    first = max(int(np.searchsorted(time, warm, "right")) - 1, 0)
    time, lag = time[first:], lag[first:]
    load = trial.profile.mean_between(warm * SECOND, seconds.stop * SECOND)
    when, latency = latency_samples(seconds.between(warm, seconds.stop)) if latencies else (time[:0], lag[:0])
    waiting, left = lag, 0
    if cut is not None:
        time, lag, waiting = _glued(time, lag, cut, seconds.start)
        keep = ~cut[(when - seconds.start).astype(np.int64)]
        when, latency, left = when[keep], latency[keep], int(np.count_nonzero(cut[max(warm - seconds.start, 0) :]))
    return Trends(
        load=load,
        warmup_seconds=warm,
        judged_seconds=max(seconds.stop - warm - left, 0),
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
        lag_late=_late(time, lag),
        lag_recent=trend.recent(time, lag) if trial.trigger else None,
        lag_floor=floor(time, waiting, load, trial.trigger / SECOND),
    )


def _glued(time: Floats, lag: Floats, cut: Mask, start: int) -> tuple[Floats, Floats, Floats]:
    """Samples without the stretches that are cut out: time and growth go on as if they had not been.

    Also the lag that was really there at each sample that is left.
    """
    if len(time) < 2:
        return time, lag, lag
    edges = np.concatenate([[0], np.cumsum(cut)])
    place = np.clip(np.floor(time).astype(np.int64) - start, 0, len(cut))
    last = np.clip(np.ceil(time).astype(np.int64) - start, 0, len(cut))
    keep = edges[last[1:]] - edges[place[:-1]] == 0  # no second between two samples is cut
    spans, steps = np.diff(time)[keep], np.diff(lag)[keep]
    glued = np.concatenate([[0.0], np.cumsum(spans)]) + time[0]
    return glued, np.concatenate([[0.0], np.cumsum(steps)]) + lag[0], np.concatenate([lag[:1], lag[1:][keep]])


def _late(time: Floats, level: Floats) -> float | None:
    """Mean growth over the second half of a stretch, from the last sample before its middle on."""
    if len(time) < 2:
        return None
    middle = _middle(time)
    return float((level[-1] - level[middle]) / (time[-1] - time[middle]))


def _middle(time: Floats) -> int:
    """The last sample of the first half of a stretch."""
    return max(int(np.searchsorted(time, (time[0] + time[-1]) / 2, "right")) - 1, 0)


def floor_level(waits: Floats, trigger: float) -> float:
    """Seconds of load up to which lag counts as at its floor."""
    lowest = float(np.quantile(waits, _LOWEST))
    seen = min(max(lowest, trigger), trigger + max(_ABOVE * trigger, _LEAST_ABOVE))
    return seen + _LEAST_BAND + _BAND * trigger


def floor(time: Floats, lag: Floats, load: float, trigger: float) -> Floor | None:
    """How often lag was back at its floor in the second half; None with too few acknowledgements.

    At an acknowledgement about one trigger of load waits although the system keeps up. The lowest lag seen may say that
    it is a little more.
    """
    if not load or len(time) <= trend.LEAST_INCREMENTS:
        return None
    middle, waits = _middle(time), lag / load
    level = floor_level(waits, trigger)
    return Floor(
        visits=int(np.count_nonzero(waits[middle + 1 :] <= level)),
        before=float(time[middle] - time[0]),
        step=float(time[-1] - time[middle]) / max(len(time) - 1 - middle, 1),
        slack=level - trigger,
        noise=trend.spread(time, waits),
    )


def _range(level: Floats) -> float:
    return float(level.max() - level.min()) if level.size else 0.0


def _spread(time: Floats, level: Floats) -> float:
    """Standard deviation of a level around the line through its two ends."""
    if len(time) < 3:
        return 0.0
    slope = (level[-1] - level[0]) / (time[-1] - time[0])
    return float(np.std(level - slope * time))


def measure(recording: Recording, cut: Mask | None = None) -> Measurement:
    """A trial in numbers: everything after warm-up, and nothing that the sample cannot support.

    The seconds of ``cut`` are left out.
    """
    seconds, moves = recording.seconds, trends(recording.trial, recording.seconds, cut=cut)
    judged = seconds.between(moves.warmup_seconds, seconds.stop)
    if cut is not None:
        judged = _without(judged, cut, seconds.start)
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
        lag_late=moves.lag_late,
        lag_recent=moves.lag_recent,
        lag_floor=moves.lag_floor,
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
        carries=_carries(recording, moves.warmup_seconds),
    )


def _without(judged: Seconds, cut: Mask, start: int) -> Seconds:
    """Judged seconds without those that are cut out; for sums only, as they no longer follow each other."""
    left = ~cut[judged.start - start :]
    kinds = {
        kind: Latencies(*(column[~cut[each.second - start]] for column in (each.second, each.bucket, each.count)))
        for kind, each in judged.latencies.items()
    }
    return Seconds(judged.start, {name: column[left] for name, column in judged.columns.items()}, kinds)


def _delay(judged: Seconds, kind: Kind, share: float) -> float:
    """How late this share of the events was at most, in nanoseconds; 0 where none were counted."""
    late = judged.latency(kind)
    return buckets.quantile(late.bucket, late.count, share) * 1000.0 if late.count.sum() else 0.0


def _by_statistic(pauses: npt.NDArray[np.int64]) -> dict[str, float]:
    """The longest pause of each second, by the statistics that objectives name; nothing if there was none."""
    if not pauses.any():
        return {}
    found = {name: float(np.quantile(pauses, share)) for name, share in SHARES.items()}
    return {"avg": float(pauses.mean()), "min": float(pauses.min()), **found, "max": float(pauses.max())}


def _carries(recording: Recording, warm: int) -> float:
    """What the cores of the system under test would carry without a pause: events per second of CPU, times its cores.

    Events and CPU time are those from the first to the last judged acknowledgement. A micro-batch is acknowledged
    as a whole, so counting by whole seconds would be wrong by up to one of them.
    """
    judged = recording.seconds.between(warm, recording.seconds.stop)
    acked = np.flatnonzero(judged["ack_time"] >= 0)
    if len(acked) < 2:
        return 0.0
    used = np.concatenate([[0], np.cumsum(judged["sut_cpu"])]) / 1e6
    moments = judged["ack_time"][acked[[0, -1]]] / SECOND - judged.start
    begun, ended = np.interp(moments, np.arange(len(used)), used)
    events = float(judged["acknowledged"][acked[0] + 1 : acked[-1] + 1].sum())
    return len(recording.facts.sut_cores) * events / (ended - begun) if ended > begun else 0.0


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
    has = latency.count > 0
    count, bucket = latency.count[has], latency.bucket[has]
    at, place = np.unique(latency.second[has], return_inverse=True)
    mean = np.bincount(place, count * buckets.middle(bucket)) / np.bincount(place, count)
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
    """Percentiles are over rows, as Karimov has them; objectives on percentiles are judged by window results."""
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
    """Counts by bucket in ascending order, of all seconds together."""
    found, place = np.unique(latency.bucket, return_inverse=True)
    counts = np.zeros(len(found), np.int64)
    np.add.at(counts, place, latency.count)
    return tuple(zip(found.tolist(), counts.tolist(), strict=True))
