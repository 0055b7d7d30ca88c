"""Starts a local Spark session for the analysis and ends it. It listens only on the loopback interface."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import IO

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

_PATIENCE = 20.0
_TAIL = 5


class SessionFailed(RuntimeError):
    """Spark did not start; the message has the last lines of the log of its JVM."""


def settings(folder: Path, cores: int, memory: str = "1g") -> dict[str, str]:
    """All that differs from Spark's defaults: nothing is written outside ``folder``, other users cannot connect."""
    return {
        "spark.master": f"local[{cores}]",
        "spark.app.name": "streamgauge analysis",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f'"-Djava.io.tmpdir={folder}" -XX:-UsePerfData',
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.legacy.parquet.nanosAsLong": "true",
    }


@contextmanager
def session(cores: int) -> Iterator[SparkSession]:
    """A session for the time of the block. After it neither a process nor a file of it is left."""
    with tempfile.TemporaryDirectory(prefix="streamgauge-analysis-") as name, tempfile.TemporaryFile() as log:
        conf = SparkConf(loadDefaults=False)
        conf.setAll(list(settings(Path(name), cores).items()))
        with _gateway(conf, log) as gateway:
            spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
            try:
                yield spark
            finally:
                spark.stop()


@contextmanager
def _gateway(conf: SparkConf, log: IO[bytes]) -> Iterator[JavaGateway]:
    """A JVM. PySpark keeps one for good; here a later session of this process starts its own."""
    before = SparkContext._gateway, SparkContext._jvm
    gateway = _launched(conf, log)
    SparkContext._gateway = SparkContext._jvm = None
    try:
        yield gateway
    finally:
        SparkContext._gateway, SparkContext._jvm = before
        _end(gateway)


def _launched(conf: SparkConf, log: IO[bytes]) -> JavaGateway:
    try:
        return launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    except (PySparkRuntimeError, OSError) as error:
        log.seek(0)
        last = log.read().decode("utf-8", "replace").splitlines()[-_TAIL:]
        why = f"Spark {metadata.version('pyspark')} did not start: {error}"
        raise SessionFailed(" / ".join([why, *last])) from error


def _end(gateway: JavaGateway) -> None:
    """The JVM ends when its standard input does."""
    process = gateway.proc
    with suppress(OSError):
        gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(_PATIENCE)
    finally:
        process.kill()
        process.wait()
