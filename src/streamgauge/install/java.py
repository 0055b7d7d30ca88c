"""Java for programs on the JVM: finds one that is new enough, and returns how to install one.

Nothing is started here. The file ``release`` in the home of a Java has its version. A Java without that file must be
run to know its version; the caller provides the function that does this (``install/ensure.py``).
"""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgauge.install.packages import PackageManager

MIN_VERSION = 17
"""The oldest version that all built-in engines and transports support."""

SEARCH_PATHS = (
    *("/usr/lib/jvm/*", "/usr/lib64/jvm/*", "/usr/java/*", "/usr/local/java/*", "/opt/*", "/opt/*/*"),
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    *(f"{brew}/*/openjdk*/libexec/openjdk.jdk/Contents/Home" for brew in ("/usr/local", "/opt/*")),
)
"""Where package managers install Java: patterns of homes."""

RunJava = Callable[[Path], str]
"""Returns what ``java -version`` prints for the program at this path; empty if it cannot be run."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java: its home and its version, for example ``17.0.15``."""

    home: Path
    version: str
    vendor: str = ""

    @property
    def major(self) -> int:
        return major(self.version)

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


def major(version: str) -> int:
    """17 of ``17.0.15``, 21 of ``21-ea``, 8 of ``1.8.0_392``; 0 of a text that is no version."""
    numbers = re.match(r"(?:1\.(?=[0-9]))?([0-9]+)", version.strip())
    return int(numbers[1]) if numbers else 0


def parse_release(text: str) -> tuple[str, str] | None:
    """Version and vendor from the ``release`` file of a Java home."""
    values = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, re.MULTILINE))
    return (values["JAVA_VERSION"], values.get("IMPLEMENTOR", "")) if values.get("JAVA_VERSION") else None


def parse_version(text: str) -> tuple[str, str] | None:
    """The same from ``java -version``. Other lines are ignored: the JVM prints its environment there too."""
    found = re.search(r'^(\w+) version "([^"]+)"', text, re.MULTILINE)
    return (found[2], found[1]) if found else None


def _not_run(_: Path) -> str:
    return ""


def inspect(home: Path, run_java: RunJava = _not_run) -> Java | None:
    """The Java in this home; None if there is none that can be run."""
    if not shutil.which("java", path=str(home / "bin")):
        return None
    try:
        found = parse_release((home / "release").read_text("utf-8", "replace"))
    except OSError:
        found = None
    found = found or parse_version(run_java(home / "bin" / "java"))
    return Java(home, *found) if found else None


def all_javas(
    java_home: str = "", run_java: RunJava = _not_run, search_paths: Sequence[str] = SEARCH_PATHS
) -> Iterator[Java]:
    """Every Java: first the one of JAVA_HOME and the first one on the path, then those in the usual places."""
    homes = [Path(java_home)] if java_home else []
    on_path = shutil.which("java")
    homes += [Path(on_path).resolve().parent.parent] if on_path else []
    for home in homes:
        if (java := inspect(home, run_java)) is not None:
            yield java
    others = [java for home in _homes(search_paths) if (java := inspect(home, run_java)) is not None]
    yield from sorted(others, key=lambda java: (java.major, str(java.home)))


def _homes(patterns: Sequence[str]) -> list[Path]:
    root = Path("/")
    return sorted({home.resolve() for pattern in patterns for home in root.glob(pattern.lstrip("/"))})


def find_java(
    java_home: str = "",
    run_java: RunJava = _not_run,
    search_paths: Sequence[str] = SEARCH_PATHS,
    min_version: int = MIN_VERSION,
) -> Java | None:
    """The first Java that is new enough. Of those in the usual places it is the oldest such one."""
    found = all_javas(java_home, run_java, search_paths)
    return next((java for java in found if java.major >= min_version), None)


def install_hint(
    found: Sequence[Java], known: PackageManager | None, root: bool, min_version: int = MIN_VERSION
) -> str:
    """The message if none of these Javas is new enough, with the command that installs one. It has no full stop."""
    old = ", ".join(f"{java.version} in {java.home}" for java in found)
    there = f"only Java {old} was found" if old else "none was found"
    how = f"Install it with: {known.command('java', root)}" if known else "Install it and set JAVA_HOME to its folder"
    return f"Java {min_version} or newer is required, but {there}. {how}"
