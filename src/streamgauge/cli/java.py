"""The Java of this process: found once, and passed to child processes in the environment."""

import os
from pathlib import Path

from streamgauge.install.java import Ask, Java, find_java

_FOREIGN = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
"""Environment variables of another Spark installation."""


def settle_java(ask: Ask | None = None) -> Java | None:
    """The Java that engines and the analysis will use: JAVA_HOME, else the path, else the usual places."""
    java_home = os.environ.get("JAVA_HOME", "")
    java = find_java(java_home, ask) if ask else find_java(java_home)
    if java is None:
        return None
    if java_home and Path(java_home) != java.home:
        os.environ["JAVA_HOME"] = str(java.home)
    program = java.home / "bin"
    if (found := _first_on_path()) is None or found.resolve() != java.program.resolve():
        os.environ["JAVA_HOME"] = str(java.home)
        os.environ["PATH"] = os.pathsep.join([str(program), os.environ.get("PATH", os.defpath)])
    return java


def _first_on_path() -> Path | None:
    from shutil import which

    found = which("java")
    return Path(found) if found else None


def own_spark() -> None:
    """Remove the environment variables of another Spark installation."""
    for name in _FOREIGN:
        os.environ.pop(name, None)


def java_home() -> str:
    """JAVA_HOME, if it is set."""
    return os.environ.get("JAVA_HOME", "")
