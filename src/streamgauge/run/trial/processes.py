"""The processes of one trial beside its system under test: channel, load drivers and collector."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from streamgauge.engines.contract import JobRun
from streamgauge.model.facts import BROKER, COLLECTOR, CONTROLLER, DRIVER, SUT
from streamgauge.model.layout import Placement
from streamgauge.model.streams import Position
from streamgauge.model.trial import Trial
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import Clock, wait_until
from streamgauge.processes.control import Json
from streamgauge.processes.launch import Launcher, Process
from streamgauge.run.driver.specs import (
    MILLI,
    CollectorControl,
    CollectorSpec,
    DriverControl,
    DriverSpec,
    collector_process,
    driver_process,
)
from streamgauge.run.monitor.monitor import Monitor
from streamgauge.run.monitor.usage import Role
from streamgauge.run.trial.setup import TrialSetup
from streamgauge.transports.contract import Channel, ChannelSpec
from streamgauge.transports.ledger import StreamCounts
from streamgauge.transports.registry import transports
from streamgauge.workloads.contract import profiles_of

_LEAD = 300 * MILLI
_OUTPUTS_TIMEOUT = 330.0
"""Seconds that the collector may take until the last outputs are on the disk; a whole topic may have to be read."""
_FINAL_STATUS_TIMEOUT = 30.0
"""Seconds that a load driver may take until all that it sent is confirmed."""


@dataclass(frozen=True, slots=True)
class TrialStatus:
    """The counts of all load drivers together."""

    published: int
    acknowledged: int
    lag: int
    disconnects: int
    full: bool
    done: bool
    streams: Mapping[str, StreamCounts]


class OutputCount(NamedTuple):
    """How many outputs there are."""

    committed: int
    exact: bool = True
    """Otherwise there are at most so many: a transport may count what is no output, such as aborted records."""


@dataclass(slots=True)
class TrialProcesses:
    """Channel, load drivers and collector, and their control channels."""

    setup: TrialSetup
    channel: Channel
    drivers: list[Process] = field(default_factory=list)
    driver_controls: list[DriverControl] = field(default_factory=list)
    collector: Process | None = None
    collector_control: CollectorControl | None = None
    final_status: list[Json] = field(default_factory=list)
    """The last status of each load driver."""
    clock_bounds: list[Json] = field(default_factory=list)
    """How far the clock that stamps outputs is from that of the load drivers, as each of them found."""
    unreadable: str = ""
    """A sentence on outputs that are not in the format of the trial; empty if all could be read."""
    unstamped: str = ""
    """A sentence on outputs whose latency cannot be counted, such as a null in ``max_due``; empty if all can be."""
    start_ns: int = 0
    wall_ns: int = 0

    @property
    def trial(self) -> Trial:
        return self.setup.trial

    @property
    def folder(self) -> Path:
        return self.setup.recorder.path

    @property
    def placement(self) -> Placement:
        return self.setup.placement

    @property
    def send_interval_ns(self) -> int:
        """From one send of the generator to the next: no latency is finer."""
        return send_interval_of(self.trial)

    def status(self) -> TrialStatus:
        """The counts of all load drivers together."""
        return _together([control.status() for control in self.driver_controls])

    def final_counts(self) -> TrialStatus | None:
        """The last counts of all load drivers together, whose load ends now if it has not; None if one has ended."""
        if not self.final_status and all(driver.alive() for driver in self.drivers):
            self.final_status = [_final_status(control) for control in self.driver_controls]
        if not self.final_status or len(self.final_status) < len(self.drivers):
            return None
        return _together(self.final_status)

    def forward(self, position: Position | None) -> None:
        """Pass on how far the system under test is, if only its engine has the position."""
        if position is not None:
            for control in self.driver_controls:
                control.position(position)

    def unusable_outputs(self) -> str:
        """A sentence on outputs that cannot be read or counted, as the collector reports it; empty if all can be."""
        if self.collector_control is not None:
            self.take_output_status(self.collector_control.status())
        return self.unreadable or self.unstamped

    def take_output_status(self, status: Json) -> None:
        """Keep what the collector reports about the outputs."""
        self.unreadable, self.unstamped = str(status["unreadable"]), str(status["unstamped"])

    def output_count(self) -> OutputCount:
        """Outputs that count."""
        if self.collector_control is None:
            return OutputCount(0)
        status = self.collector_control.status()
        return OutputCount(int(status["committed"]), bool(status.get("exact", True)))

    def failure(self) -> str:
        """Why the transport cannot be used any more; empty if it can."""
        transport = self.setup.context.transport
        return transport.failure() if transport else ""

    def audit(self) -> tuple[str, ...]:
        """Whether what was sent, acknowledged and stored differ: then the trial shows nothing."""
        if not self.final_status:
            return ()
        sent, confirmed = (sum(status[name] for status in self.final_status) for name in ("sent", "published"))
        return tuple(self.channel.audit(sent, confirmed))

    def roles(self) -> tuple[Role, ...]:
        """Whose CPU time the monitor counts, and on which cores."""
        system, transport = self.setup.system, self.setup.context.transport
        under_test = [p.guard for group in (system.processes() if system else {}).values() for p in group]
        brokers = [p.guard for group in (transport.processes() if transport else {}).values() for p in group]
        roles = [
            Role(DRIVER, tuple(d.guard for d in self.drivers), self.placement.driver),
            Role(COLLECTOR, (self.collector.guard,) if self.collector else (), self.placement.driver),
            Role(SUT, tuple(under_test), self.placement.sut),
            Role(CONTROLLER, (os.getpid(),), ()),
        ]
        if brokers:
            roles.append(Role(BROKER, tuple(brokers), self.placement.driver))
        return tuple(roles)

    def job_run(self) -> JobRun[Any]:
        """What the engine runs in this trial."""
        setup = self.setup
        return JobRun(
            trial=setup.trial,
            options=setup.options,
            params=setup.params,
            streams=setup.workload.streams(setup.params),
            output=setup.workload.output(setup.params),
            endpoints=self.channel.endpoints,
            folder=self.folder,
        )

    def start(self, monitor: Monitor | None) -> None:
        """Begin the load: one moment for all."""
        clock = Clock()
        monotonic, wall = clock.monotonic_ns() + _LEAD, clock.wall_ns() + _LEAD
        # both clocks name the same moment, a whole millisecond of the wall clock
        self.start_ns, self.wall_ns = monotonic - wall % MILLI, wall - wall % MILLI
        for control in self._controls():
            control.start(self.start_ns, self.wall_ns)
        if monitor is not None:
            monitor.start(self.start_ns)

    def _controls(self) -> list[DriverControl | CollectorControl]:
        return [*self.driver_controls, *([self.collector_control] if self.collector_control else [])]

    def close_journals(self) -> None:
        """Count and write everything that was committed, and close the journals."""
        if self.collector_control is not None and self.collector is not None and self.collector.alive():
            self.take_output_status(self.collector_control.finish(_OUTPUTS_TIMEOUT))
            self.collector_control.quit(_OUTPUTS_TIMEOUT)
            self.collector.wait(10)
        for driver, control in zip(self.drivers, self.driver_controls, strict=True):
            if driver.alive():
                self.final_status.append(_final_status(control))
                control.quit()
                driver.wait(10)
        if not self.failure():
            found = [self.channel.clock_bounds(), *(status.get("clock") for status in self.final_status)]
            self.clock_bounds = [bounds for bounds in found if bounds]

    def close(self) -> None:
        """Close the control channels and end the processes, so that no process writes into a topic that is removed."""
        for control in self._controls():
            control.close()
        for process in (*self.drivers, *([self.collector] if self.collector else [])):
            process.stop()


def _together(parts: Sequence[Json]) -> TrialStatus:
    """The counts of several load drivers as one."""
    streams: dict[str, StreamCounts] = {}
    for part in parts:
        for name, counts in part["streams"].items():
            reached = StreamCounts(*counts)
            streams[name] = StreamCounts(*map(min, reached, streams.get(name, reached)))
    return TrialStatus(
        published=sum(p["published"] for p in parts),
        acknowledged=sum(p["acknowledged"] for p in parts),
        lag=sum(p["lag"] for p in parts),
        disconnects=sum(p["disconnects"] for p in parts),
        full=any(p["full"] for p in parts),
        done=all(p["phase"] in ("done", "full") for p in parts),
        streams=streams,
    )


def _final_status(control: DriverControl) -> Json:
    """The status of a load driver once it sends nothing more and all that it sent is confirmed."""
    control.stop()
    latest: Json = {}

    def finished() -> bool:
        latest.update(control.status())
        return latest["phase"] in ("done", "full")

    wait_until(finished, _FINAL_STATUS_TIMEOUT)
    return latest


@contextmanager
def open_processes(setup: TrialSetup, launcher: Launcher, drain_ns: int) -> Iterator[TrialProcesses]:
    """Load drivers and collector, ready and waiting, on an empty channel."""
    pa.array([0])  # the controller shares the cores of the load driver: what Arrow loads at its first use is loaded now
    transport = setup.context.transport
    if transport is None:
        raise ValueError("a trial on real processes needs an open transport")
    trial, output = setup.trial, setup.workload.output(setup.params)
    partitions = trial.partitions or max(1, len(setup.placement.sut), trial.drivers)
    spec = ChannelSpec(
        trial=trial.number,
        streams=setup.workload.streams(setup.params),
        output=output,
        partitions=partitions,
        drivers=min(trial.drivers, partitions),
        updates=setup.traits.updates and output.window_column is not None,
    )
    with transport.channel(spec) as channel:
        processes = TrialProcesses(setup, channel)
        try:
            _start_drivers(processes, spec, launcher, drain_ns)
            _start_collector(processes, spec, launcher)
            yield processes
        finally:
            processes.close()


def _start_drivers(processes: TrialProcesses, spec: ChannelSpec, launcher: Launcher, drain_ns: int) -> None:
    setup, trial = processes.setup, processes.trial
    for number in range(spec.drivers):
        driver = DriverSpec(
            folder=processes.folder,
            transport=trial.transport.name,
            driver=number,
            workload=trial.workload,
            params=trial.params,
            seed=trial.seed,
            profiles=profiles_of(spec.streams, trial.profile),
            horizon_ns=plan_length(trial, drain_ns),
            partition_count=spec.partitions,
            assigned=tuple(range(number, spec.partitions, spec.drivers)),
            send_interval_ns=send_interval_of(trial),
            bound_events=trial.queue_bound // spec.drivers,
            bound_bytes=_queue_memory_limit() // spec.drivers,
        ).model_copy(update=dict(setup.driver_changes))
        wire = processes.channel.driver_wire(number)
        child = driver_process(driver, wire, launcher.runtime, setup.placement.driver)
        processes.drivers.append(launcher.start(child.process, processes.folder))
        processes.driver_controls.append(DriverControl(child.connect()))


def _start_collector(processes: TrialProcesses, spec: ChannelSpec, launcher: Launcher) -> None:
    collector = CollectorSpec(
        folder=processes.folder,
        transport=processes.trial.transport.name,
        firing=spec.output.window_column,
        identity=spec.output.identity,
        last_row_wins=spec.updates,
    )
    wire = processes.channel.collector_wire()
    child = collector_process(collector, wire, launcher.runtime, processes.placement.driver)
    processes.collector = launcher.start(child.process, processes.folder)
    processes.collector_control = CollectorControl(child.connect())


def send_interval_of(trial: Trial) -> int:
    """From one send of the generator to the next: that of the trial, else the usual one of its transport."""
    return trial.send_interval or transports()[trial.transport.name].usual_interval_ns


def plan_length(trial: Trial, drain_ns: int) -> int:
    """How long the plan of a trial is: its longest length, a wait for an acknowledgement and its drain, with room."""
    warmup = trial.warmup if trial.warmup is not None else trial.warmup_limit
    return max(trial.limit, trial.duration) + warmup + trial.stall + drain_ns + 60 * SECOND


def _queue_memory_limit() -> int:
    """Bytes that may wait in the queues: a quarter of what the machine has."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return pages * size // 4
