"""Theodolite's UC4: statistics for every group of a hierarchy of sensors, which changes while the workload runs."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from streamgauge.model import papers
from streamgauge.model.experiment import Dimension
from streamgauge.model.options import Count, Duration, Rate, Share
from streamgauge.model.streams import Column
from streamgauge.model.units import SECOND, format_duration
from streamgauge.workloads.contract import (
    Columns,
    EventSource,
    Inputs,
    OutputContract,
    ReferenceResult,
    Stream,
    WorkloadBase,
)
from streamgauge.workloads.data.hierarchy import HIERARCHY, MEMBERSHIPS, SPARE, Memberships, Moves, Periods, Tree
from streamgauge.workloads.data.sensors import READING_STREAM, Readings, readings_of
from streamgauge.workloads.parameters import FREQUENCY, SLIDE, WINDOW, Sliding, invalid_combination
from streamgauge.workloads.references.statistics import EventWindows, WindowStatistics, statistics_output

Ints = npt.NDArray[np.int64]
_MAX_SENSORS = 10**9
_MIN_BEAT = SECOND // 1_000

OUTPUT = statistics_output(Column("group_id", "int32"), Column("level", "int32"))
"""The statistics of a group in a window, and the moments of the newest reading in it. The level of the root is 0."""


class HierarchicalAggregationParams(Sliding):
    """A tree with ``children`` per node and ``height`` levels of groups; its leaves are the sensors."""

    children: Count = Field(default=4, ge=1, le=100_000, description="elements per group")
    height: Count = Field(default=3, ge=1, le=64, description="levels of groups above the sensors")
    frequency: Rate = Field(default=1.0, gt=0, le=10**6, description="messages per second of each sensor")
    heartbeat: Duration = Field(
        default=10 * SECOND,
        gt=0,
        description="longest time after which the hierarchy is sent again, which is when it changes; if it does not "
        "divide window and slide, the longest common divisor of the three",
    )
    moves: Share = Field(
        default=0.01, ge=0, le=1, description="share of the sensors that move to another group with each heartbeat"
    )

    @property
    def key_count(self) -> int:
        """The number of groups of all levels."""
        return self.tree.groups

    @property
    def tree(self) -> Tree:
        """The sensors and their groups."""
        return Tree(self.children, self.height)

    @property
    def stay(self) -> int:
        """Heartbeats after which a sensor moves; 0: never."""
        return round(1 / self.moves) if self.moves else 0

    @property
    def beat(self) -> int:
        """Nanoseconds from one heartbeat to the next. Windows consist of whole ones."""
        return max(math.gcd(self.window, self.period, self.heartbeat), _MIN_BEAT)

    @property
    def memberships(self) -> float:
        """Records of the hierarchy per second: with every heartbeat one for each sensor, and a few more."""
        return (self.tree.sensors + SPARE) * SECOND / self.beat

    @model_validator(mode="after")
    def _sensors_can_be_counted(self) -> Self:
        if self.children**self.height > _MAX_SENSORS:
            raise invalid_combination(
                "height",
                f"{self.children} children per node over a height of {self.height} make more than 10^9 sensors",
            )
        return self

    @model_validator(mode="after")
    def _heartbeat_divides_windows(self) -> Self:
        if self.window % self.beat or self.period % self.beat:
            raise invalid_combination(
                "heartbeat",
                f"the window of {format_duration(self.window)}, the slide of {format_duration(self.period)} and the "
                f"heartbeat of {format_duration(self.heartbeat)} have no common divisor of "
                f"{format_duration(_MIN_BEAT)} or more, in which the hierarchy could be sent again",
            )
        return self


@dataclass(frozen=True)
class GroupReadings:
    """Readings with one key for each group that contains their sensor at their due time."""

    readings: Readings
    memberships: Memberships
    records: int
    """How many records of the hierarchy there are."""

    @property
    def codes(self) -> int:
        """The number of groups."""
        return self.memberships.moves.tree.groups

    @cached_property
    def _named(self) -> Ints:
        return self.memberships.named(self.records)

    def keyed_values(self, start: int, stop: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Numbers, groups and values of the readings ``start … stop − 1``, level after level."""
        moves, periods, made = self.memberships.moves, self.memberships.periods, self.readings
        for numbers, sensors, values in made.keyed_values(start, stop):
            due = made.plan.due_range(int(numbers[0]), int(numbers[-1]) + 1, origin=made.origin, unit=1_000)
            period = due // (periods.length // 1_000)
            known = sensors < self._named[period - periods.first]
            lowest = moves.lowest(sensors[known], period[known])
            for level in range(moves.tree.height):
                yield numbers[known], moves.tree.group_above(lowest, level), values[known]


@dataclass(frozen=True)
class GroupStatistics:
    """The statistics of each group of each level in each window."""

    readings: Readings
    memberships: Memberships
    params: HierarchicalAggregationParams

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events."""
        count, made = events[READING_STREAM.name], self.readings
        keyed = GroupReadings(made, self.memberships, events[HIERARCHY])
        windows = EventWindows(made.plan, made.origin, self.params.window, self.params.period)
        rows = {**WindowStatistics(keyed, windows).until(count)}
        groups = rows.pop("key")
        return {
            "window_start": rows.pop("window_start"),
            "group_id": groups,
            "level": self.params.tree.level_of(groups),
            **rows,
        }


class HierarchicalAggregation(WorkloadBase[HierarchicalAggregationParams]):
    """Readings and the hierarchy as two streams, and one output per group and window."""

    name = "hierarchical-aggregation"
    summary = "statistics for every group of a hierarchy that changes, groups of groups included"
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
        """Every sensor, that is every leaf of the tree, sends ``frequency`` readings per second. The rest is the
        hierarchy."""
        return params.tree.sensors * params.frequency + params.memberships

    def work(self, params: HierarchicalAggregationParams) -> float:
        """One copy for every group that contains the sensor, in every window that contains the event."""
        return float(params.height) * super().work(params)

    def streams(self, params: HierarchicalAggregationParams) -> tuple[Stream, ...]:
        """The readings and the hierarchy."""
        sent = params.tree.sensors * params.frequency
        share = sent / (sent + params.memberships)
        return replace(READING_STREAM, share=share), Stream(HIERARCHY, MEMBERSHIPS, key="sensor_id", share=1 - share)

    def output(self, params: HierarchicalAggregationParams) -> OutputContract:
        """Six statistics per window and group."""
        return replace(OUTPUT, identity=("window_start", "group_id"))

    def events(self, params: HierarchicalAggregationParams, stream: str, inputs: Inputs) -> EventSource:
        """The readings of a trial, or its hierarchy."""
        if stream == HIERARCHY:
            return memberships_of(params, inputs)
        return readings_of(params.tree.sensors, inputs)

    def reference(self, params: HierarchicalAggregationParams, inputs: Inputs) -> ReferenceResult:
        """The statistics of these readings."""
        return GroupStatistics(readings_of(params.tree.sensors, inputs), memberships_of(params, inputs), params)


def memberships_of(params: HierarchicalAggregationParams, inputs: Inputs) -> Memberships:
    """The hierarchy of a trial."""
    periods = Periods(inputs.plans[HIERARCHY], inputs.origin_ns, params.beat)
    return Memberships(Moves(params.tree, params.stay, inputs.seed), periods)


hierarchical_aggregation = HierarchicalAggregation()
