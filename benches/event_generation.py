"""How fast the events of each stream are made, on one core: ``python -m benches.event_generation``."""

import statistics
import time
from collections.abc import Iterator

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND, format_count, format_rate
from streamgauge.workloads.contract import EventSource, Inputs
from streamgauge.workloads.data.sensors import Readings
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.hierarchical_aggregation import HierarchicalAggregationParams, memberships_of
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

REPEATS = 7
EVENTS = 4_000_000
BATCH = 50_000
PLAN, ORIGIN = constant(1_000_000).plan(EVENTS * 1_000), 1_700_000_000 * SECOND
SHAPES = (("normal", 100), ("normal", 10_000), ("uniform", 100), ("zipf", 1_000), ("single", 1))


def sources() -> Iterator[tuple[str, EventSource]]:
    """Every stream that is made of numbers, with the shapes that its keys can have."""
    for distribution, packs in SHAPES:
        params = WindowedAggregationParams.model_validate({"distribution": distribution, "gem_packs": packs})
        name = f"purchases, {format_count(packs)} keys, {distribution}"
        yield name, Purchases(params, PLAN, seed=1, origin=ORIGIN)
    for sensors in (1, 1_000, 1_000_000):
        yield f"readings, {format_count(sensors)} sensors", Readings(sensors, PLAN, seed=1, origin=ORIGIN)
    tree = HierarchicalAggregationParams.model_validate({"children": 10, "height": 5, "moves": "1%"})
    inputs = Inputs({"hierarchy": PLAN}, 1, ORIGIN)
    yield f"hierarchy, {format_count(tree.tree.sensors)} sensors", memberships_of(tree, inputs)


def events_per_second(source: EventSource, partitions: int = 1) -> float:
    """Median over repeats of the events made per second of CPU, all columns, batch by batch."""
    source.events(0, BATCH)  # makes tables that are kept
    seen = []
    for _ in range(REPEATS):
        begin = time.process_time()
        for start in range(0, EVENTS, BATCH * partitions):
            for partition in range(partitions):
                source.events(start, min(start + BATCH * partitions, EVENTS), partitions, partition)
        seen.append(EVENTS / (time.process_time() - begin))
    return statistics.median(seen)


def main() -> None:
    """Print a line for each stream and shape, with one partition and with four."""
    print(f"events made per core second, all columns, batches of {BATCH:,} (median of {REPEATS})")
    for name, source in sources():
        one, four = (format_rate(events_per_second(source, partitions)) for partitions in (1, 4))
        print(f"  {name:32} {one:>8}   as 4 partitions {four:>8}")


if __name__ == "__main__":
    main()
