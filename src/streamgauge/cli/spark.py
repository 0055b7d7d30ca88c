"""Whether Spark can be started here; a sentence that helps where it cannot."""

from importlib import metadata

from streamgauge.cli.java import own_spark, settle_java
from streamgauge.cli.trouble import Trouble

INSTALL = "pip install 'streamgauge[spark]'"


def pyspark_version() -> str | None:
    """The version of PySpark; None if there is none. It is not imported: that takes its time."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return None


def pyspark_or_trouble() -> str:
    """The version of PySpark, or the line to type."""
    version = pyspark_version()
    if version is None:
        raise Trouble(f"PySpark is missing; type: {INSTALL}")
    return version


def ready_for_spark() -> None:
    """Make sure that a Spark of ours can be started from this process, or say what is missing."""
    from streamgauge.engines.java import javas, missing
    from streamgauge.engines.packages import manager
    from streamgauge.run.install import ask_java, is_root

    pyspark_or_trouble()
    own_spark()
    if settle_java(ask_java) is None:
        raise Trouble(f"{missing([*javas(ask=ask_java)], manager(), is_root())}.")
