"""Readings of sensors for Theodolite's workloads: what event n is, for any n.

Sensors send in turn, so event n comes from sensor n modulo the number of sensors: each sends one message per period. A
counted random word decides the value. Nothing but integer arithmetic, so the bytes are the same on every machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from streamgauge.model.profile import Plan
from streamgauge.model.streams import TIME, Column, Schema
from streamgauge.workloads.contract import Columns, EventSource, Inputs, Stream, WorkloadBase
from streamgauge.workloads.data.random import ROWS, CountedWords, Words, stream_state
from streamgauge.workloads.parameters import Sensors

Ints = npt.NDArray[np.int64]
Whole = npt.NDArray[np.int32] | Ints

READINGS: Schema = (Column("sensor_id", "int32"), Column("value", "int32"), Column("due", TIME))
"""Columns of a reading: 16 bytes. ``due`` is made as int64 microseconds."""
READING_STREAM = Stream("readings", READINGS, key="sensor_id")

HIGHEST_VALUE = 9_999
"""Values are whole numbers from 0 on, each as likely as any other."""

_HALF = np.uint64(32)
_VALUES = np.uint64(HIGHEST_VALUE + 1)
_COUNTING = np.arange(ROWS, dtype=np.uint64)


@dataclass(frozen=True)
class Readings:
    """One stream of readings, any range of which can be made without those before it.

    ``origin`` is the moment at which the load begins, in nanoseconds since the epoch: event n is due at
    ``origin + plan.due(n)``. ``seed`` and ``stream`` decide the values.
    """

    sensors: int
    plan: Plan
    seed: int
    stream: int = 0
    origin: int = 0

    @property
    def codes(self) -> int:
        """How many keys the readings have."""
        return self.sensors

    def events(self, start: int, stop: int, stride: int = 1, offset: int = 0) -> Columns:
        """Those of the events ``start … stop − 1`` whose number modulo ``stride`` is ``offset``.

        Partition p of P is ``stride=P, offset=p``.
        """
        if not 0 <= offset < stride:
            raise ValueError(f"the offset is one of 0 … {stride - 1}, not {offset}")
        first = start + (offset - start) % stride
        due = self.plan.due_range(first, stop, stride, origin=self.origin, unit=1_000)
        sensors, values = np.empty(len(due), np.int32), np.empty(len(due), np.int32)
        size = min(len(due), ROWS)
        counter = CountedWords(stream_state(self.seed, self.stream), stride, size)
        places, turns = np.empty(size, np.uint64), np.empty(size, np.uint64)
        for low in range(0, len(due), ROWS):
            high = min(low + ROWS, len(due))
            rows, number = high - low, first + low * stride
            _fill_sensors(number, stride, self.sensors, (places[:rows], turns[:rows]), sensors[low:high])
            _fill_values(counter.words(number, rows), values[low:high])
        return {"sensor_id": sensors, "value": values, "due": due}

    def keyed_values(self, start: int, stop: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """The events ``start … stop − 1`` as a statistic needs them: their numbers, their sensors and their values.

        A few thousand at a time; the columns are overwritten by the next step.
        """
        size = max(0, min(stop - start, ROWS))
        counter = CountedWords(stream_state(self.seed, self.stream), 1, size)
        work = np.empty(size, np.uint64), np.empty(size, np.uint64)
        sensors, values = np.empty(size, np.int64), np.empty(size, np.int64)
        for low in range(start, stop, ROWS):
            rows = min(ROWS, stop - low)
            _fill_sensors(low, 1, self.sensors, (work[0][:rows], work[1][:rows]), sensors[:rows])
            _fill_values(counter.words(low, rows), values[:rows])
            yield np.arange(low, low + rows), sensors[:rows], values[:rows]


def _fill_sensors(first: int, stride: int, sensors: int, work: tuple[Words, Words], out: Whole) -> None:
    """The sensors of the events ``first``, ``first + stride`` …, into ``out``. ``work`` is room of the same length.

    The remainder is taken by a division and a product, because numpy divides by one number many times faster.
    """
    places, turns = work
    np.multiply(_COUNTING[: len(out)], np.uint64(stride % sensors), out=places)
    np.add(places, np.uint64(first % sensors), out=places)
    np.floor_divide(places, np.uint64(sensors), out=turns)
    np.multiply(turns, np.uint64(sensors), out=turns)
    np.subtract(places, turns, out=out, casting="unsafe")


def _fill_values(words: Words, out: Whole) -> None:
    """The value that each word decides, into ``out``. The words are overwritten."""
    np.right_shift(words, _HALF, out=words)
    np.multiply(words, _VALUES, out=words)
    np.right_shift(words, _HALF, out=out, casting="unsafe")


def readings_of(sensors: int, inputs: Inputs) -> Readings:
    """The readings of a trial."""
    return Readings(sensors, inputs.plans[READING_STREAM.name], inputs.seed, origin=inputs.origin_ns)


S = TypeVar("S", bound=Sensors)


class ReadingsWorkload(WorkloadBase[S]):
    """A workload with one stream, the readings of its sensors."""

    def streams(self, params: S) -> tuple[Stream, ...]:
        """The readings."""
        return (READING_STREAM,)

    def events(self, params: S, stream: str, inputs: Inputs) -> EventSource:
        """The readings of a trial."""
        return readings_of(params.keys, inputs)
