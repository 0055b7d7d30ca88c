"""A system under test in simulated time: whole experiments in milliseconds, and plans beyond this machine."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from pydantic import Field

from streamgauge.engines.contract import ANY_WORKLOAD, Job, Layout, Requirement, Situation, Traits
from streamgauge.model.facts import EngineFacts
from streamgauge.model.options import Count, Duration, Options, Rate, Share
from streamgauge.model.seconds import WINDOW_KINDS, Account, Kind, Latencies, Seconds
from streamgauge.model.trial import Ending, Outcome, Trial
from streamgauge.model.units import SECOND, format_count, format_rate
from streamgauge.stats import buckets
from streamgauge.workloads.parameters import Windowed
from streamgauge.workloads.registry import workloads

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

COLD = 0.3
"""Share of its capacity that a system has at the beginning of its warm-up."""
CRASH_AFTER = 5
"""Seconds after which a system crashes at a load it cannot bear."""
STRETCH = 2
"""Seconds that are returned together."""
SAMPLES = 8
"""Latency samples per second where every event is an output."""
LEAST_INTERVAL = SECOND // 1000
"""The shortest trigger interval: each micro-batch is computed."""
MOST_FIRINGS = 1_000_000
"""Window results that are computed in a trial. If there are more, each stands for several in a row."""
_LONGEST_DELAY = 10**18
"""Nanoseconds, about thirty years: the tail of a delay must stay a whole number of 64 bits."""
_MOST_ROWS = 2**62


class SimulatedOptions(Options):
    """Capacity, delays, noise and faults of the simulated system."""

    capacity: Rate = Field(default=500_000.0, gt=0, description="events per second that one instance can process")
    instances: Count = Field(default=1, ge=1, le=100_000, description="number of instances")
    contention: Share = Field(
        default=0.0,
        ge=0,
        le=1,
        description="share of the work that only one instance can do at a time (σ of the Universal Scalability Law)",
    )
    coherence: Share = Field(
        default=0.0,
        ge=0,
        le=1,
        description="cost of coordination between each pair of instances (κ of the Universal Scalability Law)",
    )
    batch_interval: Duration = Field(
        default=0, ge=0, description="trigger interval of micro-batches; 0s = events are processed continuously"
    )
    batch_cost: Duration = Field(default=0, ge=0, description="fixed time that each micro-batch costs")
    warmup: Duration = Field(default=0, ge=0, description="time in which the capacity grows to its full value")
    pause_every: Duration = Field(
        default=0, ge=0, description="time from one pause (garbage collection) to the next; 0s = no pauses"
    )
    pause: Duration = Field(default=0, ge=0, description="length of each pause; 0s = no pauses")
    noise: Share = Field(
        default=0.0, ge=0, le=1, description="standard deviation of the capacity from second to second"
    )
    noise_memory: Share = Field(
        default=0.5, ge=0, lt=1, description="correlation of that noise from one second to the next"
    )
    delay: Duration = Field(default=5_000_000, ge=0, description="latency of an idle system")
    delay_spread: Share = Field(default=0.1, ge=0, le=3, description="log-normal spread of that latency")
    crash_at: Rate | None = Field(
        default=None, description="load at which the system crashes; omitted = it does not crash"
    )
    lose: Share = Field(default=0.0, ge=0, le=1, description="share of the outputs that are lost")
    duplicate: Share = Field(default=0.0, ge=0, le=1, description="share of the outputs that are duplicated")
    alter: Share = Field(default=0.0, ge=0, le=1, description="share of the outputs with a wrong value")


class Simulated:
    """The engine: it describes itself, and computes trials."""

    name = "simulated"
    summary = "a simulated system with known capacity, noise and faults; no process runs"
    options: type[Options] = SimulatedOptions
    jobs = (Job(ANY_WORKLOAD),)

    def check(self, situation: Situation[SimulatedOptions]) -> Sequence[str]:
        """Settings that contradict each other."""
        o = situation.options
        problems = []
        if o.pause and not o.pause_every:
            problems.append("pause needs pause_every, the time from one pause to the next")
        if o.pause_every and o.pause >= o.pause_every:
            problems.append("pause must be shorter than pause_every, or no event is ever processed")
        if 0 < o.batch_interval < LEAST_INTERVAL:
            problems.append("batch_interval must be at least 1ms, or 0s to process events continuously")
        if o.batch_interval and o.batch_cost >= o.batch_interval:
            problems.append("batch_cost must be shorter than batch_interval")
        if o.batch_cost and not o.batch_interval:
            problems.append("batch_cost needs batch_interval, the time from one micro-batch to the next")
        return problems

    def requirements(self, options: SimulatedOptions, transport: str) -> Sequence[Requirement]:
        """Nothing."""
        return ()

    def layout(self, options: SimulatedOptions, instances: int) -> Layout:
        """Any number of instances, at least those of the options."""
        count = max(instances, options.instances)
        return Layout(count, count)

    def traits(self, options: SimulatedOptions) -> Traits:
        """It simulates micro-batches, or serves continuously."""
        return Traits(batch_interval_ns=int(options.batch_interval), simulated=True)

    def describe(self, options: SimulatedOptions) -> EngineFacts:
        """What is stored with a trial."""
        return EngineFacts(name=self.name, simulated=True, options=options.model_dump(mode="json"))

    def simulate(self, trial: Trial, work: float) -> "SimulatedTrial":
        """Compute a trial as far as it is read."""
        return SimulatedTrial(trial, SimulatedOptions.from_resolved(trial.options), work)


simulated = Simulated()


def mean_capacity(options: SimulatedOptions, instances: int, work: float = 1.0) -> float:
    """Long-run events per second that the system can do: the Universal Scalability Law, less the pauses."""
    n = float(max(instances, 1))
    speedup = n / (1 + options.contention * (n - 1) + options.coherence * n * (n - 1))
    running = 1 - options.pause / options.pause_every if options.pause_every else 1.0
    return options.capacity * speedup * running / work


class SimulatedTrial:
    """One trial in simulated time. Everything follows from the trial's seed."""

    def __init__(self, trial: Trial, options: SimulatedOptions, work: float) -> None:
        self._trial, self._options = trial, options
        warmup = trial.warmup if trial.warmup is not None else trial.warmup_limit
        judged = -(-(trial.limit + warmup) // SECOND)
        length = judged + -(-trial.stall // SECOND)  # a trial may wait so long for an acknowledgement
        self._plan = trial.profile.plan(length * SECOND)
        self._rng = np.random.default_rng(trial.seed)
        instances = trial.instances if trial.instances > 1 else options.instances
        self._capacity = self._capacity_by_second(judged, length, mean_capacity(options, instances, work))
        self._published = self._plan.count(np.arange(length + 1, dtype=np.int64) * SECOND)
        self._batch_start, self._ack_time, self._ack_total = (
            self._batches() if options.batch_interval else self._continuous()
        )
        self._results = self._fire()
        self._stop, self._ending, self._detail = self._end(length)

    def _capacity_by_second(self, judged: int, length: int, mean: float) -> Floats:
        o = self._options
        # seconds after the longest trial draw from a separate random stream, so that those of the trial do not change
        after = np.random.default_rng([self._trial.seed, judged]).standard_normal(length - judged)
        shock = [*self._rng.standard_normal(judged).tolist(), *after.tolist()]
        scale, level = math.sqrt(1 - o.noise_memory**2), 0.0
        walk = []
        for i, s in enumerate(shock):
            level = s if i == 0 else o.noise_memory * level + scale * s
            walk.append(level)
        noise = np.maximum(1 + o.noise * np.array(walk), 0.0)
        second = np.arange(length)
        if o.warmup:
            to_go = np.maximum(1 - (second + 0.5) * SECOND / o.warmup, 0.0)
            noise *= 1 - (1 - COLD) * to_go**2
        if o.pause_every:
            mean /= 1 - o.pause / o.pause_every
            edges = np.arange(length + 1, dtype=np.int64) * SECOND
            # nanoseconds of pause before each edge: a pause ends each period
            paused = edges // o.pause_every * o.pause + np.maximum(edges % o.pause_every - (o.pause_every - o.pause), 0)
            noise *= 1 - np.diff(paused) / SECOND
        return mean * noise

    def _continuous(self) -> tuple[Ints, Ints, Ints]:
        """An acknowledgement at the end of each second. Lag is a reflected walk (Lindley)."""
        length = len(self._capacity)
        walk = np.concatenate([[0.0], np.cumsum(np.diff(self._published) - self._capacity)])
        lag = walk - np.minimum.accumulate(np.minimum(walk, 0.0))
        total = self._published - np.rint(lag).astype(np.int64)
        ends = np.arange(1, length + 1, dtype=np.int64) * SECOND
        return ends, ends, np.maximum.accumulate(total)[1:]

    def _batches(self) -> tuple[Ints, Ints, Ints]:
        """Micro-batches: each takes what is there when it starts, at the next trigger after the last one."""
        o, length = self._options, len(self._capacity)
        done_by = np.concatenate([[0.0], np.cumsum(self._capacity)])
        edge, end = done_by.tolist(), float(length)
        cost = o.batch_cost / SECOND
        capacity = self._capacity.tolist()
        segment, first = self._plan.start.tolist(), self._plan.first.tolist()
        starts, times, totals = [], [], []
        trigger, taken = o.batch_interval, 0
        while trigger < length * SECOND:
            i = bisect_right(segment, trigger) - 1
            into, span = trigger - segment[i], segment[i + 1] - segment[i]
            there = first[i] + into * (first[i + 1] - first[i]) // span
            start = min(trigger / SECOND + cost, end)
            whole = int(start)
            have = edge[min(whole, length)] + (start - whole) * (capacity[whole] if whole < length else 0.0)
            goal = have + (there - taken)
            if goal >= edge[-1]:
                break
            at = max(bisect_right(edge, goal) - 1, 0)
            finish = max(at + (goal - edge[at]) / (edge[at + 1] - edge[at]), start)
            starts.append(trigger)
            times.append(int(finish * SECOND))
            totals.append(there)
            taken = there
            # the trigger fires at whole intervals, or immediately when the batch took longer than one; in whole
            # nanoseconds, because a rounded multiple of the interval may be the trigger that has just fired
            trigger = max(times[-1], (trigger // o.batch_interval + 1) * o.batch_interval)
        return np.array(starts, np.int64), np.array(times, np.int64), np.array(totals, np.int64)

    def _end(self, length: int) -> tuple[int, Ending, str]:
        o, trial = self._options, self._trial
        reached = None if o.crash_at is None else trial.profile.reaches(o.crash_at)
        if o.crash_at is not None and reached is not None and reached < length * SECOND:
            why = f"the simulated system crashes at {format_rate(o.crash_at)}"
            return min(reached // SECOND + CRASH_AFTER, length), "crashed", why
        if trial.queue_bound:
            acked = np.concatenate([[0], self._ack_total])
            held = (
                self._published[1:] - acked[np.searchsorted(self._ack_time, np.arange(1, length + 1) * SECOND, "right")]
            )
            full = np.flatnonzero(held > trial.queue_bound)
            if full.size:
                return int(full[0]) + 1, "queue-full", f"more than {format_count(trial.queue_bound)} events waited"
        return length, "completed", ""

    def seconds(self) -> Iterator[Seconds]:
        """A few seconds at a time."""
        whole = self._all_seconds()
        edges = np.array([*range(0, self._stop, STRETCH), self._stop])
        cuts = {kind: np.searchsorted(lat.second, edges).tolist() for kind, lat in whole.latencies.items()}
        for place, (start, stop) in enumerate(pairwise(edges.tolist())):
            columns = {name: column[start:stop] for name, column in whole.columns.items()}
            kinds = {}
            for kind, lat in whole.latencies.items():
                first, last = cuts[kind][place : place + 2]
                kinds[kind] = Latencies(lat.second[first:last], lat.bucket[first:last], lat.count[first:last])
            yield Seconds(start, columns, kinds)

    def _all_seconds(self) -> Seconds:
        stop = self._stop
        second = np.searchsorted(np.arange(1, stop + 1) * SECOND, self._ack_time, "left")
        inside = second < stop
        second, times, totals = second[inside], self._ack_time[inside], self._ack_total[inside]
        acked, acks = np.zeros(stop, np.int64), np.bincount(second, minlength=stop)
        np.add.at(acked, second, np.diff(totals, prepend=0))
        ack_time, ack_lag = np.full(stop, -1, np.int64), np.full(stop, -1, np.int64)
        ack_time[second] = times  # the last one of a second wins
        ack_lag[second] = self._plan.count(times) - totals
        offered = np.diff(self._published[: stop + 1])
        taken, queue = self._taken(stop)
        fired = self._results
        came = fired.second < stop
        out = min(int(np.searchsorted(fired.due, stop)), fired.reached)
        columns = {
            "offered": offered,
            "published": offered,
            "served": taken,
            "acknowledged": acked,
            "acks": acks,
            "ack_time": ack_time,
            "ack_lag": ack_lag,
            "queue": queue,
            "outputs": np.bincount(fired.second[came], fired.rows[came], stop).astype(np.int64),
            "firings": np.bincount(fired.due[:out], minlength=stop) * fired.several,
        }
        return Seconds(0, columns, self._latencies(stop))

    def _latencies(self, stop: int) -> dict[Kind, Latencies]:
        """Those of all that was due in these seconds, whenever it comes."""
        fired = self._results
        due = int(np.searchsorted(fired.due, stop))
        out = min(due, fired.reached)
        spans: dict[Kind, slice] = {"event-time": slice(out), "processing-time": slice(out)}
        if out < due:
            spans["missing"] = slice(out, due)
        kinds: dict[Kind, Latencies] = {}
        for kind, span in spans.items():
            micros = fired.processing_time if kind == "processing-time" else fired.event_time
            at, bucket = fired.due[span], buckets.index(micros[span])
            kinds[kind] = Latencies(at, bucket, fired.rows[span])
            kinds[WINDOW_KINDS[kind]] = Latencies(at, bucket, np.full(len(at), fired.several))
        return kinds

    def _taken(self, stop: int) -> tuple[Ints, Ints]:
        """Events taken in each second, and the most that waited to be taken in it.

        A micro-batch takes all that is there when it starts; without micro-batches an event is taken as it is done.
        """
        edges = np.arange(1, stop + 1, dtype=np.int64) * SECOND
        totals = np.concatenate([[0], self._ack_total])
        at = self._batch_start if self._options.batch_interval else self._ack_time
        so_far = totals[np.searchsorted(at, edges, "right")]
        queue = self._published[1 : stop + 1] - so_far
        second = np.searchsorted(edges, at, "left")
        inside = (second < stop) & bool(self._options.batch_interval)
        np.maximum.at(queue, second[inside], np.diff(totals)[inside])  # what waited when a micro-batch took it
        return np.diff(so_far, prepend=0), queue

    def _fire(self) -> "Firings":
        """When outputs leave: a window fires once all that is due before its end (and watermark) is processed."""
        o = self._options
        params = workloads()[self._trial.workload].params.from_resolved(self._trial.params)
        windowed = isinstance(params, Windowed)
        period, watermark = (params.period, params.watermark) if windowed else (SECOND // SAMPLES, 0)
        several = -(-self._plan.horizon // (period * MOST_FIRINGS))
        period *= several
        due = np.arange(period, self._plan.horizon, period, dtype=np.int64)
        needed = np.minimum(self._plan.count(due + watermark), self._plan.total)
        # before the first acknowledgement nothing fires, not even a window without events
        reached = int(np.searchsorted(needed, self._ack_total[-1], "right")) if self._ack_total.size else 0
        done, service = self._done(due[:reached] + watermark, needed[:reached])
        own = np.minimum(o.delay * np.exp(o.delay_spread * self._rng.standard_normal(reached)), _LONGEST_DELAY)
        emitted = np.maximum(done, due[:reached]) + own.astype(np.int64)
        # what should be out and never comes has waited until the end at least
        missing = max(int(np.searchsorted(due, self._plan.horizon - watermark, "right")) - reached, 0)
        due, needed = due[: reached + missing], needed[: reached + missing]
        emitted = np.append(emitted, np.full(missing, self._plan.horizon))
        most = _MOST_ROWS // max(len(due), 1)
        rows = np.full(len(due), min(params.key_count * several, most)) if windowed else np.diff(needed, prepend=0)
        waited, processed = (np.rint(each / 1000).astype(np.int64) for each in (emitted - due, service + own))
        seconds = (due - 1) // SECOND, emitted // SECOND
        return Firings(*seconds, rows.astype(np.int64), waited, processed, reached, several)

    def _done(self, due: Ints, needed: Ints) -> tuple[Ints, Ints]:
        """When so many events are processed, and how long the micro-batch with the last of them took."""
        if self._options.batch_interval:
            ack = np.searchsorted(self._ack_total, needed, "left")
            return self._ack_time[ack], (self._ack_time - self._batch_start)[ack]
        edges = np.concatenate([[0], self._ack_time])
        wait = np.interp(needed, np.concatenate([[0], self._ack_total]), edges)
        # both ends of the wait are read from whole events, so that an idle system has none at any load
        wait -= np.interp(needed, self._published, edges)
        return due + np.maximum(wait, 0.0).astype(np.int64), np.zeros(len(due), np.int64)

    def outcome(self, stop: int) -> Outcome:
        """How it ended, if it was stopped after ``stop`` seconds."""
        o = self._options
        expected = int(self._results.rows[self._results.second < stop].sum())
        lost, duplicate, wrong = (_faults(expected, share) for share in (o.lose, o.duplicate, o.alter))
        # before the first window closes there are no outputs to compare
        account = Account(expected, expected - lost + duplicate, lost, duplicate, wrong, checked=expected > 0)
        cut_short = stop < self._stop
        ending: Ending = "completed" if cut_short else self._ending
        return Outcome(ending, "" if cut_short else self._detail, account=account)


def _faults(expected: int, share: float) -> int:
    return max(1, round(expected * share)) if share > 0 and expected else 0


@dataclass(frozen=True, slots=True, eq=False)
class Firings:
    """Outputs of a simulated trial in the order of their due times: the seconds of these and of emission, rows, and
    latencies in µs."""

    due: Ints
    second: Ints
    rows: Ints
    event_time: Ints
    processing_time: Ints
    reached: int
    """How many of them come; only these have a latency in processing-time."""
    several: int = 1
    """How many window results in a row each of them stands for."""
