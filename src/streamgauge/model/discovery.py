"""Find implementations by name: the built-in ones, and those that installed packages provide as entry points."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any


@dataclass(frozen=True, slots=True)
class Discovery:
    """The implementations by name, and a sentence for each one that is installed but cannot be used."""

    found: dict[str, Any]
    problems: tuple[str, ...]


def installed(group: str, built_in: Iterable[EntryPoint]) -> tuple[EntryPoint, ...]:
    """The built-in entry points of a group, then those of other packages. Nothing is imported."""
    return (*built_in, *entry_points(group=group))


def names(points: Iterable[EntryPoint]) -> tuple[str, ...]:
    """The names of entry points, each once."""
    return tuple(dict.fromkeys(point.name for point in points))


def discover(kind: str, interface: type, points: Iterable[EntryPoint]) -> Discovery:
    """Load every entry point. One that cannot be used becomes a problem that names its package."""
    found: dict[str, Any] = {}
    problems: list[str] = []
    unique: dict[str, EntryPoint] = {}
    for point in points:
        unique.setdefault(point.value, point)
    for point in unique.values():
        origin = f"the package {point.dist.name}" if point.dist else "streamgauge"
        try:
            loaded = point.load()
        # Foreign code may fail in any way while it is imported, and must not end streamgauge.
        except Exception as error:
            problems.append(f"{kind} {point.name} of {origin} cannot be loaded: {type(error).__name__}: {error}")
            continue
        usable = isinstance(loaded, interface)
        if not usable:
            file = "/".join(interface.__module__.split(".")[1:])
            problems.append(
                f"{kind} {point.name} of {origin} does not implement the interface {interface.__name__} of {file}.py"
            )
        elif loaded.name in found:
            problems.append(f"{kind} {loaded.name} of {origin} has the same name as another {kind}")
        else:
            found[loaded.name] = loaded
    return Discovery(found, tuple(problems))
