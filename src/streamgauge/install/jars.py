"""The jars of the broker and of Spark's connector: which they are, what they must be, and how Maven is asked for them.

Maven is asked by coordinates and finds them as the user's settings say: no address of a registry is written here.
"""

import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

from streamgauge.install.cache import furnish
from streamgauge.install.ensure import is_root
from streamgauge.install.packages import find_maven, manager, maven_missing
from streamgauge.processes.launch import Launcher, Process
from streamgauge.processes.spec import Child
from streamgauge.store.durable import replace_file

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


Progress = Callable[[int, int], object]
"""Told how many jars are there, and how many there will be."""

_DEADLINE = 900.0
_LOOK_EVERY = 0.2
_TAIL = 5


class FetchError(RuntimeError):
    """The jars could not be had; the sentence says why and what to do."""


def fetch_jars(jars: Jars, cache: Path, launcher: Launcher, progress: Progress) -> Path:
    """The folder that holds these jars, each with its pinned checksum; fetched if it was not there."""
    folder = jars.folder(cache)
    furnish(folder, jars.checksums, lambda draft: _ask_maven(jars, draft, launcher, progress))
    return folder


def _ask_maven(jars: Jars, draft: Path, launcher: Launcher, progress: Progress) -> None:
    if find_maven() is None:
        raise FetchError(f"{maven_missing(manager(), is_root())}.")
    project = launcher.runtime / f"{jars.name}.pom.xml"
    replace_file(project, pom(jars, draft).encode(), durable=False)
    process = launcher.start(Child(f"maven {jars.name}", maven_line(project)), launcher.runtime)
    try:
        code = _follow(process, jars, progress)
    finally:
        process.stop()
    if code != 0:
        said = [line for line in process.tail(200) if "ERROR" in line] or [*process.tail()]
        how = f"ended with exit code {code}" if code is not None else f"took longer than {_DEADLINE:.0f} s"
        raise FetchError("\n  ".join([f"Maven could not fetch {jars.title}: it {how}. Its messages:", *said[:_TAIL]]))
    progress(len(jars.jars), len(jars.jars))


def _follow(process: Process, jars: Jars, progress: Progress) -> int | None:
    """Wait for Maven, and tell how far it is. Its exit code; None if it took too long."""
    ends, told = time.monotonic() + _DEADLINE, -1
    while (code := process.wait(_LOOK_EVERY)) is None and time.monotonic() < ends:
        have = fetched(jars, process.log.read_text("utf-8", "replace"))
        if have != told:
            progress(have, len(jars.jars))
            told = have
    return code
