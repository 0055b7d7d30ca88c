"""All engines by name: the built-in ones, and those that other packages provide as entry points."""

from functools import cache
from importlib.metadata import EntryPoint

from streamgauge.engines.contract import Engine
from streamgauge.model.discovery import Discovery, discover, installed, names

GROUP = "streamgauge.engines"
BUILT_IN = (
    EntryPoint("simulated", "streamgauge.engines.simulated:simulated", GROUP),
    EntryPoint("reference", "streamgauge.engines.reference:reference", GROUP),
    EntryPoint("spark", "streamgauge.engines.spark:spark", GROUP),
)
"""The built-in engines: a further one is a further line. Those of other packages are entry points of the group."""


@cache
def _discovered() -> Discovery:
    return discover("engine", Engine, installed(GROUP, BUILT_IN))


def engines() -> dict[str, Engine]:
    """The engines that can be used, by name."""
    return dict(_discovered().found)


def engine_names() -> tuple[str, ...]:
    """The names of the installed engines. None of them is imported."""
    return names(installed(GROUP, BUILT_IN))


def load_problems() -> tuple[str, ...]:
    """A sentence for each engine that is installed but cannot be used."""
    return _discovered().problems
