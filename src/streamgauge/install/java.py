"""Java for engines on the JVM: where one lies that is new enough, and the line to type where there is none.

Nothing is started here. A Java says its version in the file ``release`` of its home; one without that file has to
be asked, and whoever may start processes does that (``install/ensure.py``).
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from streamgauge.install.packages import Manager, manager

LEAST = 17
"""What Spark 4 and Kafka 4 need."""

USUAL = (
    *("/usr/lib/jvm/*", "/usr/lib64/jvm/*", "/usr/java/*", "/usr/local/java/*", "/opt/*", "/opt/*/*"),
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    *(f"{brew}/*/openjdk*/libexec/openjdk.jdk/Contents/Home" for brew in ("/usr/local", "/opt/*")),
)
"""Where package managers put Javas: patterns of homes."""

Ask = Callable[[Path], str]
"""What ``java -version`` prints, of the program at this path; empty if it says nothing."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java: its home and its version, such as ``17.0.15``."""

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
    """17 of ``17.0.15``, 21 of ``21-ea``, 8 of ``1.8.0_392``; 0 of what is no version."""
    numbers = re.match(r"(?:1\.(?=[0-9]))?([0-9]+)", version.strip())
    return int(numbers[1]) if numbers else 0


def from_release(text: str) -> tuple[str, str] | None:
    """Version and vendor from the ``release`` file of a Java home."""
    held = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, re.MULTILINE))
    return (held["JAVA_VERSION"], held.get("IMPLEMENTOR", "")) if held.get("JAVA_VERSION") else None


def from_answer(text: str) -> tuple[str, str] | None:
    """The same from ``java -version``. Only that is taken: the JVM prints its environment there too."""
    said = re.search(r'^(\w+) version "([^"]+)"', text, re.MULTILINE)
    return (said[2], said[1]) if said else None


def _nobody(_: Path) -> str:
    return ""


def look_at(home: Path, ask: Ask = _nobody) -> Java | None:
    """The Java in this home; None if there is none that can be run."""
    if not shutil.which("java", path=str(home / "bin")):
        return None
    try:
        said = from_release((home / "release").read_text("utf-8", "replace"))
    except OSError:
        said = None
    said = said or from_answer(ask(home / "bin" / "java"))
    return Java(home, *said) if said else None


def javas(java_home: str = "", ask: Ask = _nobody, usual: Sequence[str] = USUAL) -> Iterator[Java]:
    """Every Java, those that were chosen first: ``JAVA_HOME`` as it was read, the path, then the usual places."""
    homes = [Path(java_home)] if java_home else []
    found = shutil.which("java")
    homes += [Path(found).resolve().parent.parent] if found else []
    for home in homes:
        if (java := look_at(home, ask)) is not None:
            yield java
    others = [java for home in _usual(usual) if (java := look_at(home, ask)) is not None]
    yield from sorted(others, key=lambda java: (java.major, str(java.home)))


def _usual(patterns: Sequence[str]) -> list[Path]:
    root = Path("/")
    return sorted({home.resolve() for pattern in patterns for home in root.glob(pattern.lstrip("/"))})


def find_java(java_home: str = "", ask: Ask = _nobody, usual: Sequence[str] = USUAL) -> Java | None:
    """The first Java that is new enough; of those that nobody has chosen, the oldest such."""
    return next((java for java in javas(java_home, ask, usual) if java.major >= LEAST), None)


def missing(found: Sequence[Java], known: Manager | None, root: bool) -> str:
    """A sentence for somebody who has no Java that is new enough, with the line to type."""
    old = ", ".join(f"{java.version} in {java.home}" for java in found)
    there = f"only Java {old} was found" if old else "none was found"
    if known is None:
        return f"Java {LEAST} or newer is required, but {there}. Install it and set JAVA_HOME to its folder"
    return f"Java {LEAST} or newer is required, but {there}. Install it with: {known.line('java', root)}"


def java_problem() -> str:
    """For an engine's ``check``: what to do where there is no Java for it; nothing where there is."""
    found = [*javas()]
    unknown = not found and shutil.which("java")  # one that does not say its version may well do
    if unknown or any(java.major >= LEAST for java in found):
        return ""
    return missing(found, manager(), os.geteuid() == 0)
