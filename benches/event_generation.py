"""How fast purchases and ads are made, on one core: ``python -m benches.event_generation``."""

import statistics
import time

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND, format_rate
from streamgauge.workloads.contract import EventSource, Inputs, plans_of
from streamgauge.workloads.windowed_join import WindowedJoinParams, windowed_join

REPEATS = 7
EVENTS = 4_000_000
BATCH = 50_000
SHAPES = (("normal", 100), ("normal", 10_000), ("uniform", 100), ("zipf", 1_000), ("single", 1))
JOINED = (("purchases", 1.0), ("purchases", 0.01), ("ads", 0.01), ("ads", 1.0))
"""Streams of the windowed join, with the share of purchases that find an ad."""


def source_of(stream: str = "purchases", **params: object) -> EventSource:
    """Events of the windowed join. If all purchases find an ad, they are made as those of the windowed aggregation."""
    chosen = WindowedJoinParams.model_validate({"selectivity": 1.0, **params})
    plans = plans_of(windowed_join.streams(chosen), constant(2_000_000), EVENTS * 1_000)
    return windowed_join.events(chosen, stream, Inputs(plans, seed=1, origin_ns=1_700_000_000 * SECOND))


def events_per_second(stream: EventSource, partitions: int = 1) -> float:
    """Median over repeats of the events made per second of CPU, all columns, batch by batch."""
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
    print(f"purchases made per core second, four columns, batches of {BATCH:,} (median of {REPEATS})")
    for distribution, gem_packs in SHAPES:
        rate = events_per_second(source_of(distribution=distribution, gem_packs=gem_packs))
        print(f"  {distribution:8} {gem_packs:>6,} keys  {format_rate(rate):>8}")
    print(f"  normal      100 keys  {format_rate(events_per_second(source_of(), 4)):>8}  as 4 partitions")
    print(f"  normal      100 keys  {format_rate(events_per_second(source_of(hot=0.5))):>8}  half of them on a hot one")
    print("events of the windowed join, by the share of purchases that find an ad")
    for stream, selectivity in JOINED:
        rate = events_per_second(source_of(stream, selectivity=selectivity))
        print(f"  {stream:9} {selectivity:>6.0%}  {format_rate(rate):>8}")


if __name__ == "__main__":
    main()
