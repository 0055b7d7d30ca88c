"""How fast events are made, on one core: ``python -m benches.event_generation``."""

import statistics
import time

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND, format_rate
from streamgauge.workloads.contract import Inputs, plans_of
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.data.traffic import STREAMS
from streamgauge.workloads.traffic import TrafficParams, traffic
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

REPEATS = 7
EVENTS = 4_000_000
RECORDS = 1_000_000
BATCH = 50_000
TRAFFIC = (("flow", 6_500, 1), ("speed", 6_500, 1), ("flow", 100_000, 1), ("flow", 6_500, 4))
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


def records_per_second(stream: str, locations: int, partitions: int = 1) -> float:
    """The same for the records of traffic: JSON as Arrow text, and when they are due."""
    params = TrafficParams.model_validate({"locations": locations})
    inputs = Inputs(plans_of(STREAMS, constant(2_000_000), RECORDS * 1_000), 1, 1_700_000_000 * SECOND)
    source = traffic.events(params, stream, inputs)
    source.events(0, BATCH)  # makes the table of locations
    seen = []
    for _ in range(REPEATS):
        begin = time.process_time()
        for start in range(0, RECORDS, BATCH * partitions):
            for partition in range(partitions):
                source.events(start, min(start + BATCH * partitions, RECORDS), partitions, partition)
        seen.append(RECORDS / (time.process_time() - begin))
    return statistics.median(seen)


def main() -> None:
    """Print a line for each distribution of keys, for a stream with partitions, and for the records of traffic."""
    print(f"events made per core second, four columns, batches of {BATCH:,} (median of {REPEATS})")
    for distribution, gem_packs in SHAPES:
        print(f"  {distribution:8} {gem_packs:>6,} keys  {format_rate(events_per_second(distribution, gem_packs)):>8}")
    print(f"  normal      100 keys  {format_rate(events_per_second('normal', 100, 4)):>8}  as 4 partitions")
    print("records of traffic made per core second, JSON of 180 to 200 bytes")
    for stream, locations, partitions in (
        ("flow", 6_500, 1),
        ("speed", 6_500, 1),
        ("flow", 100_000, 1),
        ("flow", 6_500, 4),
    ):
        rate = format_rate(records_per_second(stream, locations, partitions))
        print(f"  {stream:8} {locations:>7,} locations  {rate:>8}  partitions: {partitions}")


if __name__ == "__main__":
    main()
