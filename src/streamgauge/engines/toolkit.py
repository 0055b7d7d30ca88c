"""What engines have in common: systems that start a process per trial, and children with a control channel."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from streamgauge.engines.contract import (
    Deployment,
    DoesNotScale,
    Failure,
    JobRun,
    Layout,
    Situation,
    System,
    Watermark,
)
from streamgauge.install.requirements import PythonPackage, Requirement
from streamgauge.model.facts import EngineFacts, ProbeResult
from streamgauge.model.streams import Position
from streamgauge.processes.control import ControlClient, ControlError, Json, new_token
from streamgauge.processes.spec import Host, LineReady, ProcessSpec, RunningProcess
from streamgauge.transports.ledger import offsets_from_json, offsets_to_json
from streamgauge.workloads.parameters import Sliding, Windowed


def python_package(name: str) -> Requirement:
    """A package that must be installed in the Python environment of streamgauge."""
    return PythonPackage(name)


def too_fine(situation: Situation[Any]) -> Iterator[str]:
    """Window lengths that real events cannot have: their times are whole microseconds."""
    for params in situation.params:
        times = {"window": params.window, "watermark": params.watermark} if isinstance(params, Windowed) else {}
        if isinstance(params, Sliding):
            times["slide"] = params.period
        for name, value in times.items():
            if value % 1000:
                yield f"workload.{name} must be a whole number of microseconds: event times have no finer unit"


def one_instance(instances: int, cores: float = 1) -> Layout:
    """The layout of an engine that always runs as one instance. Raises DoesNotScale for more."""
    if instances > 1:
        raise DoesNotScale("this engine always runs as one instance; set instances to 1")
    return Layout(1, cores)


class ChildSpec(BaseModel):
    """The specification of the process of a trial. It comes through standard input, because it has secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    control: Path
    token: str = Field(repr=False)
    transport: str
    endpoints: dict[str, Any] = Field(repr=False)
    """What ``Endpoints.wire`` returned, with the secrets of the transport."""
    folder: Path
    workload: str
    params: dict[str, Any]
    """Resolved parameters of the workload."""
    options: dict[str, Any]
    """Resolved options of the engine."""
    details: dict[str, Any] = Field(default_factory=dict)
    """What only this engine needs."""


class ControlledChild:
    """A child process of an engine with its control channel."""

    def __init__(self, process: RunningProcess, control: ControlClient) -> None:
        self.process, self.control = process, control

    def stop(self) -> None:
        """End it."""
        self.control.close()
        self.process.stop()


def python_child(
    name: str, module: str, run: JobRun[Any], host: Host, details: Mapping[str, Any] | None = None
) -> ControlledChild:
    """Start a Python module as the process of a trial. It reads a ChildSpec and serves a control channel."""
    token = new_token()
    spec = ChildSpec(
        control=host.runtime / f"{name.replace(' ', '-')[:20]}-{token[:6]}.control",
        token=token,
        transport=run.endpoints.transport,
        endpoints=run.endpoints.wire(),
        folder=run.folder.absolute(),
        workload=run.trial.workload,
        params=run.trial.params,
        options=run.trial.options,
        details=dict(details or {}),
    )
    process = ProcessSpec(
        name=name,
        argv=(sys.executable, "-m", module),
        cores=host.cores,
        ready=LineReady(),
        secret=spec.model_dump_json(),
    )
    running = host.start(process, run.folder)
    return ControlledChild(running, ControlClient(spec.control, token))


class PositionLog:
    """The newest position of a process that reports it as notifications of its control channel."""

    def __init__(self) -> None:
        self._last = Position({}, 0)
        self._new = False

    def take(self, notifications: Sequence[Json]) -> None:
        """Keep what is newer. What was begun may be reported again with offsets that became true earlier."""
        for each in notifications:
            if "offsets" not in each:
                continue
            offsets, at_ns = offsets_from_json(each["offsets"]), int(each["at_ns"])
            started = None if each.get("started") is None else offsets_from_json(each["started"])
            if offsets == self._last.offsets:
                at_ns = self._last.at_ns
            self._last, self._new = Position(offsets, at_ns, started), True

    def newest(self) -> Position | None:
        """The newest position, once; None if nothing is new."""
        newest, self._new = (self._last if self._new else None), False
        return newest


def position_notification(position: Position) -> Json:
    """A position as a process notifies it."""
    started = None if position.started is None else offsets_to_json(position.started)
    return {"offsets": offsets_to_json(position.offsets), "started": started, "at_ns": position.at_ns}


class ProcessDeployment:
    """The process of one trial while it runs."""

    def __init__(self, child: ControlledChild, facts: EngineFacts) -> None:
        self._child, self._facts, self._positions = child, facts, PositionLog()

    @property
    def process(self) -> RunningProcess:
        """The process."""
        return self._child.process

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._child.process.alive()

    def failure(self) -> Failure | None:
        """Nothing more is known than that its process ended."""
        return None

    def position(self) -> Position | None:
        """What the process has reported since the last call."""
        with contextlib.suppress(ControlError):  # that it ended is found by ``alive``
            self._positions.take(self._child.control.notifications())
        return self._positions.newest()

    def probe(self, since_ns: int, until_ns: int) -> ProbeResult:
        """Nothing."""
        return ProbeResult()

    def watermark(self) -> Watermark | None:
        """None: the job uses the watermark of the workload."""
        return None

    def describe(self) -> EngineFacts:
        """Versions and effective settings."""
        return self._facts

    def end(self) -> None:
        """End the process."""
        self._child.stop()


Deploy = Callable[[JobRun[Any]], ProcessDeployment]
"""Starts the process of a trial."""


class PerTrialSystem:
    """A system that starts a process for every trial."""

    def __init__(self, deploy: Deploy) -> None:
        self._deploy = deploy
        self._running: Sequence[RunningProcess] = ()

    @contextmanager
    def deploy(self, run: JobRun[Any]) -> Iterator[Deployment]:
        """Start the process of a trial."""
        deployment = self._deploy(run)
        self._running = (deployment.process,)
        try:
            yield deployment
        finally:
            deployment.end()

    def alive(self) -> bool:
        """There is nothing that could end between trials."""
        return True

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """Those of the running trial."""
        return {"job": self._running}

    def leftovers(self) -> Sequence[str]:
        """Nothing stays up."""
        return ()


def per_trial(deploy: Deploy) -> AbstractContextManager[System]:
    """What ``Engine.start`` returns if nothing is started before a trial: ``deploy`` starts the process of each."""
    return nullcontext(PerTrialSystem(deploy))
