"""How often verdicts are wrong, undecided or INVALID with the noise of real Spark trials.

``benches/data/real_noise.npz`` has the micro-batches of recorded trials (``benches/_collect_noise.py``). The duration
of a micro-batch is fitted as a + b · events: a is that of the Spark application, b that of the trial. What is left, as
a share of the duration, is drawn again in blocks of at least ten micro-batches, together with what other processes
took, and the queue is replayed at shares of the boundary. The boundary is the load at which lag, without noise, grows
by exactly θ in the second half of a trial.

A verdict is wrong if its claim about the undisturbed system is. A trial that is OVERLOADED while other processes took
a share s claims only that L / (1 − s) fails. If this is right, it has its own column.
"""

import argparse
import math
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, nnls

from benches._collect_noise import load
from benches.search_accuracy import THETA
from streamgauge.judge import EarlyStopRule, decide, measure
from streamgauge.judge.disturbed import MAX_FOREIGN_SHARE
from streamgauge.model.measurement import Verdict, VerdictKind
from streamgauge.model.objective import Objective
from streamgauge.model.profile import constant
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Recording, Trial, TrialRequest
from streamgauge.model.units import SECOND

Floats = npt.NDArray[np.float64]

DATA = Path(__file__).parent / "data" / "real_noise.npz"
RATIOS = (0.8, 0.9, 0.95, 0.975, 1.025, 1.05, 1.1, 1.2)
LAG = (Objective("lag-trend", "<=", THETA, relative=True, text="lag-trend <= 1%"),)
WARMUP, DURATION, LIMIT = 5, 60, 120
BLOCK, LEAST, FEWEST = 10, 12, 5
SMALL, MEMORY = 0.05, 0.5
"""Noise per second, and correlation, up to which the rules promise their error rates."""
OLD = """
  load / boundary             0.8    0.9   0.95  0.975  1.025   1.05    1.1    1.2
  as recorded, INVALID       100%   100%   100%   100%   100%   100%   100%   100%
  scaled, draws of a second: wrong 0 % everywhere, undecided
                               0%     0%     0%    36%     0%     0%     0%     0%
  scaled, draws of a whole micro-batch: wrong 0 % everywhere, undecided
                               0%     0%     0%    41%    14%     5%     0%     0%
"""
"""The rules of commit 508ef39, measured once on the first six recorded trials, 20 replays of each."""


@dataclass(frozen=True)
class Noise:
    """One recorded trial: what a micro-batch costs, and how far the real ones were off."""

    name: str
    fixed: float
    each: float
    trigger: float
    off: Floats
    taken: Floats
    steal: Floats
    lasts: float = 0.0
    """Seconds for which one draw of the noise lasts, or 0: for a whole micro-batch, however long it is."""

    @property
    def spread(self) -> float:
        """Standard deviation of the capacity over one second."""
        return float(np.std(self.off)) * math.sqrt(self.lasts or self.trigger)

    @property
    def memory(self) -> float:
        """Correlation from one micro-batch to the next."""
        each = self.off - self.off.mean()
        power = float(each @ each)
        return float(each[1:] @ each[:-1]) / power if power else 0.0

    @property
    def small(self) -> bool:
        return self.spread <= SMALL and self.memory <= MEMORY


def fit(trials: list[dict[str, Any]], lasts: float) -> list[Noise]:
    """a of each Spark application, and b of each trial. The first six trials have no name of their application."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for trial in trials:
        groups.setdefault(trial["about"].get("application", ""), []).append(trial)
    return [noise for group in groups.values() for noise in _fitted(group, lasts)]


def _fitted(group: list[dict[str, Any]], lasts: float) -> list[Noise]:
    rows = [_batches(trial) for trial in group]
    kept = [(trial, *columns) for trial, columns in zip(group, rows, strict=True) if len(columns[0]) >= FEWEST]
    if not kept:
        return []
    # one fixed cost and one cost per event for each trial, all not negative, weighted by the duration
    count = sum(len(events) for _, events, *_ in kept)
    columns, took = np.zeros((count, 1 + len(kept))), np.zeros(count)
    at = 0
    for i, (_, events, duration, *_) in enumerate(kept):
        rows_of = slice(at, at + len(events))
        columns[rows_of, 0], columns[rows_of, 1 + i], took[rows_of] = 1 / duration, events / duration, 1.0
        at += len(events)
    scale = np.maximum(columns.max(axis=0), 1e-12)
    cost = nnls(columns / scale, took)[0] / scale
    off = [
        duration / np.maximum(cost[0] + cost[1 + i] * events, 1e-9) for i, (_, events, duration, *_) in enumerate(kept)
    ]
    off = [each / each.mean() - 1 for each in off]
    if lasts:  # the noise of a micro-batch is less by the root of its length
        off = [each * np.sqrt(k[2] / lasts) for each, k in zip(off, kept, strict=True)]
    # an overloaded trial has few micro-batches: blocks of them are drawn from all trials of its application
    every = [np.concatenate(columns) for columns in (off, [k[3] for k in kept], [k[4] for k in kept])]
    found = []
    for i, (trial, _, _, taken, steal) in enumerate(kept):
        own = [off[i], taken, steal] if len(off[i]) >= LEAST else every
        about = trial["about"]
        name = f"{about['transport']} {about['load'] / 1e3:.0f}k/s, {disturbance(trial)}"
        found.append(Noise(name, float(cost[0]), float(cost[1 + i]), about["trigger"], own[0], own[1], own[2], lasts))
    return [noise for noise in found if noise.each > 0 and len(noise.off) >= LEAST]


def disturbance(trial: dict[str, Any]) -> str:
    """Whether other processes took more than the rules allow from Spark's core, as it was recorded."""
    taken = max(float(trial[f"seconds/{name}"].mean()) / 1e6 for name in ("foreign", "steal"))
    return "disturbed" if taken > MAX_FOREIGN_SHARE else "quiet"


