"""The package managers that we know, and what they call the tools that we need. Nothing is installed here."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Tool = Literal["java", "maven"]


@dataclass(frozen=True, slots=True)
class Manager:
    """A package manager: its program, what it wants first, and packages with a tool, the better ones first."""

    program: str
    install: tuple[str, ...]
    packages: Mapping[Tool, tuple[str, ...]]
    refresh: tuple[str, ...] = ()
    as_root: bool = True

    def line(self, tool: Tool, root: bool = True) -> str:
        """The line that a person types for it."""
        words = " ".join((self.program, *self.install, self.packages[tool][0]))
        return f"sudo {words}" if self.as_root and not root else words


def _with_maven(*java: str) -> dict[Tool, tuple[str, ...]]:
    """Every manager calls Maven by its name; a Java has as many names as there are managers."""
    return {"java": java, "maven": ("maven",)}


_FEDORA = _with_maven("java-17-openjdk-headless", "java-21-openjdk-headless")

MANAGERS = (
    Manager(
        "apt-get",
        ("install", "-y", "--no-install-recommends"),
        _with_maven("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"),
        ("update",),
    ),
    Manager("dnf", ("install", "-y"), _FEDORA),
    Manager("microdnf", ("install", "-y"), _FEDORA),
    Manager("yum", ("install", "-y"), _with_maven("java-17-openjdk-headless", "java-17-amazon-corretto-headless")),
    Manager("zypper", ("--non-interactive", "install"), _FEDORA),
    Manager("apk", ("add", "--no-cache"), _with_maven("openjdk17-jre-headless", "openjdk21-jre-headless")),
    Manager("pacman", ("-Sy", "--noconfirm"), _with_maven("jre17-openjdk-headless", "jre21-openjdk-headless")),
    Manager("brew", ("install",), _with_maven("openjdk@17", "openjdk@21"), as_root=False),
)


def manager(which: Callable[[str], str | None] = shutil.which) -> Manager | None:
    """The package manager of this system; None if we know none of it."""
    return next((known for known in MANAGERS if which(known.program)), None)


def find_maven() -> Path | None:
    """The Maven on the path."""
    found = shutil.which("mvn")
    return Path(found) if found else None


def maven_missing(known: Manager | None, root: bool) -> str:
    """A sentence for somebody who has no Maven, with the line to type."""
    how = f"Install it with: {known.line('maven', root)}" if known else "Install it so that mvn is on the PATH"
    return f"Maven is required to download jars, but none was found. {how}"
