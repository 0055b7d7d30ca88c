"""The jars of the broker and of Spark's connector: which they are, what they must be, and how Maven is asked for them.

Maven is asked by coordinates and finds them as the user's settings say: no address of a registry is written here.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

Wanted = Literal["kafka", "spark-kafka"]
"""The broker with its tools, or Spark's connector."""

NAMES: tuple[Wanted, ...] = ("kafka", "spark-kafka")

_PLUGIN = ("org.apache.maven.plugins", "maven-dependency-plugin", "3.8.1")


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
class Jars:
    """Jars that belong together, and go into one folder of the cache."""

    name: Wanted
    title: str
    version: str
    jars: tuple[Jar, ...]

    @property
    def checksums(self) -> dict[str, str]:
        """File name → SHA-256: the folder holds these and nothing else."""
        return {jar.name: jar.sha256 for jar in self.jars}

    def folder(self, cache_folder: Path) -> Path:
        """Where they lie below the user's cache."""
        return cache_folder / self.name / self.version


@cache
def pinned(name: Wanted) -> Jars:
    """The jars of this name as jars.toml pins them."""
    held = tomllib.loads(resources.files(__package__).joinpath("jars.toml").read_text("utf-8"))[name]
    jars = [Jar(*_parts(coordinates), sha256) for coordinates, sha256 in held["jars"].items()]
    return Jars(name, held["title"], held["version"], tuple(jars))


def _parts(coordinates: str) -> tuple[str, str, str]:
    group, artifact, version = coordinates.split(":")
    return group, artifact, version


def pom(jars: Jars, into: Path) -> str:
    """The project that has Maven copy these jars, and none that they depend on, into a folder.

    They are all listed, so nothing is resolved: the POM of Spark's connector names a repository of its own, which
    cannot be reached from everywhere.
    """
    items = "\n".join(f"      <artifactItem>{_place(j.group, j.artifact, j.version)}</artifactItem>" for j in jars.jars)
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  {_place("streamgauge", jars.name, "1")}<packaging>pom</packaging>
  <build><plugins><plugin>
    {_place(*_PLUGIN)}
    <configuration><outputDirectory>{escape(str(into))}</outputDirectory><artifactItems>
{items}
    </artifactItems></configuration>
  </plugin></plugins></build>
</project>
"""


def _place(group: str, artifact: str, version: str) -> str:
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"


def maven_line(project: Path) -> tuple[str, ...]:
    """The words that carry out such a project, without a question and without colours."""
    return ("mvn", "--batch-mode", "--file", str(project), "dependency:copy")


def fetched(jars: Jars, log: str) -> int:
    """How many of them Maven has by now, told from what it printed: it names each one as it comes to it."""
    seen = log.count("Configured Artifact:")
    return max(0, min(seen - 1, len(jars.jars)))
