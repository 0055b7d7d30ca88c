"""Check that Spark can be started here, or raise Trouble with what to install."""

from importlib import metadata

from streamgauge.cli.errors import Trouble
from streamgauge.cli.java import own_spark, settle_java

INSTALL = "pip install 'streamgauge[spark]'"


def pyspark_version() -> str | None:
    """The version of PySpark; None if it is not installed. It is not imported, because that is slow."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def pyspark_or_trouble() -> str:
    """The version of PySpark. Raises Trouble with the install command if it is not installed."""
    version = pyspark_version()
    if version is None:
        raise Trouble(f"PySpark is not installed. Install it with: {INSTALL}")
    return version


def ready_for_spark() -> None:
    """Make sure that this process can start Spark. Raises Trouble with what is missing."""
    from streamgauge.install.ensure import ask_java, is_root
    from streamgauge.install.java import javas, missing
    from streamgauge.install.packages import manager

    pyspark_or_trouble()
    own_spark()
    if settle_java(ask_java) is None:
        raise Trouble(f"{missing([*javas(ask=ask_java)], manager(), is_root())}.")
