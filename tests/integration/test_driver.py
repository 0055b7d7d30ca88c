"""A driver instance as a process: starts in step, keeps its plan, serves its events exactly, writes it all down."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock
from streamgauge.processes.launch import Launcher, Process
from streamgauge.run.driver.specs import DriveOrder, DriverLine, Tokens, driver_child
from streamgauge.store.journal import read_rows
from streamgauge.transports.queue.reader import QueueReader
from streamgauge.workloads.data.shopping import Purchases
from streamgauge.workloads.windowed_aggregation import WindowedAggregationParams

MILLI = 1_000_000
PARAMS = WindowedAggregationParams()
RATE = 100_000.0


@dataclass
class Drivers:
    """Driver instances of one trial."""

    tokens: Tokens
    endpoints: list[str]
    lines: list[DriverLine]
    processes: list[Process]
    folder: Path
    wall_ns: int = 0

    def start(self) -> None:
        clock = Clock()
        self.wall_ns = (clock.wall_ns() + 100 * MILLI) // MILLI * MILLI
        moment = clock.monotonic_ns() + 100 * MILLI
        for line in self.lines:
            line.start(moment, self.wall_ns)

    def quit(self) -> None:
        for line, process in zip(self.lines, self.processes, strict=True):
            line.quit()
            assert process.wait(10) == 0, process.tail()


Launch = Callable[..., Drivers]


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Launch]:
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:

        def launch(count: int = 1, **changes: object) -> Drivers:
            tokens, endpoints, processes = Tokens.new(), [], []
            for number in range(count):
                endpoints.append(f"grpc+unix://{launcher.runtime}/queue-{number}.sock")
                order = DriveOrder.model_validate(
                    {
                        "driver": number,
                        "endpoint": endpoints[-1],
                        "folder": tmp_path,
                        "workload": "windowed-aggregation",
                        "params": PARAMS.model_dump(),
                        "seed": 5,
                        "profiles": {"purchases": constant(RATE)},
                        "horizon_ns": 60 * SECOND,
                        "partitions": 2,
                        "mine": (0, 1) if count == 1 else (number,),
                        **changes,
                    }
                )
                processes.append(launcher.start(driver_child(order, tokens), tmp_path))
            lines = [DriverLine(endpoint, tokens) for endpoint in endpoints]
            return Drivers(tokens, endpoints, lines, processes, tmp_path)

        yield launch


def phase(line: DriverLine, wanted: str, seconds: float = 15.0) -> dict[str, int]:
    """Wait until the driver is in this phase; its status then."""
    ends = time.monotonic() + seconds
    while (status := line.status())["phase"] != wanted:
        assert time.monotonic() < ends, status
        time.sleep(0.02)
    return status


@pytest.mark.parametrize("count", [1, 2])
def test_drivers_together_publish_exactly_the_plan_and_serve_exactly_the_workload(drivers: Launch, count: int) -> None:
    trial = drivers(count)
    for line in trial.lines:
        line.end(1_203 * MILLI)
    trial.start()
    published = sum(phase(line, "done")["published"] for line in trial.lines)
    plan = constant(RATE).plan(60 * SECOND)
    assert published == int(plan.count(1_203 * MILLI)) == 120_300
    with QueueReader(trial.endpoints, trial.tokens.sut) as reader:
        cut = reader.latest()
        assert cut.due == trial.wall_ns // 1000 + 1_203_000
        tables = [reader.read(lane, 0, stop).read_all() for lane, stop in cut.offsets.items()]
        reader.acknowledge(cut.offsets)
    got = pa.concat_tables(tables).sort_by("due")
    expected = Purchases(PARAMS, plan, 5, 0, trial.wall_ns).events(0, published)
    for name in ("due", "user_id", "gem_pack_id", "price"):
        assert np.array_equal(got[name].cast("int64").to_numpy(), expected[name]), name
    trial.quit()
    ticks = [read_rows(trial.folder / f"ticks-{n}") for n in range(count)]
    assert sum(sum(t["count"].to_pylist()) for t in ticks) == published
    assert ticks[0]["intended"].to_pylist() == [*range(5 * MILLI, 1_201 * MILLI, 5 * MILLI), 1_203 * MILLI]
    for number, rows in enumerate(ticks):
        assert min(np.array(rows["actual"]) - np.array(rows["intended"])) >= 0
        acks = read_rows(trial.folder / f"acks-{number}").to_pylist()
        assert [a["lag"] for a in acks] == [0]
        seconds = read_rows(trial.folder / f"driver-{number}-seconds").to_pydict()
        assert sum(seconds["published"]) == sum(seconds["acknowledged"]) == sum(rows["count"].to_pylist())
        assert sum(seconds["offered"]) == sum(seconds["published"])
        assert sum(seconds["served"]) == sum(seconds["published"])


def test_a_full_queue_ends_the_load_and_is_said(drivers: Launch) -> None:
    trial = drivers(bound_events=20_000)
    trial.start()
    status = phase(trial.lines[0], "full")
    assert (status["full"], status["published"]) == (True, 20_000)
    trial.quit()


def test_a_stopped_generator_keeps_the_due_times_and_shows_its_schedule_lag(drivers: Launch) -> None:
    trial = drivers()
    trial.lines[0].end(1_500 * MILLI)
    trial.start()
    time.sleep(0.4)
    os.kill(trial.processes[0].pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(trial.processes[0].pid, signal.SIGCONT)
    assert phase(trial.lines[0], "done")["published"] == 150_000
    trial.quit()
    rows = read_rows(trial.folder / "ticks-0")
    assert np.diff(rows["intended"].to_numpy()).max() == 5 * MILLI
    lag = rows["actual"].to_numpy() - rows["intended"].to_numpy()
    assert lag.max() > 450 * MILLI
    seconds = read_rows(trial.folder / "driver-0-seconds").to_pydict()
    assert max(seconds["schedule_lag"]) == lag.max()
    assert max(seconds["hiccup"]) > 450 * MILLI


def test_a_step_of_the_wall_clock_is_written_down(drivers: Launch) -> None:
    trial = drivers(wall_step_at_ns=1_500 * MILLI, wall_step_ns=-300 * MILLI)
    trial.lines[0].end(2_100 * MILLI)
    trial.start()
    phase(trial.lines[0], "done")
    trial.quit()
    steps = read_rows(trial.folder / "driver-0-seconds").to_pydict()["clock_step"]
    assert steps[0] < 50 * MILLI
    assert max(steps) > 250 * MILLI


def test_a_driver_told_to_stop_publishes_nothing_more_and_can_still_be_read(drivers: Launch) -> None:
    trial = drivers()
    trial.start()
    time.sleep(0.3)
    trial.lines[0].stop()
    before = phase(trial.lines[0], "done")["published"]
    assert 0 < before < RATE
    with QueueReader(trial.endpoints, trial.tokens.sut) as reader:
        rows = [reader.read(lane, 0, stop).read_all().num_rows for lane, stop in reader.latest().offsets.items()]
    assert sum(rows) == trial.lines[0].status()["published"] == before
    trial.processes[0].stop()
    assert read_rows(trial.folder / "ticks-0").num_rows > 0, "SIGTERM leaves whole journals"


def test_a_driver_that_is_ended_before_it_began_leaves_at_once(drivers: Launch) -> None:
    trial = drivers()
    trial.processes[0].stop()
    assert trial.processes[0].exit_code() == 0


def test_a_driver_that_fails_ends_and_its_log_says_why(drivers: Launch) -> None:
    trial = drivers(params={"users": -1})
    trial.start()
    assert trial.processes[0].wait(10) == 1
    assert any("Error" in line for line in trial.processes[0].tail())
