"""The journals of a trial become its seconds, and latencies count where the outputs were due."""

from pathlib import Path

import numpy as np

from streamgauge.model.layout import Placement
from streamgauge.model.seconds import Latencies, Seconds
from streamgauge.model.units import SECOND
from streamgauge.run.collector.counts import KIND_NUMBER
from streamgauge.run.trial.assemble import MISSING, assemble, newest
from streamgauge.store.journal import CORES, DRIVER_SECONDS, LATENCIES, Journal

EVENT_TIME = KIND_NUMBER["event-time"]


class Trial:
    """A folder that a driver and a collector write to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.driven = Journal(folder / "driver-0-seconds", DRIVER_SECONDS)
        self.latencies = Journal(folder / "collector-latencies", LATENCIES)

    def drive(self, *seconds: int) -> None:
        self.driven.append(
            {name: seconds if name == "second" else [100] * len(seconds) for name in DRIVER_SECONDS.names}
        )

    def come(self, *cells: tuple[int, int, int]) -> None:
        """Second in which outputs were due, bucket, count."""
        second, bucket, count = zip(*cells, strict=True)
        kind = [EVENT_TIME] * len(cells)
        self.latencies.append({"second": second, "kind": kind, "bucket": bucket, "count": count})

    def read(self, stop: int | None = None) -> Seconds:
        return assemble(self.folder, 1, Placement((0,), (1,)), stop)


def cells(latency: Latencies) -> list[tuple[int, int, int]]:
    return list(zip(latency.second.tolist(), latency.bucket.tolist(), latency.count.tolist(), strict=True))


def test_a_row_that_comes_in_the_tail_counts_in_the_judged_second_in_which_it_was_due(tmp_path: Path) -> None:
    """The tail is the seconds from 3 on: rows that were due there do not count, whenever they come."""
    trial = Trial(tmp_path)
    trial.drive(0, 1, 2, 3, 4)
    trial.come((0, 7, 1), (1, 7, 1))
    trial.come((2, 900, 4), (3, 7, 2))
    judged = trial.read(stop=3)
    assert judged.stop == 3
    assert cells(judged.latency("event-time")) == [(0, 7, 1), (1, 7, 1), (2, 900, 4)]


def test_outputs_that_never_came_count_in_the_judged_seconds_beside_those_that_came(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.drive(0, 1, 2, 3)
    trial.come((0, 7, 1))
    never = Journal(tmp_path / MISSING, LATENCIES)
    never.append({"second": [1, 3], "kind": [KIND_NUMBER["missing"]] * 2, "bucket": [500, 400], "count": [3, 9]})
    judged = trial.read(stop=3)
    assert cells(judged.latency("missing")) == [(1, 500, 3)]
    assert cells(judged.rows("event-time")) == [(0, 7, 1), (1, 500, 3)]


def test_what_is_new_has_the_latencies_of_earlier_seconds_that_came_later(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    trial.drive(0, 1)
    trial.come((0, 7, 1), (1, 8, 2))
    before = trial.read()
    trial.drive(2, 3)
    trial.come((0, 900, 3), (2, 7, 1))
    trial.come((3, 7, 1), (1, 800, 4))
    now = trial.read()
    added = newest(before, now)
    assert (added.start, added.stop) == (2, 4)
    assert cells(added.latency("event-time")) == [(0, 900, 3), (2, 7, 1), (3, 7, 1), (1, 800, 4)]
    assert cells(newest(now, trial.read()).latency("event-time")) == [], "nothing counts twice"


def test_all_that_was_new_at_each_look_is_the_whole_trial(tmp_path: Path) -> None:
    trial, rng = Trial(tmp_path), np.random.default_rng(3)
    trial.drive(0)
    looks = [trial.read()]
    stretches = [looks[0]]
    for second in range(1, 8):
        trial.drive(second)
        # the next second may have outputs already, and earlier ones still get some
        trial.come(*((int(at), int(rng.integers(1, 999)), 1) for at in rng.integers(0, second + 2, 5)))
        looks.append(trial.read())
        stretches.append(newest(looks[-2], looks[-1]))
    told = sorted(cell for stretch in stretches for cell in cells(stretch.latency("event-time")))
    assert told == sorted(cells(looks[-1].latency("event-time")))
    assert [stretch.stop for stretch in stretches] == list(range(1, 9))


def test_steal_time_is_that_of_the_core_with_the_most_and_other_cpu_is_the_mean_over_the_cores(tmp_path: Path) -> None:
    """Case 13: a micro-batch waits for its slowest core. Threads move, so other CPU is exact only over all cores."""
    trial = Trial(tmp_path)
    trial.drive(0, 1)
    rows = [(1, 1, 20_000, 10_000), (1, 2, 0, 90_000), (2, 1, 40_000, 0), (2, 2, 20_000, 50_000), (2, 0, 7, 999_999)]
    seconds, cores, other, stolen = zip(*rows, strict=True)
    columns = {"time": [second * SECOND for second in seconds], "core": cores, "foreign_us": other, "steal_us": stolen}
    with Journal(tmp_path / "monitor-cores", CORES) as journal:
        rest = {name: [1_000_000 if name == "span_us" else 0] * len(rows) for name in CORES.names}
        journal.append({**rest, **columns})
    read = assemble(tmp_path, 1, Placement((0,), (1, 2)))
    assert read["steal"].tolist() == [90_000, 50_000], "the second core: 140 ms in the trial, the first had 10 ms"
    assert read["foreign"].tolist() == [10_000, 30_000]
