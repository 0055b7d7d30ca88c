"""Check that Kafka can be used here: download missing jars, or raise Trouble with what is missing."""

import os
from collections.abc import Callable, Collection
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.cli.errors import Trouble

if TYPE_CHECKING:
    from streamgauge.install.jars import Jars, Wanted

INSTALL = "pip install 'streamgauge[kafka]'"
_STEPS = 4


def client_version() -> str | None:
    """The version of confluent-kafka; None if it is not installed."""
    try:
        return metadata.version("confluent-kafka")
    except metadata.PackageNotFoundError:
        return None


def client_or_trouble() -> str:
    """The version of confluent-kafka. Raises Trouble with the install command if it is not installed."""
    version = client_version()
    if version is None:
        raise Trouble(f"confluent-kafka is not installed. Install it with: {INSTALL}")
    return version


def ready_for_kafka(say: Callable[[str], object]) -> Path:
    """Make sure that this process can start local brokers, and return the folder with their jars.

    Missing jars are downloaded now, with progress. Raises Trouble with what else is missing.
    """
    from streamgauge.cli.cache import cache_folder
    from streamgauge.cli.java import settle_java
    from streamgauge.install.ensure import ask_java, is_root
    from streamgauge.install.java import javas, missing
    from streamgauge.install.packages import manager

    client_or_trouble()
    if settle_java(ask_java) is None:
        raise Trouble(f"{missing([*javas(ask=ask_java)], manager(), is_root())}.")
    fetch_missing(say)
    return cache_folder()


def settle_maven(say: Callable[[str], object]) -> Path:
    """The Maven of this machine, installed if no password is needed. Raises Trouble with the install command."""
    from streamgauge.install.ensure import install, is_root
    from streamgauge.install.packages import find_maven, manager, maven_missing

    maven = find_maven() or install("maven", find_maven, say)
    if maven is None:
        raise Trouble(f"{maven_missing(manager(), is_root())}.")
    return maven


def with_connectors(names: "Collection[Wanted]", say: Callable[[str], object]) -> Path | None:
    """The folder with these sets of jars, downloaded if they are missing; None if no engine needs any."""
    from streamgauge.cli.cache import cache_folder

    if not names:
        return None
    fetch_missing(say, names)
    return cache_folder()


def missing_jars(names: "Collection[Wanted]" = ()) -> "list[Jars]":
    """The sets of jars that are not in the cache with their pinned checksums: of these names, or of all."""
    from streamgauge.cli.cache import cache_folder
    from streamgauge.install.cache import faults
    from streamgauge.install.jars import NAMES, pinned

    sets = [pinned(name) for name in NAMES if name in names or not names]
    return [jars for jars in sets if faults(jars.folder(cache_folder()), jars.checksums)]


def fetch_missing(say: Callable[[str], object], names: "Collection[Wanted]" = ()) -> bool:
    """Download the missing jars of these names, or all, with Maven. Returns whether any were missing."""
    from streamgauge.cli.cache import cache_folder
    from streamgauge.install.jars import FetchError, fetch_jars
    from streamgauge.processes.launch import Launcher

    wanted = missing_jars(names)
    if not wanted:
        return False
    settle_maven(say)
    preferred = os.environ.get("XDG_RUNTIME_DIR", "")
    with Launcher(Path(preferred) if preferred else None) as launcher:
        for jars in wanted:
            try:
                fetch_jars(jars, cache_folder(), launcher, _teller(jars, say))
            except FetchError as error:
                raise Trouble(str(error)) from error
    return True


def _teller(jars: "Jars", say: Callable[[str], object]) -> Callable[[int, int], None]:
    """A function that prints the progress of a download: at the beginning, at every quarter, and at the end."""
    told = -1

    def tell(have: int, of: int) -> None:
        nonlocal told
        step = have * _STEPS // of
        if step > told:
            told = step
            say(f"Downloading {jars.title}: {have} of {of} jars ...")

    return tell
