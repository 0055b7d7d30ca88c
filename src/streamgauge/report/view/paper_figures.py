"""Figures as they were published, to be shown beside a result: Karimov's Tables I to IV, and what van Dongen's stages
add. Other machines, another year."""

from dataclasses import dataclass

from streamgauge.model.units import SECOND

CITATION = (
    "J. Karimov, T. Rabl, A. Katsifodimos, R. Samarev, H. Heiskanen, V. Markl: Benchmarking Distributed Stream Data "
    "Processing Systems. ICDE 2018, pp. 1519–1530. doi:10.1109/ICDE.2018.00169"
)
_NODES = "2, 4 and 8 worker nodes of 16 cores (Xeon E5620, 2.4 GHz, 16 GB), as many driver nodes, 1 Gb/s network"
NODES = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class PublishedLatency:
    """One cell block of Table II or IV: event-time latency in seconds."""

    system: str
    share: str
    nodes: int
    average: float
    least: float
    most: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class PublishedTables:
    """What the paper has on one workload."""

    tables: tuple[str, str]
    """The numbers of the tables of throughput and latency."""
    setup: str
    throughput: dict[str, tuple[float, float, float]]
    """Sustainable throughput in events per second, on 2, 4 and 8 nodes."""
    latency: tuple[PublishedLatency, ...]
    windows: tuple[int, int] | None = None
    """Window and slide in nanoseconds, if the paper gives them."""


_TABLE_II = """
Storm 100% | 1.4 0.07  5.7  2.3 2.7 3.4 | 2.1 0.1   12.2 3.7 5.8 7.7 | 2.2 0.2   17.7 3.8 6.4 9.2
Storm 90%  | 1.1 0.08  5.7  1.8 2.1 2.8 | 1.6 0.04  9.2  2.9 4.1 6.3 | 1.9 0.2   11   3.3 5   7.6
Spark 100% | 3.6 2.5   8.5  4.6 4.9 5.9 | 3.3 1.9   6.9  4.1 4.3 4.9 | 3.1 1.2   6.9  3.8 4.1 4.7
Spark 90%  | 3.4 2.3   8    3.9 4.5 5.4 | 2.8 1.6   6.9  3.4 3.7 4.8 | 2.7 1.7   5.9  3.6 3.9 4.8
Flink 100% | 0.5 0.004 12.3 1.4 2.2 5.2 | 0.2 0.004 5.1  0.6 1.2 2.4 | 0.2 0.004 5.4  0.6 1.2 3.9
Flink 90%  | 0.3 0.003 5.8  0.7 1.1 2   | 0.2 0.004 5.1  0.6 1.3 2.4 | 0.2 0.002 5.4  0.5 0.8 3.4
"""
"""avg min max p90 p95 p99 for each number of nodes, printed as in the paper."""
_TABLE_IV = """
Spark 100% | 7.7 1.3  21.6 11.2 12.4 14.7 | 6.7 2.1  23.6 10.2 11.7 15.4 | 6.2 1.8  19.9 9.4 10.4 13.2
Spark 90%  | 7.1 2.1  17.9 10.3 11.1 12.7 | 5.8 1.8  13.9 8.7  9.5  10.7 | 5.7 1.7  14.1 8.6 9.4  10.6
Flink 100% | 4.3 0.01 18.2 7.6  8.5  10.5 | 3.6 0.02 13.8 6.7  7.5  8.6  | 3.2 0.02 14.9 6.2 7    8.4
Flink 90%  | 3.8 0.02 13   6.7  7.5  8.7  | 3.2 0.02 12.7 6.1  6.9  8    | 3.2 0.02 14.9 6.2 6.9  8.3
"""


def _read(table: str) -> tuple[PublishedLatency, ...]:
    found = []
    for line in table.strip().splitlines():
        name, *blocks = line.split("|")
        system, share = name.split()
        for nodes, block in zip(NODES, blocks, strict=True):
            found.append(PublishedLatency(system, share, nodes, *(float(number) for number in block.split())))
    return tuple(found)


PUBLISHED = {
    "windowed-aggregation": PublishedTables(
        ("I", "II"),
        f"Storm 1.0.2, Spark 2.0.1 (batches of 4 s) and Flink 1.1.3; sums over windows of 8 s every 4 s; {_NODES}",
        {
            "Storm": (0.40e6, 0.69e6, 0.99e6),
            "Spark": (0.38e6, 0.64e6, 0.91e6),
            "Flink": (1.2e6, 1.2e6, 1.2e6),
        },
        _read(_TABLE_II),
        windows=(8 * SECOND, 4 * SECOND),
    ),
    "windowed-join": PublishedTables(
        ("III", "IV"),
        "Spark 2.0.1 (batches of 4 s) and Flink 1.1.3; joins of purchases and ads, with a low selectivity that the "
        f"paper does not give; {_NODES}",
        {"Spark": (0.36e6, 0.63e6, 0.94e6), "Flink": (0.85e6, 1.12e6, 1.19e6)},
        _read(_TABLE_IV),
    ),
}
"""The tables of the paper by workload."""


_SYSTEMS = ("Storm", "Spark", "Flink")


def paper_system_of(engine: str) -> str:
    """The published system that an engine is one of; empty if it is none of them."""
    return next((system for system in _SYSTEMS if engine.lower().startswith(system.lower())), "")


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
