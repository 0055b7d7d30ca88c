"""Theodolite's UC4: statistics for every group of a hierarchy of sensors."""

from typing import Any, Self

from pydantic import Field, model_validator

from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration, Rate
from streamgauge.workloads.contract import Workload
from streamgauge.workloads.parameters import FREQUENCY, SLIDE, WINDOW, Windowed, impossible

_MOST_SENSORS = 10**9


class HierarchicalAggregationParams(Windowed):
    """A tree with ``children`` per node and ``height`` levels of groups; its leaves are the sensors."""

    children: Count = Field(default=4, ge=1, le=100_000, description="elements per group")
    height: Count = Field(default=3, ge=1, le=64, description="levels of groups above the sensors")
    frequency: Rate = Field(default=1.0, gt=0, le=10**6, description="messages per second of each sensor")
    slide: Duration | None = Field(
        default=None, gt=0, description="time from one window to the next; omitted = tumbling windows"
    )

    @model_validator(mode="after")
    def _sensors_can_be_counted(self) -> Self:
        if self.children**self.height > _MOST_SENSORS:
            raise impossible(
                "height",
                f"{self.children} children per node over a height of {self.height} make more than 10^9 sensors",
            )
        return self


class _Hierarchy(Workload):
    def rate(self, params: dict[str, Any]) -> float | None:
        """Every sensor, that is every leaf of the tree, sends ``frequency`` messages per second."""
        return float(params["children"] ** params["height"] * params["frequency"])

    def work(self, params: dict[str, Any]) -> float:
        """One copy for every group that contains the sensor, in every window that contains the event."""
        return float(params["height"]) * super().work(params)


hierarchical_aggregation = _Hierarchy(
    name="hierarchical-aggregation",
    summary="statistics for every group of a hierarchy, groups of groups included",
    paper="Theodolite 2021 UC4",
    params=HierarchicalAggregationParams,
    dimensions=(
        Dimension("children", "count", "higher", "elements per group; sensors = children ^ height"),
        Dimension("height", "count", "higher", "depth of nested groups; sensors = children ^ height"),
        FREQUENCY,
        WINDOW,
        SLIDE,
    ),
)
