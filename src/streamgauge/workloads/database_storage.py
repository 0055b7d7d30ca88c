"""Theodolite's UC1, which is also the sink of the study in ``papers.SCALABILITY``: convert each record and store it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from streamgauge.model import papers
from streamgauge.model.streams import TIME, Column
from streamgauge.workloads.contract import SEQUENCE, Columns, Inputs, OutputContract, ReferenceResult, Stream
from streamgauge.workloads.data.sensors import READING_STREAM, Readings, ReadingsWorkload, readings_of
from streamgauge.workloads.parameters import FREQUENCY, KEYS, Sensors

SENSOR_DIGITS = 9
"""Digits of the number of a sensor in a row: there are at most 10^9 sensors."""
SENSOR_PREFIX = "sensor-"
UNIT = 100.0
"""A reading is a whole number of hundredths; the row has the value in whole units."""

OUTPUT = OutputContract(
    schema=(
        Column(SEQUENCE, "int64"),
        Column("sensor", "text"),
        Column("value", "float64"),
        Column("max_due", TIME),
        Column("max_ingested", TIME),
    ),
    identity=(SEQUENCE,),
    window_column=None,
)
"""A row of the table: the name of the sensor, its value, and when it was due. The number of the reading identifies the
row."""


class DatabaseStorageParams(Sensors):
    """One row per reading."""


@dataclass(frozen=True)
class StoredRows:
    """The row of each reading, by its number."""

    readings: Readings

    def until(self, events: Mapping[str, int]) -> Columns:
        """The expected rows if the stream ended after so many events."""
        count = events[READING_STREAM.name]
        made = self.readings.events(0, count)
        names = np.array([*_names(min(self.readings.sensors, count))], object)
        return {
            SEQUENCE: np.arange(count, dtype=np.int64),
            "sensor": names[made["sensor_id"]],
            "value": made["value"] / UNIT,
            "max_due": made["due"],
        }


def _names(sensors: int) -> Iterator[str]:
    return (f"{SENSOR_PREFIX}{sensor:0{SENSOR_DIGITS}}" for sensor in range(sensors))


class DatabaseStorage(ReadingsWorkload[DatabaseStorageParams]):
    """One stream of readings, and one row for each of them."""

    name = "database-storage"
    summary = "convert each record to the row of a table; the rows are counted and checked, not stored"
    paper = f"{papers.THEODOLITE} UC1"
    params = DatabaseStorageParams
    dimensions = (KEYS, FREQUENCY)

    def streams(self, params: DatabaseStorageParams) -> tuple[Stream, ...]:
        """The readings, with their numbers."""
        return (replace(READING_STREAM, numbered=True),)

    def output(self, params: DatabaseStorageParams) -> OutputContract:
        """A row per reading."""
        return OUTPUT

    def reference(self, params: DatabaseStorageParams, inputs: Inputs) -> ReferenceResult:
        """The rows of these readings."""
        return StoredRows(readings_of(params.keys, inputs))


database_storage = DatabaseStorage()
