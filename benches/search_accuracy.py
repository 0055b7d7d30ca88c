"""How often the bounds contain the true limit: random simulated engines, whole experiments in simulated time.

The true limit for ``lag-trend <= θ`` is C/(1 − θ), with C the long-run mean capacity. Searches of the last table begin
with an estimate of the limit, as those of Spark do after its warm-up.
"""

import argparse
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from streamgauge.engines.simulated import SimulatedOptions, mean_capacity, simulated
from streamgauge.judge import EarlyStopRule, decide, measure
from streamgauge.model.experiment import EngineChoice, Experiment, SearchPlan, Span, TrialPlan, WorkloadChoice
from streamgauge.model.finding import TrialResult
from streamgauge.model.objective import Objective
from streamgauge.model.trial import Recording, Trial
from streamgauge.model.units import SECOND
from streamgauge.run.explore import setup_of, trial_of
from streamgauge.run.trial.execute import execute
from streamgauge.run.trial.setup import DiscardingRecorder, RunContext
from streamgauge.search import build

THETA = 0.01
OBJECTIVES = (
    Objective("lag-trend", "<=", THETA, relative=True, text="lag-trend <= 1%"),
    Objective("lost", "==", 0.0, text="lost == 0"),
)
PRECISIONS = (0.001, 0.005, 0.01, 0.02, 0.05)
HINTS = (0.85, 1.15)
"""The smallest and the largest estimate with which a search begins, as a multiple of the limit."""
WORKLOAD = WorkloadChoice("windowed-aggregation", {"window": 8 * SECOND, "slide": 4 * SECOND, "gem_packs": 100})


def simulate(trial: Trial, exact: bool = True) -> Recording:
    """One trial in simulated time, until the early-stop rule ends it; ``exact`` as in that rule."""
    rule = EarlyStopRule(trial, OBJECTIVES, exact)
    return execute(setup_of(trial, simulated, DiscardingRecorder(Path()), RunContext(), rule))


@dataclass(frozen=True)
class Result:
    """One experiment: what was found and what is true."""

    seed: int
    contains: bool
    width: float
    status: str
    trials: int
    seconds: int
    notes: tuple[str, ...]


def random_options(seed: int, noise: float) -> SimulatedOptions:
    """An engine over four decades of capacity, with noise, pauses, warm-up and micro-batches."""
    rng = np.random.default_rng(seed)
    pauses, batches = rng.random() < 0.5, rng.random() < 0.5
    every = int(rng.uniform(2, 10) * SECOND)
    interval = int(rng.uniform(0.2, 2.0) * SECOND)
    return SimulatedOptions.from_resolved(
        {
            "capacity": float(10 ** rng.uniform(3, 7)),
            "instances": int(rng.integers(1, 9)),
            "contention": float(rng.uniform(0, 0.1)),
            "coherence": float(rng.uniform(0, 0.002)),
            "noise": float(rng.uniform(0, noise)),
            "noise_memory": float(rng.uniform(0, 0.5)),
            "warmup": int(rng.uniform(0, 20) * SECOND),
            "pause_every": every if pauses else 0,
            "pause": int(rng.uniform(0.01, 0.05) * every) if pauses else 0,
            "batch_interval": interval if batches else 0,
            "batch_cost": int(rng.uniform(0, 0.01) * interval) if batches else 0,
        }
    )


def experiment_for(options: SimulatedOptions, seed: int, precision: float = 0.05) -> Experiment:
    """The experiment with this engine."""
    truth = mean_capacity(options, options.instances) / (1 - THETA)
    rng = np.random.default_rng(seed + 1)
    low, high = truth / 10 ** rng.uniform(0.3, 2), truth * 10 ** rng.uniform(0.1, 1)
    return Experiment(
        name="random",
        workload=WORKLOAD,
        engines=(EngineChoice("simulated", "simulated", options.model_dump()),),
        what="sustainable-throughput",
        objectives=OBJECTIVES,
        span=Span(between=(low, high)),
        search=SearchPlan("adaptive", precision),
        trial=TrialPlan(),
        seed=seed,
    )


