"""A driver instance as a process: starts in step, keeps its plan, serves its events exactly, writes it all down."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_urlsafe

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.model.profile import constant
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock
from streamgauge.processes.control import Json
from streamgauge.processes.launch import Launcher, Process
from streamgauge.run.driver.specs import DriverControl, DriverSpec, driver_process
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

    token: str
    locations: list[str]
    controls: list[DriverControl]
    processes: list[Process]
    folder: Path
    wall_ns: int = 0

    def start(self) -> None:
        clock = Clock()
        self.wall_ns = (clock.wall_ns() + 100 * MILLI) // MILLI * MILLI
        moment = clock.monotonic_ns() + 100 * MILLI
        for control in self.controls:
            control.start(moment, self.wall_ns)

    def quit(self) -> None:
        for control, process in zip(self.controls, self.processes, strict=True):
            control.quit()
            assert process.wait(10) == 0, process.tail()


Launch = Callable[..., Drivers]


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Launch]:
    with tempfile.TemporaryDirectory(prefix="sg") as short, Launcher(Path(short)) as launcher:

        def launch(count: int = 1, **changes: object) -> Drivers:
            trial = Drivers(token_urlsafe(24), [], [], [], tmp_path)
            for number in range(count):
                trial.locations.append(f"grpc+unix://{launcher.runtime}/queue-{number}.sock")
                spec = DriverSpec.model_validate(
                    {
                        "driver": number,
                        "folder": tmp_path,
                        "transport": "queue",
                        "workload": "windowed-aggregation",
                        "params": PARAMS.model_dump(),
                        "seed": 5,
                        "profiles": {"purchases": constant(RATE)},
                        "horizon_ns": 60 * SECOND,
                        "partition_count": 2,
                        "assigned": (0, 1) if count == 1 else (number,),
                        "send_interval_ns": 5 * MILLI,
                        **changes,
                    }
                )
                wire = {"location": trial.locations[-1], "token": trial.token}
                child = driver_process(spec, wire, launcher.runtime, ())
                trial.processes.append(launcher.start(child.process, tmp_path))
                trial.controls.append(DriverControl(child.connect()))
            return trial

        yield launch


def phase(control: DriverControl, wanted: str, seconds: float = 15.0) -> Json:
    """Wait until the driver is in this phase; its status then."""
    ends = time.monotonic() + seconds
    while (status := control.status())["phase"] != wanted:
        assert time.monotonic() < ends, status
        time.sleep(0.02)
    return status


@pytest.mark.parametrize("count", [1, 2])
def test_drivers_together_publish_exactly_the_plan_and_serve_exactly_the_workload(drivers: Launch, count: int) -> None:
    trial = drivers(count)
    for control in trial.controls:
        control.end(1_203 * MILLI)
    trial.start()
    published = sum(phase(control, "done")["published"] for control in trial.controls)
    plan = constant(RATE).plan(60 * SECOND)
    assert published == int(plan.count(1_203 * MILLI)) == 120_300
    with QueueReader(trial.locations, trial.token) as reader:
        available = reader.available()
        assert available.due_us == trial.wall_ns // 1000 + 1_203_000
        tables = [reader.stream(partition, 0, stop).read_all() for partition, stop in available.offsets.items()]
        reader.acknowledge(available.offsets)
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


def test_a_full_queue_ends_the_load_and_is_reported(drivers: Launch) -> None:
    trial = drivers(bound_events=20_000)
    trial.start()
    status = phase(trial.controls[0], "full")
    assert (status["full"], status["published"]) == (True, 20_000)
    trial.quit()


def test_a_stopped_generator_keeps_the_due_times_and_shows_its_schedule_lag(drivers: Launch) -> None:
    trial = drivers()
    trial.controls[0].end(1_500 * MILLI)
    trial.start()
    time.sleep(0.4)
    os.kill(trial.processes[0].pid, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(trial.processes[0].pid, signal.SIGCONT)
    assert phase(trial.controls[0], "done")["published"] == 150_000
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
    trial.controls[0].end(2_100 * MILLI)
    trial.start()
    phase(trial.controls[0], "done")
    trial.quit()
    steps = read_rows(trial.folder / "driver-0-seconds").to_pydict()["clock_step"]
    assert steps[0] < 50 * MILLI
    assert max(steps) > 250 * MILLI


def test_a_driver_requested_to_stop_publishes_nothing_more_and_can_still_be_read(drivers: Launch) -> None:
    trial = drivers()
    trial.start()
    time.sleep(0.3)
    trial.controls[0].stop()
    before = phase(trial.controls[0], "done")["published"]
    assert 0 < before < RATE
    with QueueReader(trial.locations, trial.token) as reader:
        ends = reader.available().offsets
        rows = [reader.stream(partition, 0, stop).read_all().num_rows for partition, stop in ends.items()]
    assert sum(rows) == trial.controls[0].status()["published"] == before
    trial.processes[0].stop()
    assert read_rows(trial.folder / "ticks-0").num_rows > 0, "SIGTERM leaves whole journals"


def test_a_driver_that_is_ended_before_it_began_exits_immediately(drivers: Launch) -> None:
    trial = drivers()
    trial.processes[0].stop()
    assert trial.processes[0].exit_code() == 0


def test_a_driver_that_fails_ends_and_its_log_has_the_reason(drivers: Launch) -> None:
    trial = drivers(params={"users": -1})
    trial.start()
    assert trial.processes[0].wait(10) == 1
    assert any("Error" in line for line in trial.processes[0].tail())
