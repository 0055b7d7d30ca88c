"""Real trials of Spark over Kafka for tests: drivers, collector and topics on the broker that all tests share."""

import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka_broker import shared
from real_trial import Kept, Played, Sabotage, Saboteur, objectives
from spark_trial import PLACEMENT, spark_trial

from streamgauge.cli.cache import cache_folder
from streamgauge.engines.contract import Ground
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.engine import SparkSession
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.judge import Watch, decide, measure
from streamgauge.model.experiment import TransportChoice
from streamgauge.model.trial import Trial
from streamgauge.processes.launch import Launcher
from streamgauge.run.trial.perform import perform
from streamgauge.transports.kafka.cluster import Cluster
from streamgauge.transports.kafka.options import PARTITION_SKEW_NS, KafkaOptions
from streamgauge.transports.kafka.transport import Ground as KafkaGround
from streamgauge.transports.kafka.transport import kafka_of
from streamgauge.workloads.registry import workloads


def on_kafka(
    load: float,
    seconds: int,
    options: dict[str, Any] | None = None,
    kafka: dict[str, Any] | None = None,
    **changes: Any,  # noqa: ANN401
) -> Trial:
    """A trial of Spark on the shared broker; ``options`` and ``kafka`` are as a user writes them."""
    asked = spark_trial(load, seconds, options, **{"partitions": 2, **changes})
    said = kafka or {}
    chosen = KafkaOptions.model_validate(
        said if "cluster" in said else {**said, "cluster": {"bootstrap": shared().cluster.bootstrap}}
    )
    params = asked.params | ({"watermark": PARTITION_SKEW_NS} if "watermark" in asked.params else {})
    return replace(asked, params=params, transport=TransportChoice("kafka", chosen.dumped()))


@contextmanager
def kafka_session(folder: Path, options: dict[str, Any] | None = None) -> Iterator[SparkSession]:
    """A session of Spark that has the connector, for many trials."""
    chosen = SparkOptions(**(options or {})).model_dump()
    folder.mkdir(parents=True, exist_ok=True)
    cores = (*PLACEMENT.driver, *PLACEMENT.sut)
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:
        session = spark.stand(chosen, Ground(folder, PLACEMENT.sut, cores, cache_folder()), launcher)
        try:
            yield session
        finally:
            session.stop()


def play_on_kafka(
    asked: Trial,
    folder: Path,
    session: SparkSession | None = None,
    meanwhile: dict[int, Sabotage] | None = None,
    cluster: Cluster | None = None,
) -> Played:
    """Perform a trial and judge it; without a session it has one of its own, cold.

    ``meanwhile`` is done at the ends of these seconds; ``cluster`` is the shared broker unless it is given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ground = KafkaGround(cache_folder(), None, cluster or shared().cluster)
    run = f"test-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory(prefix="sg") as short:
        kafka = kafka_of(asked.transport, run, folder, ground)
        assert kafka is not None
        with kafka:
            recording = perform(
                asked,
                spark,
                workloads()[asked.workload],
                Watch(asked, objectives()),
                Kept(folder),
                listener=Saboteur(meanwhile or {}),
                runtime=Path(short),
                standing=session,
                kafka=kafka,
            )
    measured = measure(recording)
    return Played(folder, recording, measured, decide(recording, measured, objectives()))
