"""Seconds come back from Parquet as they were, and can be watched while they grow."""

from pathlib import Path

import numpy as np
import pytest
import store_samples as sample

from streamgauge.model.seconds import COLUMNS, Latencies, Seconds
from streamgauge.store import columns


def round_trip(seconds: Seconds) -> Seconds:
    kinds = tuple(seconds.latencies)
    data = columns.seconds_to_bytes(seconds), columns.latencies_to_bytes(seconds)
    return columns.bytes_to_seconds(seconds.start, kinds, *data)


@pytest.mark.parametrize(
    "seconds",
    [
        sample.seconds(),
        sample.seconds(count=120, per_second=50),
        sample.seconds(count=3, start=40),
        sample.seconds(count=0, per_second=0),
        Seconds(0, {}),
        Seconds(0, {"published": np.array([1, 2], np.int64)}),
        Seconds(7, {"queue": np.array([5], np.int64)}, {"event-time": Latencies()}),
    ],
    ids=["all", "long", "later", "empty", "nothing", "one column", "latencies without any"],
)
def test_seconds_come_back_as_they_were(seconds: Seconds) -> None:
    assert sample.same_seconds(round_trip(seconds), seconds)


def test_a_growing_trial_is_seen_up_to_what_was_appended(tmp_path: Path) -> None:
    live = columns.LiveSeconds(tmp_path)
    whole = sample.seconds(count=9)
    assert len(columns.read_live(tmp_path)) == 0
    for stop in (2, 3, 9):
        live.append(whole.between(len(columns.read_live(tmp_path)), stop))
        assert sample.same_seconds(columns.read_live(tmp_path), whole.between(0, stop))
    live.close()
    assert sample.same_seconds(columns.read_live(tmp_path), whole)


def test_columns_that_were_not_recorded_are_zero_while_it_grows(tmp_path: Path) -> None:
    live = columns.LiveSeconds(tmp_path)
    live.append(Seconds(0, {"published": np.array([3, 4], np.int64)}))
    read = columns.read_live(tmp_path)
    assert read["published"].tolist() == [3, 4]
    assert all(read[name].tolist() == [0, 0] for name in COLUMNS if name != "published")


@pytest.mark.parametrize("name", [columns.LIVE_SECONDS, columns.LIVE_LATENCIES])
def test_a_torn_end_hides_only_what_was_torn(tmp_path: Path, name: str) -> None:
    live = columns.LiveSeconds(tmp_path)
    whole = sample.seconds(count=4)
    sizes = []
    for second in range(4):
        live.append(whole.between(second, second + 1))
        sizes.append((tmp_path / name).stat().st_size)
    live.close()
    data = (tmp_path / name).read_bytes()
    for cut in range(0, len(data), 37):
        (tmp_path / name).write_bytes(data[:cut])
        read = columns.read_live(tmp_path)
        complete = sum(size <= cut for size in sizes)
        if name == columns.LIVE_SECONDS:
            assert sample.same_seconds(read, whole.between(0, complete)) or complete == len(read) == 0
        else:
            assert sample.same_seconds(Seconds(0, read.columns), Seconds(0, whole.columns))
            assert set(read.latency("event-time").second.tolist()) == set(range(complete))
