"""How fast and how surely the sequential rule decides, and whether the trend's interval is honest.

Simulated traces at known ratios to the boundary C/(1 − θ), with noise of 5 % per second and lag-1
correlation 0.5. Times are after warm-up, as shares of a full-length trial.
"""

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from benches.search_accuracy import OBJECTIVES, THETA, WORKLOAD, simulate
from streamgauge.engines.simulated import SimulatedOptions
from streamgauge.judge import decide, measure, trend_rules
from streamgauge.judge.measure import floor
from streamgauge.model.measurement import Measurement, Verdict
from streamgauge.model.profile import constant
from streamgauge.model.trial import Purpose, Trial, TrialRequest
from streamgauge.model.units import SECOND

RATIOS = (0.5, 0.8, 0.95, 0.97, 1.03, 1.05, 1.2, 1.5)
CAPACITY = 1_000_000.0
FULL = 60
NOISE = 0.05
WARMUP = 10


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


def run(trial: Trial) -> tuple[Verdict, Measurement]:
    """One trial in simulated time, as a real run would make and judge it."""
    recording = simulate(trial)
    measured = measure(recording)
    return decide(recording, measured, OBJECTIVES), measured


def decide_once(ratio: float, seed: int, warmup: int = WARMUP) -> tuple[str, int]:
    """The verdict of the early rule on one trace, and how many seconds after warm-up it took."""
    verdict, measured = run(trial_at(ratio, seed, "probe", warmup=warmup))
    return verdict.kind.value, measured.judged_seconds


def looked_at(ratio: float, limit: int, noise: float, seed: int) -> tuple[str, int]:
    """What a full-length trial ends with that may be extended to a limit, and after how many seconds."""
    verdict, measured = run(trial_at(ratio, seed, "measure", warmup=0, limit=limit, noise=noise))
    return verdict.kind.value, measured.judged_seconds


def full_length(count: int, pool: ProcessPoolExecutor) -> None:
    """Print what all looks at a full-length trial realise together: at the boundary, and beside it."""
    print(f"full-length trials of {FULL} s, {count} each, correlation 0.5: all looks up to the limit together")
    print("  noise  limit  looks  load / boundary  SUSTAINED  OVERLOADED  UNDECIDED  mean length")
    for noise in (NOISE, 2 * NOISE):
        for limit in (FULL, 2 * FULL, 5 * FULL):
            for ratio in (0.95, 0.975, 1.0, 1.025, 1.05):
                answers = list(pool.map(partial(looked_at, ratio, limit, noise), range(count), chunksize=50))
                parts = [
                    sum(kind == name for kind, _ in answers) / count
                    for name in ("SUSTAINED", "OVERLOADED", "UNDECIDED")
                ]
                length = float(np.mean([seconds for _, seconds in answers]))
                asked = f"{noise:5.0%}  {limit:3} s  {trend_rules.max_checks(FULL, limit):5}  {ratio:<15}"
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    count = parser.parse_args().count
    with ProcessPoolExecutor(2) as pool:
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
                print(f"  {ratio:<15}  {wrong:6.2%}     {undecided:6.2%}     {took}")
            print(f"  mean over all loads: {np.mean(shares):.1%} of a full-length trial")
        returns(count, pool)
        full_length(count, pool)
        print(f"95 % interval of the trend, {count} full-length trials each")
        for memory in (0.0, 0.3, 0.5):
            for ratio in (1.05, 1.2, 1.5):
                held = sum(pool.map(partial(covers, ratio, memory), range(count), chunksize=50)) / count
                print(f"  correlation {memory}, load {ratio} of the boundary: covers the truth in {held:.1%}")


if __name__ == "__main__":
    main()
