"""How fast the events of each stream are made, on one core: ``python -m benches.event_generation``."""

import statistics
import time
from collections.abc import Iterator

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND, format_count, format_rate
from streamgauge.workloads.contract import EventSource, Inputs, plans_of
from streamgauge.workloads.data.sensors import Readings
from streamgauge.workloads.data.traffic import STREAMS
from streamgauge.workloads.hierarchical_aggregation import HierarchicalAggregationParams, memberships_of
from streamgauge.workloads.traffic import TrafficParams, traffic
from streamgauge.workloads.windowed_join import WindowedJoinParams, windowed_join

REPEATS = 7
EVENTS = 4_000_000
BATCH = 50_000
PLAN, ORIGIN = constant(1_000_000).plan(EVENTS * 1_000), 1_700_000_000 * SECOND
SHAPES = (("normal", 100), ("normal", 10_000), ("uniform", 100), ("zipf", 1_000), ("single", 1))
TRAFFIC = (("flow", 6_500), ("speed", 6_500), ("flow", 100_000))
RECORDED = Inputs(plans_of(STREAMS, constant(2_000_000), EVENTS * 1_000), 1, ORIGIN)
JOINED = (("purchases", 1.0), ("purchases", 0.01), ("ads", 0.01), ("ads", 1.0))
"""Streams of the windowed join, with the share of purchases that find an ad."""


def sources() -> Iterator[tuple[str, EventSource]]:
    """Every stream, with the shapes that its keys can have."""
    for distribution, packs in SHAPES:
        made = joined("purchases", distribution=distribution, gem_packs=packs)
        yield f"purchases, {format_count(packs)} keys, {distribution}", made
    yield "purchases, half on a hot key", joined("purchases", hot=0.5)
    for stream, selectivity in JOINED:
        yield f"{stream}, {selectivity:.0%} with a partner", joined(stream, selectivity=selectivity)
    for sensors in (1, 1_000, 1_000_000):
        yield f"readings, {format_count(sensors)} sensors", Readings(sensors, PLAN, seed=1, origin=ORIGIN)
    tree = HierarchicalAggregationParams.model_validate({"children": 10, "height": 5, "moves": "1%"})
    inputs = Inputs({"hierarchy": PLAN}, 1, ORIGIN)
    for stream, locations in TRAFFIC:
        made = traffic.events(TrafficParams.model_validate({"locations": locations}), stream, RECORDED)
        yield f"{stream} as JSON, {format_count(locations)} locations", made
    yield f"hierarchy, {format_count(tree.tree.sensors)} sensors", memberships_of(tree, inputs)


def joined(stream: str, **params: object) -> EventSource:
    """Events of the windowed join. If all purchases find an ad, they are made as those of the windowed aggregation."""
    chosen = WindowedJoinParams.model_validate({"selectivity": 1.0, **params})
    plans = plans_of(windowed_join.streams(chosen), constant(2_000_000), EVENTS * 1_000)
    return windowed_join.events(chosen, stream, Inputs(plans, seed=1, origin_ns=ORIGIN))


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
