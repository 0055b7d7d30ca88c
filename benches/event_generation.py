"""How fast purchases are made, on one core: ``python -m benches.event_generation``."""

import statistics
import time

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND, format_rate
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

REPEATS = 7
EVENTS = 4_000_000
BATCH = 50_000
SHAPES = (("normal", 100), ("normal", 10_000), ("uniform", 100), ("zipf", 1_000), ("single", 1))


def events_per_second(distribution: str, gem_packs: int, partitions: int = 1) -> float:
    """Median over repeats of the events made per second of CPU, all four columns, batch by batch."""
    params = WindowedAggregationParams.model_validate({"distribution": distribution, "gem_packs": gem_packs})
    stream = Purchases(params, constant(1_000_000).plan(EVENTS * 1_000), seed=1, origin=1_700_000_000 * SECOND)
    stream.events(0, BATCH)  # makes the table of quantiles
    seen = []
    for _ in range(REPEATS):
        begin = time.process_time()
        for start in range(0, EVENTS, BATCH * partitions):
            for partition in range(partitions):
                stream.events(start, min(start + BATCH * partitions, EVENTS), partitions, partition)
        seen.append(EVENTS / (time.process_time() - begin))
    return statistics.median(seen)


def main() -> None:
    """Print a line for each distribution of keys, and one for a stream with partitions."""
    print(f"events made per core second, four columns, batches of {BATCH:,} (median of {REPEATS})")
    for distribution, gem_packs in SHAPES:
        print(f"  {distribution:8} {gem_packs:>6,} keys  {format_rate(events_per_second(distribution, gem_packs)):>8}")
    print(f"  normal      100 keys  {format_rate(events_per_second('normal', 100, 4)):>8}  as 4 partitions")


if __name__ == "__main__":
    main()