def scaled(noise: Noise) -> Noise:
    """The same noise, as large as the rules promise their error rates for, on an undisturbed machine."""
    nothing = np.zeros_like(noise.taken)
    return replace(noise, off=noise.off * min(1.0, SMALL / noise.spread), taken=nothing, steal=nothing)


def best(found: list[Noise], ratio: float) -> float:
    """The least possible share of errors of any rule at this distance from the boundary after the whole trial."""
    errors = []
    for noise in found:
        memory = min(max(noise.memory, 0.0), 0.95)
        error = noise.spread * math.sqrt((1 + memory) / (1 - memory) / LIMIT)
        errors.append(0.5 * math.erfc(abs(ratio - 1) / error / math.sqrt(2)))
    return sum(errors) / len(errors)


def _batches(trial: dict[str, Any]) -> tuple[Floats, Floats, Floats, Floats]:
    """Events and seconds of each micro-batch after the first ones, and what others took in its second."""
    events, took = trial["batches/input_rows"].astype(float), trial["batches/trigger_ms"] / 1e3
    use = np.flatnonzero((events > 0) & (took > 0))[2:]
    ends = (trial["batches/time"][use] - trial["batches/time"][0]) / 1e9
    foreign, steal = (trial.get(f"seconds/{name}", np.zeros(1)) for name in ("foreign", "steal"))
    second = np.clip(ends.astype(int), 0, len(foreign) - 1)
    return events[use], took[use], foreign[second].astype(float), steal[second].astype(float)


def replayed(noise: Noise, rate: float, length: int, drawn: npt.NDArray[np.int64] | None) -> Seconds:
    """The seconds of a trial: micro-batches take what is there, and are acknowledged when the next one begins."""
    ack_time, ack_lag = np.full(length, -1, np.int64), np.full(length, -1, np.int64)
    acked, acks = np.zeros(length, np.int64), np.zeros(length, np.int64)
    foreign, steal = np.zeros(length, np.int64), np.zeros(length, np.int64)
    begun, before, number = noise.trigger, 0.0, 0
    while begun < length:
        which = -1 if drawn is None else int(drawn[number % len(drawn)])
        cost = noise.fixed + noise.each * rate * (begun - before)
        off = 0.0 if drawn is None else float(noise.off[which])
        ends = begun + max(cost + off * (math.sqrt(cost * noise.lasts) if noise.lasts else cost), 0.0)
        after = max(ends, (math.floor(begun / noise.trigger + 1e-9) + 1) * noise.trigger)
        if drawn is not None:
            foreign[int(begun) : int(after) + 1] = noise.taken[which]
            steal[int(begun) : int(after) + 1] = noise.steal[which]
        second = math.ceil(after) - 1
        if second < length:
            ack_time[second], ack_lag[second] = int(after * SECOND), int(rate * (after - begun))
            acked[second] += int(rate * (begun - before))
            acks[second] += 1
        before, begun, number = begun, after, number + 1
    offered = np.full(length, int(rate), np.int64)
    queue = np.cumsum(offered) - np.cumsum(acked)
    columns = {"offered": offered, "published": offered, "served": acked, "acknowledged": acked, "acks": acks}
    columns |= {"ack_time": ack_time, "ack_lag": ack_lag, "queue": queue, "foreign": foreign, "steal": steal}
    return Seconds(0, columns)


def boundary(noise: Noise) -> float:
    """The load at which lag without noise grows by θ in the second half of a trial of the full length."""

    def over(rate: float) -> float:
        trial = trial_at(noise, rate, 1)
        found = measure(Recording(trial, replayed(noise, rate, WARMUP + DURATION, None)))
        return (found.lag_late if found.lag_late is not None else rate) / rate - THETA

    most = 1 / noise.each
    low, high = 0.2 * most, 3.0 * most
    return float(brentq(over, low, high, xtol=1e-4 * most)) if over(low) < 0 < over(high) else most / (1 - THETA)


