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


BUILT_IN = (
    BuiltIn("windowed-aggregation", "naive", "windowed_aggregation:naive", "one copy of each row per window"),
    BuiltIn(
        "windowed-aggregation", "panes", "windowed_aggregation:panes", "partial sums per slide, combined into windows"
    ),
    # the same job by both names of the windowed aggregation, so that a file can change its workload only
    BuiltIn("ingest", "naive", "ingest:pass_through", "each event as it is"),
    BuiltIn("ingest", "panes", "ingest:pass_through", "the same"),
    BuiltIn("traffic", "stages", "traffic:pipeline", "one query with the stages up to workload.stage"),
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
