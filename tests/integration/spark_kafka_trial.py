"""Real trials of Spark over Kafka for tests: load drivers, collector and topics on the broker that all tests share."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka_broker import shared
from kafka_trial import choice_of, open_cluster
from real_trial import Played, Sabotage, play
from spark_trial import spark_trial, start_spark

from streamgauge.cli.environment import cache_folder
from streamgauge.engines.spark import spark
from streamgauge.engines.spark.engine import SparkSystem
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.model.trial import Trial
from streamgauge.processes.launch import Launcher
from streamgauge.transports.kafka.options import KafkaOptions
from streamgauge.transports.registry import transports


def on_kafka(
    load: float,
    seconds: int,
    options: dict[str, Any] | None = None,
    kafka: dict[str, Any] | None = None,
    **changes: Any,  # noqa: ANN401
) -> Trial:
    """A trial of Spark on the shared broker; ``options`` and ``kafka`` are as a user writes them."""
    asked = spark_trial(load, seconds, options, **{"partitions": 2, **changes})
    cluster = {"cluster": {"bootstrap": shared().cluster.bootstrap}}
    chosen = choice_of(KafkaOptions.model_validate(cluster | (kafka or {})))
    allowance = {"watermark": transports()[chosen.name].allowance_ns} if "watermark" in asked.params else {}
    return replace(asked, params=asked.params | allowance, transport=chosen)


@contextmanager
def kafka_session(folder: Path, options: dict[str, Any] | None = None) -> Iterator[SparkSystem]:
    """A session of Spark that has the connector, for many trials."""
    with (
        tempfile.TemporaryDirectory(prefix="sg") as short,
        Launcher(Path(short)) as launcher,
        start_spark(SparkOptions(**(options or {})), launcher, folder, cache_folder(), "kafka") as session,
    ):
        yield session


def play_on_kafka(
    asked: Trial, folder: Path, session: SparkSystem, meanwhile: dict[int, Sabotage] | None = None
) -> Played:
    """Perform a trial and judge it. ``meanwhile`` is done at the ends of these seconds."""
    with open_cluster(folder, asked.transport) as kafka:
        return play(asked, folder, meanwhile, engine=spark, system=session, transport=kafka)
