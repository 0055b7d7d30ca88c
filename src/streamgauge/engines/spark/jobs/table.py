"""The built-in jobs of Spark by workload and variant, without pyspark, for the table of what runs."""

from collections.abc import Callable
from typing import NamedTuple

from streamgauge.engines.contract import ANY_WORKLOAD, Job
from streamgauge.install.requirements import JarSet


def _kafka_jars() -> JarSet:
    from streamgauge.transports.kafka.brokers.config import CONNECTOR, pinned_jars  # noqa: PLC0415 - read from a file

    return pinned_jars(CONNECTOR)


class Connection(NamedTuple):
    """How Spark reads from a transport; the module of its name in ``connect`` does it."""

    updates: bool = False
    """Whether Spark supports update mode and real-time mode over it."""
    jars: Callable[[], JarSet] | None = None
    """The jars that Spark needs for it; None: it needs none."""


CONNECTIONS = {"queue": Connection(), "kafka": Connection(updates=True, jars=_kafka_jars)}
"""The transports that Spark supports."""
TRANSPORTS = frozenset(CONNECTIONS)
CUSTOM = "custom"
"""The variant of a user's own function, which runs on the events of any workload."""
FIRST_VARIANT = "naive"
"""The variant that every workload with only one variant accepts, as files have it that were written before."""


class BuiltIn(NamedTuple):
    """One built-in job: a variant of a workload. The first one of a workload is its default."""

    workload: str
    variant: str
    function: str
    """Module and function, in this package."""
    summary: str
    """How it computes the workload, for the description of the option ``variant``."""
    transports: frozenset[str] = TRANSPORTS
    chained: bool = False
    """Whether several of its operators have state. Spark supports this only in append mode."""
    joins: bool = False
    """Whether it joins streams unless each event is an output. Spark supports this only in append mode."""
    early: bool = False
    """Whether it emits rows before their window is complete, in append mode too."""


BUILT_IN = (
    BuiltIn("windowed-aggregation", "naive", "windowed_aggregation:naive", "one copy of each row per window"),
    BuiltIn(
        "windowed-aggregation",
        "panes",
        "windowed_aggregation:panes",
        "partial sums per slide, combined into windows",
        chained=True,
    ),
    BuiltIn(
        "windowed-join", "union", "windowed_join:union", "one aggregation over both streams, then all pairs of a window"
    ),
    BuiltIn(
        "windowed-join",
        "stream-stream",
        "windowed_join:stream_stream",
        "Spark's join of two streams, which emits a pair before its window is complete",
        early=True,
    ),
    # the same job by both names of the windowed aggregation, so that a file can change its workload only
    BuiltIn("ingest", "naive", "ingest:pass_through", "each event as it is"),
    BuiltIn("ingest", "panes", "ingest:pass_through", "the same"),
    BuiltIn("database-storage", "rows", "database_storage:rows", "each reading as the row of a table"),
    BuiltIn("downsampling", "naive", "downsampling:per_sensor", "one aggregation over tumbling windows"),
    BuiltIn(
        "time-attribute-aggregation", "naive", "time_attribute_aggregation:naive", "one copy of each row per window"
    ),
    BuiltIn(
        "time-attribute-aggregation",
        "panes",
        "time_attribute_aggregation:panes",
        "partial statistics per slide, combined into windows",
        chained=True,
    ),
    BuiltIn(
        "hierarchical-aggregation",
        "flattened",
        "hierarchical_aggregation:flattened",
        "one query, with a copy of each reading for each group that contains its sensor",
        chained=True,
    ),
    BuiltIn("traffic", "stages", "traffic:pipeline", "one query with the stages up to workload.stage", joins=True),
)
JOBS = (
    *(Job(each.workload, each.variant, each.transports) for each in BUILT_IN),
    Job(ANY_WORKLOAD, CUSTOM, TRANSPORTS),
)


def variants(workload: str = "") -> tuple[str, ...]:
    """The variants of a workload in the order of the table; without a workload, those of all of them."""
    return tuple(dict.fromkeys(each.variant for each in BUILT_IN if workload in ("", each.workload)))


def job_of(workload: str, variant: str) -> BuiltIn | None:
    """The job of a workload in a variant; empty: in its first one. None if there is no such job."""
    known = [each for each in BUILT_IN if each.workload == workload]
    if not variant or (variant == FIRST_VARIANT and len(known) == 1):
        return known[0] if known else None
    return next((each for each in known if each.variant == variant), None)


def emits_early(variant: str) -> bool:
    """Whether jobs of this variant emit rows before their window is complete."""
    return any(each.early for each in BUILT_IN if each.variant == variant)


def variants_in_words() -> str:
    """The variants of every workload and what they do, for the description of the option."""
    of = {each.workload: [e for e in BUILT_IN if e.workload == each.workload] for each in BUILT_IN}
    return "; ".join(
        f"{workload}: {', '.join(f'{each.variant} = {each.summary}' for each in known)}"
        for workload, known in of.items()
    )


def connector(transport: str) -> JarSet | None:
    """The jars that Spark needs to read from a transport; None: it needs none."""
    jars = CONNECTIONS[transport].jars
    return jars() if jars else None


def supports_updates(transport: str) -> bool:
    """Whether Spark supports update mode and real-time mode over a transport."""
    return CONNECTIONS.get(transport, Connection()).updates


def with_updates() -> str:
    """The transports over which Spark supports update mode and real-time mode, for a sentence."""
    return " or ".join(sorted(name for name, connection in CONNECTIONS.items() if connection.updates))
