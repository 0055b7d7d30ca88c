"""Download a set of jars with Maven into the user's cache, and check them.

Maven gets coordinates and uses the settings of the user: no address of a repository is written here.
"""

import time
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

from streamgauge.install.cache import ensure_folder
from streamgauge.install.packages import find_maven, maven_hint, package_manager
from streamgauge.install.programs import is_root
from streamgauge.install.requirements import JarSet
from streamgauge.processes.launch import Launcher, Process
from streamgauge.processes.spec import ProcessSpec
from streamgauge.store.durable import replace_file

Progress = Callable[[int, int], object]
"""Gets the number of jars that Maven has downloaded, and the number of all jars."""

_PLUGIN = ("org.apache.maven.plugins", "maven-dependency-plugin", "3.8.1")
_TIMEOUT = 900.0
_POLL_INTERVAL = 0.2
_MAX_LINES = 5
"""Lines of Maven's errors in a message."""


class FetchError(RuntimeError):
    """The jars could not be downloaded; the message gives the reason and the fix."""


def fetch_jars(jars: JarSet, cache: Path, launcher: Launcher, progress: Progress) -> Path:
    """The folder with these jars, each with its pinned checksum. They are downloaded if they are missing."""
    folder = jars.folder(cache)
    ensure_folder(folder, jars.checksums, lambda draft: _run_maven(jars, draft, launcher, progress))
    return folder


def project_file(jars: JarSet, into: Path) -> str:
    """The Maven project that copies these jars, and none of their dependencies, into a folder.

    All jars are listed and nothing is resolved, because the POM of Spark's connector names another repository, which
    cannot be reached from everywhere.
    """
    items = "\n".join(
        f"      <artifactItem>{_coordinates(j.group, j.artifact, j.version)}</artifactItem>" for j in jars.jars
    )
    return f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  {_coordinates("streamgauge", jars.name, "1")}<packaging>pom</packaging>
  <build><plugins><plugin>
    {_coordinates(*_PLUGIN)}
    <configuration><outputDirectory>{escape(str(into))}</outputDirectory><artifactItems>
{items}
    </artifactItems></configuration>
  </plugin></plugins></build>
</project>
"""


def _coordinates(group: str, artifact: str, version: str) -> str:
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"


def maven_command(project: Path) -> tuple[str, ...]:
    """The command that executes such a project, without questions and colours."""
    return ("mvn", "--batch-mode", "--file", str(project), "dependency:copy")


def fetched_count(jars: JarSet, log: str) -> int:
    """How many of the jars Maven has downloaded. Its log names each jar before it is downloaded."""
    named = log.count("Configured Artifact:")
    return max(0, min(named - 1, len(jars.jars)))


def _run_maven(jars: JarSet, draft: Path, launcher: Launcher, progress: Progress) -> None:
    if find_maven() is None:
        raise FetchError(f"{maven_hint(package_manager(), is_root())}.")
    project = launcher.runtime / f"{jars.name}.pom.xml"
    replace_file(project, project_file(jars, draft).encode(), durable=False)
    process = launcher.start(ProcessSpec(f"maven {jars.name}", maven_command(project)), launcher.runtime)
    try:
        code = _wait(process, jars, progress)
    finally:
        process.stop()
    if code != 0:
        errors = [line for line in process.tail(200) if "ERROR" in line] or [*process.tail()]
        how = f"ended with exit code {code}" if code is not None else f"took longer than {_TIMEOUT:.0f} s"
        first = f"Maven could not fetch {jars.title}: it {how}. Its messages:"
        raise FetchError("\n  ".join([first, *errors[:_MAX_LINES]]))
    progress(len(jars.jars), len(jars.jars))


def _wait(process: Process, jars: JarSet, progress: Progress) -> int | None:
    """Wait for Maven and report its progress. Its exit code; None if it took too long."""
    ends, reported = time.monotonic() + _TIMEOUT, -1
    while (code := process.wait(_POLL_INTERVAL)) is None and time.monotonic() < ends:
        count = fetched_count(jars, process.log.read_text("utf-8", "replace"))
        if count != reported:
            progress(count, len(jars.jars))
            reported = count
    return code
