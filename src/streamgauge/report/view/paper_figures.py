"""Figures as they were published, to be shown beside a result: Karimov's Tables I and II, and what van Dongen's stages
add. Other machines, another year."""

from dataclasses import dataclass

CITATION = (
    "J. Karimov, T. Rabl, A. Katsifodimos, R. Samarev, H. Heiskanen, V. Markl: Benchmarking Distributed Stream Data "
    "Processing Systems. ICDE 2018, pp. 1519–1530. doi:10.1109/ICDE.2018.00169"
)
SETUP = (
    "Storm 1.0.2, Spark 2.0.1 (batches of 4 s) and Flink 1.1.3; sums over windows of 8 s every 4 s; "
    "2, 4 and 8 worker nodes of 16 cores (Xeon E5620, 2.4 GHz, 16 GB), as many driver nodes, 1 Gb/s network"
)
WORKLOAD = "windowed-aggregation"
NODES = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class PublishedLatency:
    """One cell block of Table II: event-time latency in seconds."""

    system: str
    share: str
    nodes: int
    average: float
    least: float
    most: float
    p90: float
    p95: float
    p99: float


THROUGHPUT: dict[str, tuple[float, float, float]] = {
    "Storm": (0.40e6, 0.69e6, 0.99e6),
    "Spark": (0.38e6, 0.64e6, 0.91e6),
    "Flink": (1.2e6, 1.2e6, 1.2e6),
}
"""Table I: sustainable throughput of windowed aggregations in events per second, on 2, 4 and 8 nodes."""

_TABLE_II = """
Storm 100% | 1.4 0.07  5.7  2.3 2.7 3.4 | 2.1 0.1   12.2 3.7 5.8 7.7 | 2.2 0.2   17.7 3.8 6.4 9.2
Storm 90%  | 1.1 0.08  5.7  1.8 2.1 2.8 | 1.6 0.04  9.2  2.9 4.1 6.3 | 1.9 0.2   11   3.3 5   7.6
Spark 100% | 3.6 2.5   8.5  4.6 4.9 5.9 | 3.3 1.9   6.9  4.1 4.3 4.9 | 3.1 1.2   6.9  3.8 4.1 4.7
Spark 90%  | 3.4 2.3   8    3.9 4.5 5.4 | 2.8 1.6   6.9  3.4 3.7 4.8 | 2.7 1.7   5.9  3.6 3.9 4.8
Flink 100% | 0.5 0.004 12.3 1.4 2.2 5.2 | 0.2 0.004 5.1  0.6 1.2 2.4 | 0.2 0.004 5.4  0.6 1.2 3.9
Flink 90%  | 0.3 0.003 5.8  0.7 1.1 2   | 0.2 0.004 5.1  0.6 1.3 2.4 | 0.2 0.002 5.4  0.5 0.8 3.4
"""
"""avg min max p90 p95 p99 for each number of nodes, printed as in the paper."""


def _read(table: str) -> tuple[PublishedLatency, ...]:
    found = []
    for line in table.strip().splitlines():
        name, *blocks = line.split("|")
        system, share = name.split()
        for nodes, block in zip(NODES, blocks, strict=True):
            found.append(PublishedLatency(system, share, nodes, *(float(number) for number in block.split())))
    return tuple(found)


LATENCY = _read(_TABLE_II)
"""Table II."""


def paper_system_of(engine: str) -> str:
    """The published system that an engine is one of; empty if it is none of them."""
    return next((system for system in THROUGHPUT if engine.lower().startswith(system.lower())), "")


STAGES_CITATION = (
    "G. van Dongen, B. Steurtewagen, D. Van den Poel: Latency Measurement of Fine-Grained Operations in Benchmarking "
    "Distributed Stream Processing Frameworks. IEEE International Congress on Big Data 2018."
)
STAGES_SETUP = (
    "Flink on ten task managers of 12 cores; five message brokers; 26,000 observations/s of 180–200 bytes; latency "
    "from the LogAppendTime of each input to that of the output, averaged over the inputs of an output"
)
STAGES_WORKLOAD = "traffic"
STAGE_MEDIANS_MS = (292, 464, 1298, 1856, 2344)
"""Median latency of Flink's pipeline in milliseconds, cut after each stage."""
STAGE_ADDED_MS = (292, 172, 835, 558, 488)
"""What each stage adds to the median, as the paper prints it; rounded there."""
