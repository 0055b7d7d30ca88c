"""Kafka for real trials of tests: the shared broker, as the cluster of a user, or a broker of the run's own."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_broker import CORES, administration, shared

from streamgauge.cli.environment import cache_folder
from streamgauge.model.experiment import TransportChoice
from streamgauge.processes.launch import Launcher, LocalHost
from streamgauge.transports import registry
from streamgauge.transports.contract import OpenTransport
from streamgauge.transports.kafka.formats.columns import FormatName
from streamgauge.transports.kafka.open_kafka import OpenKafka
from streamgauge.transports.kafka.options import ClusterOptions, KafkaOptions
from streamgauge.transports.kafka.transport import KafkaTransport


def choice_of(options: KafkaOptions) -> TransportChoice:
    """These options as an experiment stores them."""
    return registry.choice_of(KafkaTransport(), options)


def over_shared_broker(form: FormatName = "binary") -> TransportChoice:
    """The shared broker, as an experiment names the cluster of a user."""
    cluster = ClusterOptions(bootstrap=shared().cluster.bootstrap)
    return choice_of(KafkaOptions(format=form, cluster=cluster))


@contextmanager
def open_cluster(folder: Path, choice: TransportChoice) -> Iterator[OpenTransport]:
    """The cluster that a choice names, for a run whose logs go into a folder. Topics must go with their trial."""
    run, transport = f"test-{secrets.token_hex(4)}", KafkaTransport()
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        host = LocalHost(launcher, folder, cache_folder(), CORES)
        with transport.open(transport.resolve(choice.options), run, host, {}) as kafka:
            yield kafka
    assert run not in administration().topics_by_run(), "topics go with their trial"


@contextmanager
def local_kafka(run: str, *, warm: bool = True) -> Iterator[OpenKafka]:
    """A broker that the run starts when it is first needed."""
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        host = LocalHost(launcher, Path(short) / "sessions", cache_folder(), CORES)
        kafka = OpenKafka(KafkaOptions(), run, host, None, warm=warm)
        try:
            yield kafka
        finally:
            kafka.stop()
