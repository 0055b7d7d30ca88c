"""Make sure that requirements are met: find them, install or download what is missing, or name the exact command."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from streamgauge.install.cache import differences
from streamgauge.install.jars import FetchError, fetch_jars
from streamgauge.install.java import all_javas, find_java, install_hint
from streamgauge.install.packages import find_maven, maven_hint, package_manager
from streamgauge.install.programs import install, is_root, run_java
from streamgauge.install.requirements import JarSet, JavaRuntime, PythonPackage, Requirement
from streamgauge.processes.launch import Launcher

Say = Callable[[str], object]

_PROGRESS_STEPS = 4


@dataclass(frozen=True, slots=True)
class Locations:
    """Where requirements are searched and stored, as the command line reads it from the environment."""

    cache: Path
    """The folder of downloaded files."""
    java_home: str = ""
    """JAVA_HOME; empty if it is not set."""
    runtime: Path | None = None
    """The folder for sockets of the processes that download; None = the usual one."""


@dataclass(frozen=True, slots=True)
class Status:
    """What was found of one requirement: it is met if ``problem`` is empty."""

    requirement: Requirement
    version: str = ""
    """The version that was found. If Java is missing: the older versions that were found, with their homes."""
    folder: Path | None = None
    """The home of the Java, or the folder of the jars."""
    problem: str = ""
    """Why it is not met, with the command that fixes it. It has no full stop."""
    installed: bool = False
    """Whether it was installed or downloaded just now."""

    @property
    def met(self) -> bool:
        """Whether it was found."""
        return not self.problem

    @property
    def text(self) -> str:
        """What was found, for example ``Java 17.0.15 in /usr/lib/jvm/java-17-openjdk-amd64``."""
        requirement = self.requirement
        if isinstance(requirement, PythonPackage):
            return f"{requirement.title or requirement.name} {self.version}"
        title = requirement.title if isinstance(requirement, JarSet) else f"Java {self.version}"
        return f"{title} in {self.folder}"


class RequirementError(RuntimeError):
    """Something that is required is missing; the message has the exact command that installs it."""


def examine(requirements: Iterable[Requirement], locations: Locations) -> tuple[Status, ...]:
    """What is there of these requirements, each once. Nothing is installed."""
    return tuple(_examine(requirement, locations) for requirement in dict.fromkeys(requirements))


def ensure(requirements: Iterable[Requirement], locations: Locations, say: Say) -> tuple[Status, ...]:
    """Meet these requirements: Java and Maven are installed if no password is needed, jars are downloaded.

    Raises RequirementError with the exact commands if something is still missing. Nothing is installed or downloaded
    while a Python package is missing, because streamgauge does not install those.
    """
    found = examine(requirements, locations)
    if any(not status.met and isinstance(status.requirement, PythonPackage) for status in found):
        raise_missing(found)
    return tuple(status if status.met else _obtain(status.requirement, locations, say) for status in found)


def raise_missing(found: Sequence[Status]) -> None:
    """Raise RequirementError for the packages and programs that are missing. Jars do not count: they are downloaded."""
    problems = [s.problem for s in found if not s.met and not isinstance(s.requirement, JarSet)]
    if problems:
        raise RequirementError("\n".join(problems))


def package_version(name: str) -> str | None:
    """The version of a Python package; None if it is not installed. It is not imported, because that is slow."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _examine(requirement: Requirement, locations: Locations) -> Status:
    match requirement:
        case PythonPackage():
            return _examine_package(requirement)
        case JavaRuntime():
            return _examine_java(requirement, locations)
        case JarSet():
            folder = requirement.folder(locations.cache)
            missing = bool(differences(folder, requirement.checksums))
            problem = f"{requirement.title} is not downloaded yet" if missing else ""
            return Status(requirement, requirement.version, folder, problem)


def _examine_package(requirement: PythonPackage) -> Status:
    version = package_version(requirement.name)
    if version is not None:
        return Status(requirement, version)
    title = requirement.title or requirement.name
    return Status(requirement, problem=f"{title} is not installed. Install it with: {requirement.command}")


def _examine_java(requirement: JavaRuntime, locations: Locations) -> Status:
    java = find_java(locations.java_home, run_java, min_version=requirement.min_version)
    if java is not None:
        return Status(requirement, java.version, java.home)
    older = [*all_javas(locations.java_home, run_java)]
    hint = install_hint(older, package_manager(), is_root(), requirement.min_version)
    return Status(requirement, ", ".join(f"{old.version} in {old.home}" for old in older), problem=hint)


def _obtain(requirement: Requirement, locations: Locations, say: Say) -> Status:
    """Install or download a requirement that is missing."""
    if isinstance(requirement, JarSet):
        _download(requirement, locations, say)
        return Status(requirement, requirement.version, requirement.folder(locations.cache), installed=True)
    install("java", lambda: _examine(requirement, locations).met or None, say)
    status = _examine(requirement, locations)
    raise_missing([status])
    return replace(status, installed=True)


def _download(jars: JarSet, locations: Locations, say: Say) -> None:
    if (find_maven() or install("maven", find_maven, say)) is None:
        raise RequirementError(maven_hint(package_manager(), is_root()))
    with Launcher(locations.runtime) as launcher:
        try:
            fetch_jars(jars, locations.cache, launcher, _progress_printer(jars, say))
        except FetchError as error:
            raise RequirementError(str(error)) from error


def _progress_printer(jars: JarSet, say: Say) -> Callable[[int, int], None]:
    """A function that reports a download at its beginning, at every quarter, and at its end."""
    reported = -1

    def report(count: int, of: int) -> None:
        nonlocal reported
        step = count * _PROGRESS_STEPS // of
        if step > reported:
            reported = step
            say(f"Downloading {jars.title}: {count} of {of} jars ...")

    return report
