"""What Spark needs from the system: PySpark, Java, and the connector of a transport."""

from collections.abc import Sequence
from pathlib import Path

from streamgauge.engines.spark.jobs.table import connector
from streamgauge.engines.spark.options import SparkOptions
from streamgauge.install.requirements import PYSPARK, JavaRuntime, Requirement


def of(options: SparkOptions, transport: str) -> Sequence[Requirement]:
    """The requirements of a session that reads from this transport."""
    jars = None if "spark.jars" in options.settings else connector(transport)
    return (PYSPARK, JavaRuntime(), *([jars] if jars else []))


def connector_jars(options: SparkOptions, transport: str, cache: Path) -> tuple[Path, ...]:
    """The jars of the connector in the user's cache; none if there is none, or if the user names jars."""
    jars = None if "spark.jars" in options.settings else connector(transport)
    return tuple(jars.folder(cache) / jar.name for jar in jars.jars) if jars else ()
