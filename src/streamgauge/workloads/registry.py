"""All workloads by name: the built-in ones, and those that other packages provide as entry points."""

from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from streamgauge.model.discovery import Discovery, discover, installed
from streamgauge.workloads.contract import Workload

GROUP = "streamgauge.workloads"
BUILT_IN = tuple(
    EntryPoint(name, f"streamgauge.workloads.{module}:{module}", GROUP)
    for name, module in (
        ("windowed-aggregation", "windowed_aggregation"),
        ("windowed-join", "windowed_join"),
        ("ingest", "ingest"),
        ("database-storage", "database_storage"),
        ("downsampling", "downsampling"),
        ("time-attribute-aggregation", "time_attribute_aggregation"),
        ("hierarchical-aggregation", "hierarchical_aggregation"),
        ("traffic", "traffic"),
    )
)
"""The built-in workloads: a further one is a further line. Those of other packages are entry points of the group."""


@cache
def _discovered() -> Discovery:
    return discover("workload", Workload, installed(GROUP, BUILT_IN))


def workloads() -> dict[str, Workload[Any]]:
    """The workloads that can be used, by name."""
    return dict(_discovered().found)


def load_problems() -> tuple[str, ...]:
    """A sentence for each workload that is installed but cannot be used."""
    return _discovered().problems
