"""The environment variables that streamgauge reads, and those that it changes for its child processes."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import SecretStr

    from streamgauge.install.ensure import Locations

_FOREIGN_SPARK = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
_env_secrets: "dict[str, SecretStr]" = {}
"""Secrets from environment variables. They are removed from the environment, so that no child process inherits them."""


def cache_folder() -> Path:
    """STREAMGAUGE_CACHE, else streamgauge in XDG_CACHE_HOME, else in ``.cache`` of the user's home."""
    named = os.environ.get("STREAMGAUGE_CACHE", "")
    if named:
        return Path(named).absolute()
    caches = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(caches) if Path(caches).is_absolute() else Path.home() / ".cache") / "streamgauge"


def runtime_folder() -> Path | None:
    """The folder for sockets: XDG_RUNTIME_DIR, if it is set."""
    named = os.environ.get("XDG_RUNTIME_DIR")
    return Path(named) if named else None


def locations() -> "Locations":
    """Where requirements are searched and stored."""
    from streamgauge.install.ensure import Locations

    return Locations(cache_folder(), os.environ.get("JAVA_HOME", ""), runtime_folder())


def choose_java(home: Path) -> None:
    """Set JAVA_HOME and PATH so that child processes use the Java in this home. Nothing changes if they already do."""
    java_home, program = os.environ.get("JAVA_HOME", ""), home / "bin" / "java"
    if java_home and Path(java_home) != home:
        os.environ["JAVA_HOME"] = str(home)
    on_path = shutil.which("java")
    if on_path is None or Path(on_path).resolve() != program.resolve():
        os.environ["JAVA_HOME"] = str(home)
        os.environ["PATH"] = os.pathsep.join([str(program.parent), os.environ.get("PATH", os.defpath)])


def drop_foreign_spark() -> None:
    """Remove the environment variables of another Spark installation."""
    for name in _FOREIGN_SPARK:
        os.environ.pop(name, None)


def take_secrets(names: Iterable[str]) -> "dict[str, SecretStr]":
    """The values of these environment variables, which are removed. Those that are not set are omitted."""
    from pydantic import SecretStr

    wanted = [*names]
    for name in wanted:
        if name in os.environ:
            _env_secrets[name] = SecretStr(os.environ.pop(name))
    return {name: _env_secrets[name] for name in wanted if name in _env_secrets}