def find(seed: int, noise: float, precision: float = 0.05, hinted: bool = False) -> Result:
    """One whole experiment in simulated time; ``hinted``: it begins with an estimate of the limit."""
    options = random_options(seed, noise)
    experiment = experiment_for(options, seed, precision)
    truth = mean_capacity(options, options.instances) / (1 - THETA)
    hint = truth * float(np.random.default_rng([seed, 2]).uniform(*HINTS)) if hinted else 0.0
    search, past, seconds = build(experiment, "simulated", hint), list[TrialResult](), 0
    while (request := search.next(past)) is not None:
        trial = trial_of(experiment, experiment.engines[0], request, len(past) + 1)
        recording = simulate(trial, exact=not hinted)
        past.append(TrialResult(request, decide(recording, measure(recording), OBJECTIVES), trial.number))
        seconds += len(recording.seconds)
    (finding,) = search.findings(past)
    low = finding.holds.value if finding.holds else 0.0
    high = finding.fails.value if finding.fails else float("inf")
    width = finding.width if finding.width is not None else float("inf")
    return Result(seed, low <= truth <= high, width, finding.status, len(past), seconds, finding.notes)


def report(noise: float, count: int, workers: int) -> None:
    """Run and print."""
    begun = time.perf_counter()
    with ProcessPoolExecutor(workers) as pool:
        results = list(pool.map(partial(find, noise=noise), range(count), chunksize=20))
    spent = time.perf_counter() - begun
    contains = sum(r.contains for r in results) / count
    narrow = [r for r in results if r.width <= 0.05 * 1.0001]
    print(f"noise up to {noise:.0%} per second, correlation up to 0.5: {count} random engines")
    print(f"  bounds that contain the limit  {contains:.2%}")
    print(f"  width <= 5 %                   {len(narrow) / count:.2%}  (widest {max(r.width for r in results):.1%})")
    print(f"  wider ones with a reason       {sum(bool(r.notes) for r in results if r not in narrow)}")
    print(f"  mean trials                    {np.mean([r.trials for r in results]):.2f}")
    print(f"  mean simulated seconds         {np.mean([r.seconds for r in results]):.0f}")
    print(f"  statuses                       {dict(Counter(r.status for r in results))}")
    print(f"  experiments per minute         {count / spent * 60:.0f} ({workers} processes)")
    missed = [r.seed for r in results if not r.contains]
    if missed:
        print(f"  seeds that missed              {missed[:20]}")


def report_precisions(count: int, workers: int, hinted: bool = False) -> None:
    """Print how often bounds contain the true limit at precisions that the trials support, and at others."""
    begins = f", each search with a hint of {HINTS[0]:.0%} to {HINTS[1]:.0%} of the limit" if hinted else ""
    print(f"noise up to 5% per second: {count} random engines at each precision{begins}")
    print("  precision  contain the limit  median width  at most as wide as asked  wider with a reason  mean trials")
    with ProcessPoolExecutor(workers) as pool:
        for precision in PRECISIONS:
            search = partial(find, noise=0.05, precision=precision, hinted=hinted)
            results = list(pool.map(search, range(count), chunksize=20))
            wide = [r for r in results if r.width > precision * 1.0001]
            print(
                f"  {precision:9.1%}  {sum(r.contains for r in results) / count:17.2%}"
                f"  {np.median([r.width for r in results]):12.2%}  {1 - len(wide) / count:24.2%}"
                f"  {f'{sum(bool(r.notes) for r in wide)} of {len(wide)}':>17}"
                f"  {np.mean([r.trials for r in results]):11.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--each", type=int, default=1000, help="engines at each precision")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    report(0.05, arguments.count, arguments.workers)
    report(0.10, arguments.count, arguments.workers)
    report_precisions(arguments.each, arguments.workers)
    report_precisions(arguments.each, arguments.workers, hinted=True)


if __name__ == "__main__":
    main()
