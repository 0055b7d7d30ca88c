"""One Kafka broker for all tests that need a plain one. It is started by the first of them and ended after the last.

A test file that uses it is called ``test_kafka_*.py``: conftest.py ends the broker when other tests begin, so that
it takes no time from them.
"""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamgauge.cli.cache import cache_folder
from streamgauge.install.java import find_java
from streamgauge.processes.launch import Launcher
from streamgauge.processes.placement import place
from streamgauge.transports.kafka.brokers.admin import Administration
from streamgauge.transports.kafka.brokers.config import Runtime
from streamgauge.transports.kafka.brokers.start import Brokers, broker_runtime, start_brokers, until
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.topics import Topic, topic_name

needs_kafka = pytest.mark.skipif(find_java() is None, reason="Kafka needs a Java")
"""Put it on every test file that starts a broker."""

CORES = place({}).driver
"""Where brokers of tests run: as in a trial, beside the driver."""


@dataclass(frozen=True)
class Shared:
    """The broker, and the folder with its logs and data."""

    brokers: Brokers
    folder: Path

    @property
    def cluster(self) -> Cluster:
        return self.brokers.cluster


_held = ExitStack()
_shared: Shared | None = None


@contextmanager
def launched() -> Iterator[tuple[Launcher, Runtime]]:
    """A launcher, and what brokers run on. Jars that are missing are fetched."""
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        yield launcher, broker_runtime(cache_folder(), launcher, lambda *_: None, CORES)


def shared() -> Shared:
    """The plain broker, started when it is first asked for."""
    global _shared  # noqa: PLW0603 - one broker for the whole session is the point
    if _shared is None:
        folder = Path(_held.enter_context(tempfile.TemporaryDirectory(prefix="sgk")))
        launcher, runtime = _held.enter_context(launched())
        _shared = Shared(_held.enter_context(start_brokers(runtime, folder, launcher)), folder)
    return _shared


def stop_shared() -> None:
    """End it, if it was started; it would be started again by who asks for it."""
    global _shared  # noqa: PLW0603
    _shared = None
    _held.close()


def administration() -> Administration:
    """The shared broker's."""
    return Administration(shared().cluster, until)


def fresh_topic(partitions: int = 1, stream: str = "events") -> str:
    """A new, empty topic on the shared broker, of a run of its own. Its name."""
    name = topic_name(f"test-{secrets.token_hex(4)}", 1, stream)
    administration().create([Topic(name, partitions)])
    return name
