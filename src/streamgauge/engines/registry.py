"""All engines by name: our own and those that other packages bring as entry points."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from streamgauge.engines.contract import Engine

GROUP = "streamgauge.engines"
BUILT_IN = (
    EntryPoint("simulated", "streamgauge.engines.simulated:simulated", GROUP),
    EntryPoint("reference", "streamgauge.engines.reference:reference", GROUP),
    EntryPoint("spark", "streamgauge.engines.spark:spark", GROUP),
)
"""The same lines as in pyproject.toml: they hold in a source tree too, where no metadata was written."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The engines found, and a sentence for each plug-in that could not be used."""

    engines: dict[str, Engine]
    problems: tuple[str, ...]


def discover(points: Iterable[EntryPoint]) -> Discovery:
    """Load every entry point. One that is broken becomes a problem that names its package."""
    engines: dict[str, Engine] = {}
    problems: list[str] = []
    seen: set[str] = set()
    for point in points:
        if point.value in seen:
            continue
        seen.add(point.value)
        origin = f"the package {point.dist.name}" if point.dist else "streamgauge"
        try:
            engine = point.load()
        # Foreign code may fail in any way while it is imported, and must not take streamgauge with it.
        except Exception as error:
            problems.append(f"engine {point.name} of {origin} cannot be loaded: {type(error).__name__}: {error}")
            continue
        if not isinstance(engine, Engine):
            problems.append(
                f"engine {point.name} of {origin} does not implement the interface Engine of engines/contract.py"
            )
        elif engine.name in engines:
            problems.append(f"engine {engine.name} of {origin} has the same name as another engine")
        else:
            engines[engine.name] = engine
    return Discovery(engines, tuple(problems))


@cache
def _installed() -> Discovery:
    return discover([*BUILT_IN, *entry_points(group=GROUP)])


def engines() -> dict[str, Engine]:
    """The engines that can be used, by name."""
    return dict(_installed().engines)


def broken() -> tuple[str, ...]:
    """A sentence for each plug-in that is installed but cannot be used."""
    return _installed().problems
