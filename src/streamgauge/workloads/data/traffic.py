"""Observations of traffic as JSON, in the shape of the feed of van Dongen's paper: what observation n is, for any n.

Measurement locations have lanes. Each lane is observed once in a round, and each observation is two records: the number
of cars in the stream ``flow`` and their speed in the stream ``speed``. Both streams have the same plan, so that
observation n has the same time, location and lane in both.

A record has the same width as all others of its stream. Its static bytes come from a table of locations, and digits
from tables of numbers, so that no record is written one by one.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from streamgauge.model.options import Count, Params, Rate
from streamgauge.model.profile import Plan
from streamgauge.model.streams import TIME, Column, Schema
from streamgauge.workloads.contract import Columns, Stream
from streamgauge.workloads.data.random import ROWS, CountedWords, Words, stream_state

Ints = npt.NDArray[np.int64]
Text = npt.NDArray[np.uint8]

FLOW, SPEED = "flow", "speed"
OBSERVATIONS: Schema = (Column("json", "text"), Column("due", TIME))
"""One observation: its JSON, and the moment at which it is due, which is also its time in the JSON."""
STREAMS = (Stream(FLOW, OBSERVATIONS, share=0.5), Stream(SPEED, OBSERVATIONS, share=0.5))
"""Equal shares, so that both streams have the same plan."""

MAX_LOCATIONS, MAX_LANES = 100_000, 9
CARS = 40
"""An observation has 0 to 39 cars."""
SLOWEST, SPEEDS = 30, 100
"""And an average speed of 30 to 129 km/h, in whole km/h."""

_LAYOUTS = {
    FLOW: '{{"type":"flow","location":"{location}","lat":{lat},"lon":{lon},"lane":#,"lanes":{lanes},'
    '"time":"0000-00-00T00:00:00.000000Z","period":60,"cars":@@,"accuracy":%%%,"inputs":&&,"error":0}}',
    SPEED: '{{"type":"speed","location":"{location}","lat":{lat},"lon":{lon},"lane":#,"lanes":{lanes},'
    '"time":"0000-00-00T00:00:00.000000Z","period":60,"speed":@@@,"accuracy":%%%,"deviation":&&}}',
}
_LANE, _TIME, _VALUE, _ACCURACY, _EXTRA = "#", "0000-", "@", "%", "&"
"""How the places of the changing fields begin."""
_SECOND, _MICROS = 19, 20
"""Characters of a time up to its seconds, and where its microseconds begin."""
_NORTH, _EAST = (50_750_000, 2_700_000), (3_400_000, 3_700_000)
"""Latitude and longitude of the Netherlands in millionths of a degree: the least, and how many there are."""
_STEPS = (1_148_153, 2_017_291)  # primes, so that locations are spread over the area

_LOWER, _SIXTEEN, _HALF = np.uint64(0xFFFFFFFF), np.uint64(16), np.uint64(32)


class Roads(Params):
    """Measurement locations with lanes, each observed regularly."""

    locations: Count = Field(default=6500, ge=1, le=MAX_LOCATIONS, description="number of measurement locations")
    lanes: Count = Field(default=2, ge=1, le=MAX_LANES, description="lanes of each measurement location")
    frequency: Rate = Field(
        default=1.0,
        gt=0,
        le=10**5,
        description="observations per second of each lane, in each of both streams; load = 2 × locations × lanes × "
        "frequency",
    )

    @property
    def sites(self) -> int:
        """How many lanes are observed."""
        return self.locations * self.lanes

    @property
    def key_count(self) -> int:
        """Every window has one result for each location."""
        return self.locations


def location_name(number: int) -> str:
    """The name of a measurement location."""
    return f"RWS01_MONIBAS_{number:06d}"


@lru_cache(maxsize=4)
def location_names(locations: int) -> npt.NDArray[Any]:
    """The names of all locations, as texts."""
    names = np.empty(locations, object)
    names[:] = [location_name(number) for number in range(locations)]
    return names


@lru_cache(maxsize=4)
def _templates(stream: str, locations: int, lanes: int) -> Text:
    """The record of each location, with placeholders where fields change."""
    degrees = ((least, count, step) for (least, count), step in zip((_NORTH, _EAST), _STEPS, strict=True))
    north, east = ((least + np.arange(locations, dtype=np.int64) * step % count) for least, count, step in degrees)
    texts = [
        _LAYOUTS[stream].format(location=location_name(number), lat=_degrees(lat), lon=_degrees(lon), lanes=lanes)
        for number, (lat, lon) in enumerate(zip(north.tolist(), east.tolist(), strict=True))
    ]
    return np.frombuffer("".join(texts).encode(), np.uint8).reshape(locations, -1)


def _degrees(millionths: int) -> str:
    return f"{millionths // 10**6}.{millionths % 10**6:06d}"


@lru_cache(maxsize=8)
def _numbers(count: int, width: int, fill: str) -> npt.NDArray[Any]:
    """The texts of the numbers from 0 on, all of one width."""
    return np.frombuffer("".join(f"{number:{fill}>{width}d}" for number in range(count)).encode(), f"V{width}")


@dataclass(frozen=True)
class Observed:
    """The numbers of some observations, in order."""

    location: Ints
    lane: Ints
    value: Ints
    """Cars or km/h, whichever the stream has."""
    due: Ints
    """Microseconds since 1970."""


@dataclass(frozen=True)
class Observations:
    """One of both streams, any range of which can be made without what comes before it.

    ``origin`` is the moment at which the load begins, in nanoseconds since 1970.
    """

    params: Roads
    plan: Plan
    seed: int
    stream: str
    origin: int = 0

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number modulo ``stride`` is ``offset``."""
        import pyarrow as pa  # noqa: PLC0415 - most commands need no Arrow

        rows, due = self.records(start, stop, stride, offset)
        ends = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(rows)]
        return {"json": pa.Array.from_buffers(pa.string(), len(rows), buffers), "due": due}

    def records(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> tuple[Text, Ints]:
        """The same events as rows of bytes, and when they are due."""
        if not 0 <= offset < stride:
            raise ValueError(f"the offset is one of 0 … {stride - 1}, not {offset}")
        first = start + (offset - start) % stride
        due = self.plan.due_range(first, stop, stride, origin=self.origin, unit=1_000)
        templates = _templates(self.stream, self.params.locations, self.params.lanes)
        out = np.empty((len(due), templates.shape[1]), np.uint8)
        counter = self._counter(stride, len(due))
        for low in range(0, len(due), ROWS):
            part = out[low : low + ROWS]
            number = first + low * stride
            location, lane = self._places(number, len(part), stride)
            np.take(_whole(templates), location, out=_whole(part), mode="clip")
            self._write(part, lane, counter.words(number, len(part)), due[low : low + ROWS])
        return out, due

    def observed(self, start: int, stop: int) -> Observed:
        """The numbers in the events ``start … stop − 1``, without their texts."""
        due = self.plan.due_range(start, stop, origin=self.origin, unit=1_000)
        value, counter = np.empty(len(due), np.int64), self._counter(1, len(due))
        for low in range(0, len(due), ROWS):
            rows = min(ROWS, len(due) - low)
            value[low : low + rows] = self._values(counter.words(start + low, rows))
        location, lane = self._places(start, len(due), 1)
        return Observed(location, lane + 1, value, due)

    def _counter(self, stride: int, rows: int) -> CountedWords:
        return CountedWords(stream_state(self.seed, (FLOW, SPEED).index(self.stream)), stride, min(rows, ROWS))

    def _places(self, first: int, rows: int, stride: int) -> tuple[Ints, Ints]:
        """Locations and lanes, from 0 on: all lanes of a location follow each other."""
        site = np.arange(first, first + rows * stride, stride, dtype=np.int64) % self.params.sites
        location = site // self.params.lanes
        return location, site - location * self.params.lanes

    def _values(self, words: Words) -> Ints:
        """Cars or speeds: the upper half of a word decides."""
        least, count = (0, CARS) if self.stream == FLOW else (SLOWEST, SPEEDS)
        return ((words >> _HALF) * np.uint64(count) >> _HALF).astype(np.int64) + least

    def _write(self, out: Text, lane: Ints, words: Words, due: Ints) -> None:
        """The fields that change."""
        layout = _LAYOUTS[self.stream].format(
            location=location_name(0), lat=_degrees(_NORTH[0]), lon=_degrees(_EAST[0]), lanes=self.params.lanes
        )
        out[:, layout.index(_LANE)] = lane + ord("1")
        _write_times(out, layout.index(_TIME), due)
        width = layout.count(_VALUE)
        _put(
            out,
            layout.index(_VALUE),
            _numbers(CARS if width == 2 else SLOWEST + SPEEDS, width, " "),
            self._values(words),
        )
        lower = words & _LOWER
        accuracy = ((lower & np.uint64(0xFFFF)) * np.uint64(21) >> _SIXTEEN).astype(np.int64) + 80
        _put(out, layout.index(_ACCURACY), _numbers(101, 3, " "), accuracy)
        extra = ((lower >> _SIXTEEN) * np.uint64(100) >> _SIXTEEN).astype(np.int64)
        _put(out, layout.index(_EXTRA), _numbers(100, 2, " "), extra)


def _whole(rows: Text) -> npt.NDArray[Any]:
    """Rows as one value each."""
    return rows.view(f"V{rows.shape[1]}")[:, 0]


def _put(out: Text, at: int, texts: npt.NDArray[Any], numbers: Ints) -> None:
    """Write the texts of numbers into the rows at this place."""
    out[:, at : at + texts.itemsize].view(texts.dtype)[:, 0] = texts[numbers]


def _write_times(out: Text, at: int, due: Ints) -> None:
    """Moments in UTC with microseconds, as ISO 8601 has them. They ascend, so each second is written once."""
    seconds = due // 10**6
    micros = due - seconds * 10**6
    upper = micros // 1_000
    _put(out, at + _MICROS, _numbers(1_000, 3, "0"), upper)
    _put(out, at + _MICROS + 3, _numbers(1_000, 3, "0"), micros - upper * 1_000)
    begins = np.concatenate([[0], np.flatnonzero(np.diff(seconds)) + 1])
    texts = np.datetime_as_string(seconds[begins].astype("datetime64[s]"))
    for begin, end, text in zip(begins, [*begins[1:], len(due)], texts, strict=True):
        out[begin:end, at : at + _SECOND] = np.frombuffer(str(text).encode(), np.uint8)
