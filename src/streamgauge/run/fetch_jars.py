"""Fetching jars with Maven into the user's cache: once, checked, and never half."""

import time
from collections.abc import Callable
from pathlib import Path

from streamgauge.engines.maven import find_maven, maven_missing
from streamgauge.engines.packages import manager
from streamgauge.run.install import is_root
from streamgauge.run.launch import Launcher, Process
from streamgauge.store.cache import furnish
from streamgauge.store.durable import replace_file
from streamgauge.transport.child import Child
from streamgauge.transport.kafka.jars import Jars, fetched, maven_line, pom

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
