"""What engines and transports need from the system, as values. Nothing is searched or installed here."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from streamgauge.install.java import MIN_VERSION


@dataclass(frozen=True, slots=True)
class PythonPackage:
    """A Python package. ``extra`` is the extra of streamgauge that installs it; empty if there is none."""

    name: str
    title: str = ""
    extra: str = ""
    field: str = ""
    """Its key in the document of ``setup --json``; empty = its name."""

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'streamgauge[{self.extra}]'" if self.extra else f"pip install {self.name}"


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java of this major version or a newer one."""

    min_version: int = MIN_VERSION


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar: its Maven coordinates and its checksum."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"{self.artifact}-{self.version}.jar"


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are used together. Maven downloads them into one folder of the cache."""

    name: str
    title: str
    version: str
    jars: tuple[Jar, ...]

    @property
    def checksums(self) -> dict[str, str]:
        """File name → SHA-256: the folder contains these files and no others."""
        return {jar.name: jar.sha256 for jar in self.jars}

    def folder(self, cache_folder: Path) -> Path:
        """Their folder in the user's cache."""
        return cache_folder / self.name / self.version


Requirement = PythonPackage | JavaRuntime | JarSet

PYSPARK = PythonPackage("pyspark", "PySpark", extra="spark")
"""Needed by the Spark engine and by the analysis of raw logs."""


@cache
def load_jar_set(package: str, name: str) -> JarSet:
    """The set of jars with this name in the file ``jars.toml`` of a Python package."""
    table: Mapping[str, Mapping[str, str]]
    table = tomllib.loads(resources.files(package).joinpath("jars.toml").read_text("utf-8"))[name]
    jars = []
    for coordinates, sha256 in table["jars"].items():
        group, artifact, version = coordinates.split(":")
        jars.append(Jar(group, artifact, version, sha256))
    return JarSet(name, str(table["title"]), str(table["version"]), tuple(jars))
