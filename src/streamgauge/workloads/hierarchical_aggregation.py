"""Theodolite's UC4: statistics for every group of a hierarchy of sensors."""

from typing import Self

from pydantic import Field, model_validator

from streamgauge.model import papers
from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Rate
from streamgauge.workloads.contract import WithoutEvents
from streamgauge.workloads.parameters import FREQUENCY, SLIDE, WINDOW, Sliding, invalid_combination

_MAX_SENSORS = 10**9


class HierarchicalAggregationParams(Sliding):
    """A tree with ``children`` per node and ``height`` levels of groups; its leaves are the sensors."""

    children: Count = Field(default=4, ge=1, le=100_000, description="elements per group")
    height: Count = Field(default=3, ge=1, le=64, description="levels of groups above the sensors")
    frequency: Rate = Field(default=1.0, gt=0, le=10**6, description="messages per second of each sensor")

    @model_validator(mode="after")
    def _sensors_can_be_counted(self) -> Self:
        if self.children**self.height > _MAX_SENSORS:
            raise invalid_combination(
                "height",
                f"{self.children} children per node over a height of {self.height} make more than 10^9 sensors",
            )
        return self


class HierarchicalAggregation(WithoutEvents[HierarchicalAggregationParams]):
    """One output per group and window."""

    name = "hierarchical-aggregation"
    summary = "statistics for every group of a hierarchy, groups of groups included"
    paper = f"{papers.THEODOLITE} UC4"
    params = HierarchicalAggregationParams
    dimensions = (
        Dimension("children", "count", "higher", "elements per group; sensors = children ^ height"),
        Dimension("height", "count", "higher", "depth of nested groups; sensors = children ^ height"),
        FREQUENCY,
        WINDOW,
        SLIDE,
    )

    def rate(self, params: HierarchicalAggregationParams) -> float | None:
        """Every sensor, that is every leaf of the tree, sends ``frequency`` messages per second."""
        return float(params.children**params.height * params.frequency)

    def work(self, params: HierarchicalAggregationParams) -> float:
        """One copy for every group that contains the sensor, in every window that contains the event."""
        return float(params.height) * super().work(params)


hierarchical_aggregation = HierarchicalAggregation()
