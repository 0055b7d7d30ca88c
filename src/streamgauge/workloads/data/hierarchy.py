"""A hierarchy of groups of sensors that changes while a workload runs, and the stream that describes it.

A tree has ``children`` per node; its leaves are the sensors, its inner nodes the groups. Event-time is divided into
periods. In each period, the stream repeats for every sensor in which lowest group it is, and until when. Some sensors
move to the next lowest group with each period. Where a sensor is follows from its number, the period and the seed, so
the generator and the reference result compute it without what came before.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.model.streams import TIME, Column, Schema
from streamgauge.workloads.contract import Columns
from streamgauge.workloads.data.random import ROWS, CountedWords, stream_state

Ints = npt.NDArray[np.int64]

MEMBERSHIPS: Schema = (
    Column("sensor_id", "int32"),
    Column("group_id", "int32"),
    Column("valid_from", TIME),
    Column("valid_to", TIME),
    Column("due", TIME),
)
"""Columns of the stream: the sensor, its lowest group, and from when until when it is in this group."""
HIERARCHY = "hierarchy"
SPARE = 4
"""Records of a period in addition to those of the sensors, so that rounding of due times leaves no sensor without."""

_MICRO = 1_000
_HALF = np.uint64(32)


@dataclass(frozen=True)
class Tree:
    """Groups have numbers from 0, the root, level after level."""

    children: int
    height: int
    """Levels of groups."""

    @property
    def sensors(self) -> int:
        """The number of leaves."""
        return int(self.children**self.height)

    @property
    def lowest_groups(self) -> int:
        """The number of groups that contain sensors themselves."""
        return int(self.children ** (self.height - 1))

    @cached_property
    def first_groups(self) -> tuple[int, ...]:
        """The number of the first group of each level, beginning with the root."""
        return tuple(sum(self.children**above for above in range(level)) for level in range(self.height))

    @property
    def groups(self) -> int:
        """The number of groups of all levels."""
        return self.first_groups[-1] + self.lowest_groups

    def level_of(self, groups: Ints) -> Ints:
        """The level of each group: 0 is the root."""
        levels: Ints = np.searchsorted(self.first_groups, groups, side="right") - 1
        return levels

    def group_above(self, lowest: Ints, level: int) -> Ints:
        """The group of a level that contains these lowest groups, which count from 0."""
        groups: Ints = self.first_groups[level] + lowest // self.children ** (self.height - 1 - level)
        return groups


@dataclass(frozen=True)
class Moves:
    """In which lowest group each sensor is in each period of event-time."""

    tree: Tree
    stay: int
    """Periods after which a sensor moves to the next lowest group; 0: never."""
    seed: int
    stream: int = 1

    @cached_property
    def _phases(self) -> Ints:
        """The period in which each sensor moves, modulo ``stay``: the same number of sensors moves in each."""
        phases = np.zeros(self.tree.sensors, np.int64)
        words = CountedWords(stream_state(self.seed, self.stream), 1, len(phases))
        for low in range(0, len(phases) if self.stay else 0, ROWS):
            part = phases[low : low + ROWS]
            part[:] = (words.words(low, len(part)) >> _HALF) * np.uint64(self.stay) >> _HALF
        return phases

    def lowest(self, sensors: Ints, periods: Ints | int) -> Ints:
        """The lowest group of these sensors in these periods since 1970, counted from 0."""
        home = sensors // self.tree.children
        if not self.stay:
            return home
        return (home + (periods + self._phases[sensors]) // self.stay) % self.tree.lowest_groups


@dataclass(frozen=True)
class Periods:
    """The periods of event-time, and which events of the stream are in each."""

    plan: Plan
    origin: int
    length: int
    """Nanoseconds, as the origin."""

    @cached_property
    def first(self) -> int:
        """The period in which the load begins."""
        return self.origin // self.length

    @cached_property
    def begins(self) -> Ints:
        """The number of the first event of each period, from the first on."""
        last = (self.origin + self.plan.horizon) // self.length
        moments = np.arange(self.first, last + 2) * self.length - self.origin
        return self.plan.count(np.clip(moments, 0, self.plan.horizon))


@dataclass(frozen=True)
class Memberships:
    """The stream, any range of which can be made without what came before.

    The n-th record of a period is that of sensor n. If there are more records than sensors, the others are of sensors
    that send nothing. If there are fewer, as in the period in which the load begins, some sensors are in no group.
    """

    moves: Moves
    periods: Periods

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number modulo ``stride`` is ``offset``."""
        if not 0 <= offset < stride:
            raise ValueError(f"the offset is one of 0 … {stride - 1}, not {offset}")
        first, length = start + (offset - start) % stride, self.periods.length // _MICRO
        due = self.periods.plan.due_range(first, stop, stride, origin=self.periods.origin, unit=_MICRO)
        period = due // length
        sensors = np.arange(first, stop, stride) - self.periods.begins[period - self.periods.first]
        tree = self.moves.tree
        lowest = self.moves.lowest(np.minimum(sensors, tree.sensors - 1), period)
        return {
            "sensor_id": sensors.astype(np.int32),
            "group_id": tree.group_above(lowest, tree.height - 1).astype(np.int32),
            "valid_from": period * length,
            "valid_to": (period + 1) * length,
            "due": due,
        }

    def named(self, records: int) -> Ints:
        """How many records of each period, from the first on, are among the first ``records``: so many sensors."""
        return np.diff(np.minimum(self.periods.begins, records))
