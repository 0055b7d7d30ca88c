"""How fast the reference result is computed and outputs are checked: ``python -m benches.reference_result``."""

import statistics
import time

import numpy as np

from streamgauge.judge.outputs import compare_outputs
from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND, format_count, format_rate
from streamgauge.workloads.contract import Inputs, plans_of
from streamgauge.workloads.data.sensors import Readings
from streamgauge.workloads.data.shopping import PURCHASE_STREAM, Purchases
from streamgauge.workloads.references.statistics import EventWindows, WindowStatistics
from streamgauge.workloads.references.window_sums import WindowSums
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams
from streamgauge.workloads.windowed_join import WindowedJoinParams, windowed_join

REPEATS = 5
EVENTS = 10_000_000
ORIGIN = 1_700_000_000 * SECOND
SHAPES = (("normal", 100), ("normal", 10_000), ("uniform", 100), ("zipf", 1_000), ("single", 1))


def events_per_second(distribution: str, gem_packs: int) -> float:
    """Median over repeats of the events summed per second of CPU, at a million a second and 8 s / 4 s windows."""
    params = WindowedAggregationParams.model_validate({"distribution": distribution, "gem_packs": gem_packs})
    plan = constant(1_000_000).plan(EVENTS * 1_000)
    seen = []
    for _ in range(REPEATS):
        sums = WindowSums(Purchases(params, plan, seed=1, origin=ORIGIN), params.window, params.slide)
        begin = time.process_time()
        sums.until({PURCHASE_STREAM.name: EVENTS})
        seen.append(EVENTS / (time.process_time() - begin))
    return statistics.median(seen)


def statistics_per_second(sensors: int, window: int, slide: int) -> float:
    """Median over repeats of the readings per second of CPU, at a million a second; times in seconds."""
    plan = constant(1_000_000).plan(EVENTS * 1_000)
    made, seen = Readings(sensors, plan, seed=1, origin=ORIGIN), list[float]()
    for _ in range(REPEATS):
        windows = EventWindows(plan, ORIGIN, window * SECOND, slide * SECOND)
        begin = time.process_time()
        WindowStatistics(made, windows).until(EVENTS)
        seen.append(EVENTS / (time.process_time() - begin))
    return statistics.median(seen)


def joined_per_second(selectivity: float) -> float:
    """The same for the pairs of purchases and ads, with this share of purchases that find an ad."""
    params = WindowedJoinParams.model_validate({"selectivity": selectivity})
    plans = plans_of(windowed_join.streams(params), constant(1_000_000), EVENTS * 1_000)
    seen = []
    for _ in range(REPEATS):
        pairs = windowed_join.reference(params, Inputs(plans, seed=1, origin_ns=ORIGIN))
        begin = time.process_time()
        pairs.until({name: plan.total for name, plan in plans.items()})
        seen.append(EVENTS / (time.process_time() - begin))
    return statistics.median(seen)


def rows_checked_per_second() -> float:
    """Median over repeats of the output rows compared with the result per second of CPU; a million of them."""
    start = np.repeat(np.arange(1000, dtype=np.int64) * 4_000_000, 1000)
    key = np.tile(np.arange(1000, dtype=np.int64), 1000)
    answer = {"window_start": start, "gem_pack_id": key, "sum": start + key, "count": key, "max_due": start}
    order = np.random.default_rng(1).permutation(len(start))
    observed = {name: column[order] for name, column in answer.items()}
    seen = []
    for _ in range(REPEATS):
        begin = time.process_time()
        compare_outputs(answer, observed, window=8_000_000, closed=1 << 60, identity=("window_start", "gem_pack_id"))
        seen.append(len(order) / (time.process_time() - begin))
    return statistics.median(seen)


def main() -> None:
    """Print a line for each distribution of keys, and one for the check of outputs."""
    print(f"reference result, events per core second, 8s/4s windows (median of {REPEATS})")
    for distribution, gem_packs in SHAPES:
        print(f"  {distribution:8} {gem_packs:>6,} keys  {format_rate(events_per_second(distribution, gem_packs)):>8}")
    print("six statistics per sensor and window, events per core second")
    for sensors, window, slide in ((1_000, 4, 4), (100_000, 4, 4), (1_000, 8, 1)):
        rate = format_rate(statistics_per_second(sensors, window, slide))
        print(f"  {sensors:>15,} sensors, {window}s/{slide}s  {rate:>8}")
    for selectivity in (0.01, 1.0):
        print(f"  pairs of the windowed join, {selectivity:.0%} {format_rate(joined_per_second(selectivity)):>8}")
    print(
        f"outputs compared with it: {format_count(rows_checked_per_second())} rows per core second, 1,000,000 together"
    )


if __name__ == "__main__":
    main()
