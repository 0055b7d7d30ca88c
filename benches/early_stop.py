"""How fast and how surely the sequential rule decides, and whether the trend's interval is honest.

    python -m benches.early_stop [--count 2000] [--table full batches]

Simulated traces at known ratios to the boundary, with noise of 5 % per second and lag-1 correlation 0.5. Times are
after warm-up, as shares of a full-length trial. The boundary is C/(1 − θ). With micro-batches it is the load at which
lag without noise grows by exactly θ in the second half of a trial, because their fixed cost takes a share of C that
depends on how long they have become. So it is up to 1 % higher in a trial that is twice as long. Loads below the
boundary are shares of that of the usual length, and loads above it of that of the longest one.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq

from benches.search_accuracy import OBJECTIVES, THETA, WORKLOAD, simulate
from streamgauge.engines.simulated import SimulatedOptions
from streamgauge.judge import decide, measure, trend_rules
from streamgauge.judge.measure import floor
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.profile import constant
from streamgauge.model.trial import Purpose, Trial, TrialRequest
from streamgauge.model.units import SECOND

RATIOS = (0.5, 0.8, 0.95, 0.97, 1.03, 1.05, 1.2, 1.5)
AROUND = (0.95, 0.975, 1.0, 1.025, 1.05)
CAPACITY = 1_000_000.0
FULL = 60
NOISE = 0.05
WARMUP = 10
BATCH_COST = 0.05
"""Fixed cost of a micro-batch as a share of the interval: about what was measured with Spark and 2 s."""
BATCH_WARMUP = 5
"""Seconds of the warm-up with micro-batches, as in the quickstarts."""


def trial_at(  # noqa: PLR0917
    ratio: float,
    seed: int,
    purpose: Purpose,
    memory: float = 0.5,
    warmup: int = WARMUP,
    limit: int = 5 * FULL,
    noise: float = NOISE,
) -> Trial:
    """A trial at this ratio to the boundary of an engine with the worst noise that the rule is made for."""
    load = ratio * CAPACITY / (1 - THETA)
    options = SimulatedOptions(
        capacity=f"{CAPACITY}/s", noise=noise, noise_memory=memory, warmup=f"{warmup}s"
    ).model_dump()
    return Trial(
        number=1,
        ask=TrialRequest("load", load, purpose),
        workload=WORKLOAD.name,
        params=WORKLOAD.params,
        engine="simulated",
        options=options,
        instances=1,
        profile=constant(load),
        duration=FULL * SECOND,
        limit=limit * SECOND,
        warmup=None,
        warmup_limit=60 * SECOND,
        queue_bound=0,
        seed=seed * 1009 + round(ratio * 1000),
    )


def run(trial: Trial, exact: bool = True) -> tuple[Verdict, Measurement]:
    """One trial in simulated time, as a real run would make and judge it."""
    recording = simulate(trial, exact)
    measured = measure(recording)
    return decide(recording, measured, OBJECTIVES), measured


def decide_once(ratio: float, seed: int, warmup: int = WARMUP) -> tuple[str, int]:
    """The verdict of the early rule on one trace, and how many seconds after warm-up it took."""
    verdict, measured = run(trial_at(ratio, seed, "probe", warmup=warmup))
    return verdict.kind.value, measured.judged_seconds


@dataclass(frozen=True, slots=True)
class Case:
    """Full-length trials of one kind."""

    limit: int
    duration: int = FULL
    noise: float = NOISE
    interval: int = 0
    """Seconds from one micro-batch to the next; 0: events are processed continuously."""
    early: bool = False
    """Whether they may fail at half and at three quarters of their length, as in a search that has a hint."""

    @property
    def looks(self) -> int:
        """How often such a trial is judged at most."""
        return trend_rules.max_checks(self.duration, self.limit) + 2 * self.early

    def trial(self, ratio: float, seed: int) -> Trial:
        """A trial at this ratio to the boundary."""
        purpose: Purpose = "confirm" if self.early else "measure"
        trial = trial_at(ratio, seed, purpose, warmup=0, limit=self.limit, noise=self.noise)
        trial = replace(trial, duration=self.duration * SECOND)
        if not self.interval:
            return trial
        length = self.limit if ratio > 1 else self.duration
        return in_batches(trial, self.interval, ratio * boundary(self.interval, length))


def in_batches(trial: Trial, interval: int, load: float) -> Trial:
    """The trial at another load and with micro-batches."""
    cost = round(BATCH_COST * interval * SECOND)
    return replace(
        trial,
        ask=replace(trial.ask, value=load),
        profile=constant(load),
        options={**trial.options, "batch_interval": interval * SECOND, "batch_cost": cost},
        trigger=interval * SECOND,
        warmup=BATCH_WARMUP * SECOND,
    )


@lru_cache
def boundary(interval: int, length: int) -> float:
    """The load at which lag of micro-batches without noise grows by exactly θ in the second half of a trial."""
    plain = replace(trial_at(1.0, 1, "measure", warmup=0, limit=length, noise=0.0), duration=length * SECOND)

    def excess(load: float) -> float:
        late = measure(simulate(in_batches(plain, interval, load))).lag_late
        return (1.0 if late is None else late / load) - THETA

    return float(brentq(excess, 0.5 * CAPACITY, 1.5 * CAPACITY, xtol=1e-4 * CAPACITY))


def looked_at(case: Case, ratio: float, seed: int) -> tuple[str, int]:
    """What a full-length trial ends with that may be extended to a limit, and after how many seconds."""
    verdict, measured = run(case.trial(ratio, seed), exact=not case.early)
    return verdict.kind.value, measured.judged_seconds


CONTINUOUS = tuple(
    case
    for noise in (NOISE, 2 * NOISE)
    for case in (*(Case(many * FULL, noise=noise) for many in (1, 2, 5)), Case(2 * FULL, noise=noise, early=True))
)
BATCHES = tuple(
    Case(2 * duration, duration, interval=interval, early=early)
    for interval in (1, 2)
    for duration in (FULL // 2, FULL)
    for early in (False, True)
)


def full_length(title: str, cases: Sequence[Case], count: int, pool: ProcessPoolExecutor) -> None:
    """Print what all looks at a full-length trial realise together: at the boundary, and beside it."""
    print(f"full-length trials with {title}, {count} each, correlation 0.5: all looks up to the limit together")
    print("  noise  interval   length    limit  looks         load   SUSTAINED  OVERLOADED  UNDECIDED  mean length")
    for case in cases:
        for ratio in AROUND:
            answers = list(pool.map(partial(looked_at, case, ratio), range(count), chunksize=50))
            parts = [
                sum(kind == name for kind, _ in answers) / count for name in ("SUSTAINED", "OVERLOADED", "UNDECIDED")
            ]
            length = float(np.mean([seconds for _, seconds in answers]))
            interval = f"{case.interval} s" if case.interval else "–"
            looks = f"{case.looks}{' (2 early)' if case.early else ''}"
            asked = f"{case.noise:5.0%}  {interval:>8}  {case.duration:5} s  {case.limit:5} s  {looks:12}  {ratio:<5}"
            found = f"{parts[0]:9.2%}  {parts[1]:10.2%}  {parts[2]:9.2%}  {length:7.1f} s"
            print(f"  {asked}  {found}", flush=True)


def returning(noise: float, length: int, seed: int) -> bool:
    """Whether lag that grows by θ + 2.5 % is found at its floor as often as the rule requires."""
    rng, level, walk = np.random.default_rng(seed), 0.0, 0.0
    lag = np.empty(length)
    for i, shock in enumerate(rng.standard_normal(length)):
        level = shock if i == 0 else trend_rules.MEMORY * level + math.sqrt(1 - trend_rules.MEMORY**2) * shock
        walk = max(walk + THETA + trend_rules.REFUTED_GROWTH + noise * level, 0.0)
        lag[i] = walk
    time = np.arange(1.0, length + 1)
    seen = trend_rules.TrendEvidence(None, THETA, 1.0, float(length), math.inf, floor=floor(time, lag, 1.0, 0.0))
    return trend_rules.returned_to_floor(seen)


def returns(count: int, pool: ProcessPoolExecutor) -> None:
    """Print how often the rule on returns to the floor mistakes a growing system for one that holds."""
    most = f"at most {trend_rules.MAX_FALSE_RETURNS:.0%} may pass"
    print(f"returns to the floor, {count} walks each that grow by θ + {trend_rules.REFUTED_GROWTH:.1%}; {most}")
    for noise in (0.02, 0.05, 0.10, 0.20):
        rates = [
            sum(pool.map(partial(returning, noise, length), range(count), chunksize=50)) / count
            for length in (30, 40, 60, 120)
        ]
        shown = "  ".join(f"{length} s {rate:.2%}" for length, rate in zip((30, 40, 60, 120), rates, strict=True))
        print(f"  noise {noise:4.0%}: {shown}", flush=True)


def covers(ratio: float, memory: float, seed: int) -> bool:
    """Whether the trend's 95 % interval of one full-length trial holds the true growth, load − capacity."""
    trial = trial_at(ratio, seed, "measure", memory)
    _, measured = run(trial)
    truth = trial.load - CAPACITY
    return measured.lag_trend is not None and measured.lag_trend.low <= truth <= measured.lag_trend.high


