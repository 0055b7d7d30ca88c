"""What the user of a run allows and has."""

from dataclasses import dataclass
from pathlib import Path

from streamgauge.processes.clock import Pace
from streamgauge.transports.kafka.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Limits:
    """What the user allows and has: nanoseconds for all trials together (None: as long as it takes), the pace."""

    budget: int | None = None
    pace: Pace = Pace()
    runtime: Path | None = None
    """Where sockets go, normally $XDG_RUNTIME_DIR as the command line read it."""
    cache: Path | None = None
    """Where the jars of Kafka are, normally the user's cache."""
    cluster: Cluster | None = None
    """The user's own Kafka cluster with its secrets, where an experiment names one."""