def trial_at(noise: Noise, rate: float, seed: int) -> Trial:
    return Trial(
        number=1,
        ask=TrialRequest("load", rate, "measure"),
        workload="windowed-aggregation",
        params={},
        engine="spark",
        options={},
        instances=1,
        profile=constant(rate),
        duration=DURATION * SECOND,
        limit=LIMIT * SECOND,
        warmup=WARMUP * SECOND,
        warmup_limit=WARMUP * SECOND,
        queue_bound=0,
        seed=seed,
        trigger=int(noise.trigger * SECOND),
    )


def once(noise: Noise, rate: float, seed: int) -> Verdict:
    """The verdict on one replayed trial."""
    rng = np.random.default_rng(seed)
    size = max(BLOCK, len(noise.off) // 3)
    starts = rng.integers(0, len(noise.off) - min(size, len(noise.off)) + 1, size=40)
    drawn = np.concatenate([np.arange(start, start + size) % len(noise.off) for start in starts])
    trial = trial_at(noise, rate, seed)
    whole, rule = replayed(noise, rate, WARMUP + LIMIT, drawn), EarlyStopRule(trial, LAG)
    ends = (s for s in range(1, len(whole) + 1) if rule.due(s) and rule.decided(whole.between(0, s)))
    stop = next(ends, len(whole))
    happened = Recording(trial, whole.between(0, stop))
    return decide(happened, measure(happened), LAG)


def counted(verdict: Verdict, ratio: float, taken: float) -> str:
    """How a verdict on a trial at this share of the boundary counts, if other processes took a share of the core.

    Every verdict is a claim about the system with all of its CPU, whose boundary is higher by 1 / (1 − taken). A trial
    that was disturbed and is OVERLOADED claims only that L / (1 − s) fails, and decides nothing about L.
    """
    if verdict.kind in (VerdictKind.UNDECIDED, VerdictKind.INVALID):
        return verdict.kind.value
    load = ratio * (1 - taken)
    if verdict.holds is not None:
        return "right" if verdict.holds is (load < 1) else "wrong"
    return "higher" if load / (1 - verdict.taken) >= 1 else "wrong"


def shares(job: tuple[Noise, float, int]) -> Counter[str]:
    """How many verdicts at one share of the boundary are right, wrong, about a higher load, UNDECIDED, INVALID."""
    noise, ratio, count = job
    rate, taken = ratio * boundary(noise), max(float(noise.taken.mean()), float(noise.steal.mean())) / 1e6
    return Counter(counted(once(noise, rate, seed), ratio, taken) for seed in range(count))


def table(title: str, found: list[Noise], count: int, pool: ProcessPoolExecutor) -> None:
    print(f"{title}: {len(found)} recorded trials, {count} replays of each")
    if not found:
        return
    print("  load / boundary   wrong  undecided  INVALID  a higher load fails  least possible error")
    for ratio in RATIOS:
        sums: Counter[str] = sum(pool.map(shares, [(noise, ratio, count) for noise in found]), Counter())
        parts = [sums[name] / sums.total() for name in ("wrong", "UNDECIDED", "INVALID", "higher")]
        shown = f"{parts[0]:6.2%}     {parts[1]:6.2%}  {parts[2]:7.2%}  {parts[3]:19.2%}"
        print(f"  {ratio:<15}  {shown}  {best(found, ratio):20.2%}", flush=True)


def tables(found: list[Noise], arguments: argparse.Namespace, pool: ProcessPoolExecutor) -> None:
    """Print the rates for noise as small as the rules are made for, for more, and for all of it scaled down."""
    for noise in found if arguments.list else []:
        print(
            f"  {noise.name:26} a {noise.fixed:.3f} s, 1/b {1 / noise.each:12,.0f}/s, "
            f"boundary {boundary(noise):12,.0f}/s, noise {noise.spread:6.1%}/s, correlation {noise.memory:5.2f}, "
            f"{len(noise.off)} micro-batches"
        )
    small = [noise for noise in found if noise.small]
    table(f"noise up to {SMALL:.0%} per second, correlation up to {MEMORY}", small, arguments.count, pool)
    table("more noise", [noise for noise in found if not noise.small], arguments.count, pool)
    shrunk = [scaled(noise) for noise in found if noise.memory <= MEMORY]
    table(f"every trial, its noise scaled down to {SMALL:.0%} per second", shrunk, arguments.count, pool)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--list", action="store_true", help="print the fit of each recorded trial")
    arguments = parser.parse_args()
    trials = load(arguments.data)
    kinds = Counter(f"{t['about']['transport']}, {disturbance(t)}" for t in trials)
    print(f"{len(trials)} recorded trials of Spark: {dict(kinds)}")
    with ProcessPoolExecutor(2) as pool:
        for lasts, how in ((1.0, "draws of noise that last a second"), (0.0, "draws that last a whole micro-batch")):
            print(f"== {how}")
            tables(fit(trials, lasts), arguments, pool)
    print("the rules of commit 508ef39 on the first six recorded trials, 20 replays of each:" + OLD)


if __name__ == "__main__":
    main()
