"""The readings of sensors: each sensor in turn, the same bytes everywhere, and each part without the rest."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.workloads.contract import Columns, Inputs
from streamgauge.workloads.data.random import mix64, stream_state
from streamgauge.workloads.data.sensors import HIGHEST_VALUE, READINGS, Readings
from streamgauge.workloads.downsampling import DownsamplingParams, downsampling

ORIGIN = 1_700_000_000 * SECOND + 123_456_789
PLAN = constant(1_000_000).plan(10 * SECOND)
GAMMA = 0x9E3779B97F4A7C15


def readings(sensors: int = 1_000, seed: int = 7, stream: int = 0) -> Readings:
    return Readings(sensors, PLAN, seed, stream, ORIGIN)


def fingerprint(columns: Columns) -> str:
    """SHA-256 over the columns as little-endian bytes."""
    digest = hashlib.sha256()
    for name, column in columns.items():
        digest.update(name.encode() + column.astype(column.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("sensors", [1, 7, 1_000, 1_000_000_000])
def test_a_reading_follows_from_its_number_and_its_random_word(sensors: int) -> None:
    made = readings(sensors).events(999_990, 1_000_010)
    for row, n in enumerate(range(999_990, 1_000_010)):
        word = mix64(stream_state(7, 0) + n * GAMMA)
        assert made["sensor_id"][row] == n % sensors
        assert made["value"][row] == (word >> 32) * 10_000 >> 32
        assert made["due"][row] == (ORIGIN + n * 1000) // 1000


@pytest.mark.parametrize("sensors", [1, 3, 1_000, 65_537])
@pytest.mark.parametrize("partitions", [2, 7, 20_000])
def test_partitions_together_are_the_whole(sensors: int, partitions: int) -> None:
    whole = readings(sensors).events(5, 60_003)
    for partition in {0, 1, 3, partitions - 1} & set(range(partitions)):
        part = readings(sensors).events(5, 60_003, stride=partitions, offset=partition)
        begin = (partition - 5) % partitions
        for name, column in whole.items():
            assert np.array_equal(part[name], column[begin::partitions])


def test_every_sensor_sends_one_message_per_period() -> None:
    params = DownsamplingParams.model_validate({"keys": 50, "frequency": "4/s"})
    rate = downsampling.rate(params)
    assert rate == 200.0
    (stream,) = downsampling.streams(params)
    inputs = Inputs({stream.name: constant(rate).plan(10 * SECOND)}, 1, ORIGIN)
    made = downsampling.events(params, stream.name, inputs).events(0, 2_000)
    for sensor in range(50):
        due = made["due"][made["sensor_id"] == sensor]
        assert set(np.diff(due).tolist()) == {250_000}


def test_the_first_hundred_thousand_readings_are_the_same_bytes_on_every_machine() -> None:
    prints = {sensors: fingerprint(readings(sensors).events(0, 100_000)) for sensors in (1, 1_000)}
    assert prints == {
        1: "44c20ea23e7ef0421ad1ccea9b62ac7cc71df18ad27d1b107d7aa4665d64bfac",
        1_000: "56e42ee4eee59bf3e31ebdcda88b292373f8c0cf301ecaf1aab955cc535da496",
    }


def test_a_row_has_sixteen_bytes_and_the_columns_of_the_schema() -> None:
    made = readings().events(0, 10)
    assert [name for name, _ in READINGS] == list(made)
    assert sum(column.dtype.itemsize for column in made.values()) == 16
    for column in made.values():
        assert pa.array(column).buffers()[1].address == column.ctypes.data, "Arrow takes it without a copy"


def test_values_are_even_and_do_not_depend_on_the_sensor() -> None:
    made = readings(20).events(0, 400_000)
    assert (made["value"].min(), made["value"].max()) == (0, HIGHEST_VALUE)
    table = np.zeros((20, 25))
    np.add.at(table, (made["sensor_id"], made["value"] * 25 // (HIGHEST_VALUE + 1)), 1)
    assert stats.chisquare(table.ravel()).pvalue > 0.001


def test_another_seed_or_stream_has_other_values() -> None:
    prints = {fingerprint(readings(9, seed, stream).events(0, 1000)) for seed in range(10) for stream in range(10)}
    assert len(prints) == 100


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (3, 40_000), (16_384, 16_385)])
def test_a_statistic_gets_the_same_readings_as_an_engine(start: int, stop: int) -> None:
    made, found = readings(77).events(start, stop), list[list[int]]()
    for part in readings(77).keyed_values(start, stop):
        found += np.transpose(part).tolist()
    assert [row[0] for row in found] == list(range(start, stop))
    assert [row[1] for row in found] == made["sensor_id"].tolist()
    assert [row[2] for row in found] == made["value"].tolist()


def test_an_offset_outside_the_stride_is_refused() -> None:
    with pytest.raises(ValueError, match="0 … 3"):
        readings().events(0, 10, stride=4, offset=4)
