"""The package managers that streamgauge supports, with their names for Java and Maven. Nothing is installed here."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Tool = Literal["java", "maven"]


@dataclass(frozen=True, slots=True)
class PackageManager:
    """A package manager: its program, the arguments that install, and the packages of each tool, the best first."""

    program: str
    install: tuple[str, ...]
    packages: Mapping[Tool, tuple[str, ...]]
    refresh: tuple[str, ...] = ()
    as_root: bool = True

    def command(self, tool: Tool, root: bool = True) -> str:
        """The command that installs a tool, as the user types it."""
        command = " ".join((self.program, *self.install, self.packages[tool][0]))
        return f"sudo {command}" if self.as_root and not root else command


def _with_maven(*java: str) -> dict[Tool, tuple[str, ...]]:
    """The packages of both tools. Maven has the same name everywhere, Java does not."""
    return {"java": java, "maven": ("maven",)}


_FEDORA = _with_maven("java-17-openjdk-headless", "java-21-openjdk-headless")

MANAGERS = (
    PackageManager(
        "apt-get",
        ("install", "-y", "--no-install-recommends"),
        _with_maven("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"),
        ("update",),
    ),
    PackageManager("dnf", ("install", "-y"), _FEDORA),
    PackageManager("microdnf", ("install", "-y"), _FEDORA),
    PackageManager(
        "yum", ("install", "-y"), _with_maven("java-17-openjdk-headless", "java-17-amazon-corretto-headless")
    ),
    PackageManager("zypper", ("--non-interactive", "install"), _FEDORA),
    PackageManager("apk", ("add", "--no-cache"), _with_maven("openjdk17-jre-headless", "openjdk21-jre-headless")),
    PackageManager("pacman", ("-Sy", "--noconfirm"), _with_maven("jre17-openjdk-headless", "jre21-openjdk-headless")),
    PackageManager("brew", ("install",), _with_maven("openjdk@17", "openjdk@21"), as_root=False),
)


def package_manager(which: Callable[[str], str | None] = shutil.which) -> PackageManager | None:
    """The package manager of this system; None if it has none that streamgauge supports."""
    return next((known for known in MANAGERS if which(known.program)), None)


def find_maven() -> Path | None:
    """The Maven on the path."""
    found = shutil.which("mvn")
    return Path(found) if found else None


def maven_hint(known: PackageManager | None, root: bool) -> str:
    """The message if there is no Maven, with the command that installs it. It has no full stop."""
    how = f"Install it with: {known.command('maven', root)}" if known else "Install it so that mvn is on the PATH"
    return f"Maven is required to download jars, but none was found. {how}"
