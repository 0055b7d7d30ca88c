"""One Kafka broker for all tests that need a plain one. It is started by the first of them and ended after the last.

A test file that uses it is called ``test_kafka_*.py``: conftest.py ends the broker when other tests begin, so that
it takes no time from them.
"""

import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamgauge.cli.environment import cache_folder
from streamgauge.install.java import find_java
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import assign_cores
from streamgauge.transports.kafka.brokers.admin import KafkaAdmin
from streamgauge.transports.kafka.brokers.config import BrokerRuntime
from streamgauge.transports.kafka.brokers.start import BrokerCluster, installed_runtime, start_brokers, wait_until
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.topics import Topic, topic_name

needs_kafka = pytest.mark.skipif(find_java() is None, reason="Kafka needs a Java")
"""Put it on every test file that starts a broker."""

CORES = assign_cores(1).driver
"""Where brokers of tests run: as in a trial, beside the load driver."""


@dataclass(frozen=True)
class Shared:
    """The broker, and the folder with its logs and data."""

    brokers: BrokerCluster
    folder: Path

    @property
    def cluster(self) -> Cluster:
        return self.brokers.cluster


_held = ExitStack()
_shared: Shared | None = None


@contextmanager
def launched() -> Iterator[tuple[Launcher, BrokerRuntime]]:
    """A launcher, and what brokers run on, as ``make test`` has installed it."""
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        yield launcher, installed_runtime(cache_folder(), CORES)


def shared() -> Shared:
    """The plain broker, started at its first use."""
    global _shared  # noqa: PLW0603 - one broker for the whole session is the point
    if _shared is None:
        folder = Path(_held.enter_context(tempfile.TemporaryDirectory(prefix="sgk")))
        launcher, runtime = _held.enter_context(launched())
        _shared = Shared(_held.enter_context(start_brokers(runtime, folder, launcher)), folder)
    return _shared


def stop_shared() -> None:
    """End it, if it was started. The next use would start it again."""
    global _shared  # noqa: PLW0603
    _shared = None
    _held.close()


def administration() -> KafkaAdmin:
    """The shared broker's."""
    return KafkaAdmin(shared().cluster, wait_until)


def fresh_topic(partitions: int = 1, stream: str = "events", settings: Mapping[str, str] | None = None) -> str:
    """A new, empty topic on the shared broker, of a separate run. Its name."""
    name = topic_name(f"test-{secrets.token_hex(4)}", 1, stream)
    administration().create([Topic(name, partitions, settings=settings or {})])
    return name
