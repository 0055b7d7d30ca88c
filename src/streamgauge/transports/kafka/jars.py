"""The pinned jars for Kafka: those of a broker with its tools, and those of Spark's connector."""

from streamgauge.install.requirements import JarSet, load_jar_set

BROKER = "kafka"
CONNECTOR = "spark-kafka"
"""The jars with which Spark reads from Kafka and writes to it."""


def pinned_jars(name: str) -> JarSet:
    """The jars of this name as ``jars.toml`` pins them."""
    return load_jar_set(__package__, name)