def early(count: int, pool: ProcessPoolExecutor) -> None:
    """Print how often short trials are wrong, and how soon they end."""
    for warmup in (0, WARMUP):
        print(f"early rule, {count} traces each, noise 5 % per second with correlation 0.5, warm-up {warmup} s")
        print("  load / boundary    wrong  undecided  mean time to decide")
        shares = []
        for ratio in RATIOS:
            answers = list(pool.map(partial(decide_once, ratio, warmup=warmup), range(count), chunksize=50))
            right = "SUSTAINED" if ratio < 1 else "OVERLOADED"
            wrong = sum(kind not in (right, "UNDECIDED") for kind, _ in answers) / count
            undecided = sum(kind == "UNDECIDED" for kind, _ in answers) / count
            shares.append(float(np.mean([seconds for _, seconds in answers])) / FULL)
            took = f"{shares[-1] * FULL:5.1f} s ({shares[-1]:.0%})"
            print(f"  {ratio:<15}  {wrong:6.2%}     {undecided:6.2%}     {took}", flush=True)
        print(f"  mean over all loads: {np.mean(shares):.1%} of a full-length trial")


def intervals(count: int, pool: ProcessPoolExecutor) -> None:
    """Print how often the interval of the trend contains the true growth."""
    print(f"95 % interval of the trend, {count} full-length trials each")
    for memory in (0.0, 0.3, 0.5):
        for ratio in (1.05, 1.2, 1.5):
            held = sum(pool.map(partial(covers, ratio, memory), range(count), chunksize=50)) / count
            print(
                f"  correlation {memory}, load {ratio} of the boundary: contains the true growth in {held:.1%}",
                flush=True,
            )


TABLES: dict[str, Callable[[int, ProcessPoolExecutor], None]] = {
    "early": early,
    "returns": returns,
    "full": partial(full_length, "continuous processing", CONTINUOUS),
    "batches": partial(full_length, f"micro-batches of a fixed cost of {BATCH_COST:.0%}", BATCHES),
    "intervals": intervals,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--count", type=int, default=400, help="trials at each load; 2000 for figures of the documentation"
    )
    parser.add_argument("--table", nargs="*", choices=TABLES, default=list(TABLES), help="print only these tables")
    asked = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        for name in asked.table:
            TABLES[name](asked.count, pool)


if __name__ == "__main__":
    main()
