"""The built-in jobs of Spark by workload and variant, without pyspark: the table of what runs is made from it."""

from streamgauge.engines.contract import ANY_WORKLOAD, Job
from streamgauge.install.requirements import JarSet

FUNCTIONS = {
    ("windowed-aggregation", "naive"): "windowed_aggregation:naive",
    ("windowed-aggregation", "panes"): "windowed_aggregation:panes",
    ("ingest", "naive"): "ingest:pass_through",
    ("ingest", "panes"): "ingest:pass_through",
}
"""Module and function of each job, in this package."""
CUSTOM = "custom"
"""The variant of a user's own function, which runs on the events of any workload."""
TRANSPORTS = frozenset({"queue", "kafka"})
UPDATES_AND_REAL_TIME = frozenset({"kafka"})
"""Transports over which Spark supports update mode and real-time mode."""
STAMPED_BY_BROKER = frozenset({"kafka"})
"""Transports whose broker stamps every record."""

JOBS = (
    *(Job(workload, variant, TRANSPORTS) for workload, variant in FUNCTIONS),
    Job(ANY_WORKLOAD, CUSTOM, TRANSPORTS),
)


def connector(transport: str) -> JarSet | None:
    """The jars that Spark needs to read from a transport; None: it needs none."""
    if transport != "kafka":
        return None
    from streamgauge.transports.kafka.jars import CONNECTOR, pinned_jars  # noqa: PLC0415 - read from a file

    return pinned_jars(CONNECTOR)
