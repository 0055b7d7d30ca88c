"""The reference results of ``traffic``: the outputs of each stage, computed from the numbers behind the records.

Observation n of both streams has the same time, location and lane, so the join is: n with n. Nothing is parsed here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from streamgauge.stats.digests import digests
from streamgauge.workloads.contract import SEQUENCE, STREAM, Columns, ReferenceResult
from streamgauge.workloads.data.traffic import FLOW, SPEED, Observations, Observed, location_names

Ints = npt.NDArray[np.int64]
_CHUNK = 65_536
SHORT, LONG = 5, 10
"""Over how many windows the cars of a location are compared: 5 s and 10 s with windows of a second."""


@dataclass(frozen=True)
class Traffic:
    """Both streams of a trial, and the length of a window in microseconds."""

    flow: Observations
    speed: Observations
    window: int

    @property
    def streams(self) -> tuple[Observations, Observations]:
        """The streams in the order in which results have them."""
        return self.flow, self.speed

    def names(self, locations: Ints) -> npt.NDArray[Any]:
        """The names of locations."""
        return location_names(self.flow.params.locations)[locations]


@dataclass(frozen=True)
class Raw:
    """Stage 0: every record as it is, of which the result has a digest."""

    of: Traffic

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events."""
        parts = [_raw(stream, events[stream.stream]) for stream in self.of.streams]
        return _joined(parts)


@dataclass(frozen=True)
class Parsed:
    """Stage 1: the fields of every record. Cars or speed is null, whichever its stream does not have."""

    of: Traffic

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events."""
        parts = []
        for stream in self.of.streams:
            seen = stream.observed(0, events[stream.stream])
            parts.append(
                _numbered(stream.stream, len(seen.due))
                | {
                    "location": self.of.names(seen.location),
                    "lane": seen.lane,
                    "cars": np.ma.array(seen.value, mask=stream.stream != FLOW),
                    "speed": np.ma.array(seen.value, mask=stream.stream != SPEED),
                    "max_due": seen.due,
                }
            )
        return _joined(parts)


@dataclass(frozen=True)
class Joined:
    """Stage 2: cars and speed of each lane at each time, identified by the number that both records have."""

    of: Traffic

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events."""
        flow, speed = _both(self.of, events)
        return {
            SEQUENCE: np.arange(len(flow.due), dtype=np.int64),
            "location": self.of.names(flow.location),
            "lane": flow.lane,
            "cars": flow.value,
            "speed": speed.value,
            "max_due": flow.due,
        }


@dataclass(frozen=True)
class Totals:
    """Stage 3: all cars and the mean speed of each location in each tumbling window."""

    of: Traffic

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events: open windows contain what came until then."""
        found = _totals(self.of, events)
        return {
            "window_start": found.start,
            "location": self.of.names(found.location),
            "cars": found.cars,
            "speed": found.speed / found.count,
            "count": found.count,
            "max_due": found.latest,
        }


@dataclass(frozen=True)
class Changes:
    """Stage 4: how much the cars of each location changed since a shorter and a longer time ago, as a share of what
    they were then; null where there is no total of that time, or it is 0."""

    of: Traffic

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if each stream ended after so many events."""
        found = _totals(self.of, events)
        return {
            "window_start": found.start,
            "location": self.of.names(found.location),
            "cars": found.cars,
            "short_change": found.change(SHORT),
            "long_change": found.change(LONG),
            "count": found.count,
            "max_due": found.latest,
        }


RESULTS: tuple[Callable[[Traffic], ReferenceResult], ...] = (Raw, Parsed, Joined, Totals, Changes)
"""The result of each stage."""


@dataclass(frozen=True)
class _Totals:
    """The totals of each window and location that had observations, in ascending order of both."""

    codes: Ints
    """Number of the window times the number of locations, plus the location."""
    locations: int
    window: int
    cars: Ints
    speed: Ints
    count: Ints
    latest: Ints

    @property
    def start(self) -> Ints:
        return self.codes // self.locations * self.window

    @property
    def location(self) -> Ints:
        return self.codes % self.locations

    def change(self, windows: int) -> npt.NDArray[Any]:
        """The change of the cars since so many windows ago."""
        wanted = self.codes - windows * self.locations
        place = np.minimum(np.searchsorted(self.codes, wanted), max(len(self.codes) - 1, 0))
        before = np.where(self.codes[place] == wanted, self.cars[place], 0) if len(place) else self.cars
        change = (self.cars - before) / np.maximum(before, 1)
        return np.ma.array(change, mask=before == 0)


def _totals(of: Traffic, events: Mapping[str, int]) -> _Totals:
    flow, speed = _both(of, events)
    locations = of.flow.params.locations
    codes, place = np.unique(flow.due // of.window * locations + flow.location, return_inverse=True)
    cars, speeds, latest = (np.zeros(len(codes), np.int64) for _ in range(3))
    np.add.at(cars, place, flow.value)
    np.add.at(speeds, place, speed.value)
    latest[place] = flow.due  # in the order of due times, so the last one stays
    counts = np.bincount(place, minlength=len(codes)).astype(np.int64)
    return _Totals(codes, locations, of.window, cars, speeds, counts, latest)


def _both(of: Traffic, events: Mapping[str, int]) -> tuple[Observed, Observed]:
    """The observations that both streams have."""
    count = min(events[stream.stream] for stream in of.streams)
    flow, speed = (stream.observed(0, count) for stream in of.streams)
    return flow, speed


def _numbered(stream: str, rows: int) -> dict[str, npt.NDArray[Any]]:
    return {SEQUENCE: np.arange(rows, dtype=np.int64), STREAM: np.full(rows, stream, object)}


def _raw(stream: Observations, events: int) -> dict[str, npt.NDArray[Any]]:
    texts, moments = np.empty(events, np.int64), np.empty(events, np.int64)
    for low in range(0, events, _CHUNK):
        rows, due = stream.records(low, min(low + _CHUNK, events))
        moments[low : low + len(due)] = due
        texts[low : low + len(due)] = digests(rows, np.full(len(rows), rows.shape[1]))
    return _numbered(stream.stream, events) | {"json": texts, "max_due": moments}


def _joined(parts: list[dict[str, npt.NDArray[Any]]]) -> Columns:
    return {name: _concatenated([part[name] for part in parts]) for name in parts[0]}


def _concatenated(columns: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    values = np.concatenate([np.ma.getdata(column) for column in columns])
    if not isinstance(columns[0], np.ma.MaskedArray):
        return values
    return np.ma.array(values, mask=np.concatenate([np.ma.getmaskarray(column) for column in columns]))
