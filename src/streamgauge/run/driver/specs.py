"""Specifications of the load driver, the collector and the null consumer, and the requests of the controller.

A specification without secrets is a file in the folder of the trial. Its path, the token of the control channel and
what the transport needs come through the standard input of the process.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from streamgauge.model.profile import LoadProfile
from streamgauge.model.streams import Position, StreamPartition
from streamgauge.model.units import SECOND
from streamgauge.processes.control import ControlClient, Json, new_token
from streamgauge.processes.spec import LineReady, ProcessSpec
from streamgauge.store.durable import replace_file
from streamgauge.transports.ledger import offsets_to_json

MILLI = 1_000_000


class Spec(BaseModel):
    """Base of the specifications: strict, frozen, stored as JSON in the folder of the trial."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    """The folder of the trial: the process writes its journals there."""
    transport: str
    """The name of the transport."""


class DriverSpec(Spec):
    """One load driver: its share of the partitions, its plans, and the limits on what may wait."""

    driver: int
    workload: str
    params: dict[str, Any]
    seed: int
    profiles: dict[str, LoadProfile]
    """The load of each stream, all partitions together."""
    horizon_ns: int
    """How long the plan is: the limit of the trial and its drain phase."""
    partition_count: int
    """Partitions of each stream, over all load drivers."""
    assigned: tuple[int, ...]
    """Those of this load driver."""
    send_interval_ns: int
    lookahead_ns: int = 50 * MILLI
    """How far ahead of its due time an event is made."""
    bound_events: int = 0
    bound_bytes: int = 4 << 30
    retry_ns: int = 10 * SECOND
    unthrottled_backlog: int = 0
    """For the maximum rate: send as fast as possible while fewer events than this wait; 0: send what is due."""
    wall_step_at_ns: int = 0
    """For tests of the supervision of clocks: step the wall clock of this process so long after the load began …"""
    wall_step_ns: int = 0
    """… by so much."""


class CollectorSpec(Spec):
    """The collector of a trial."""

    firing: str | None = None
    """The output column that identifies a window, such as ``window_end``; None: every row is a separate result."""
    identity: tuple[str, ...] = ()
    """The columns that distinguish outputs."""
    last_row_wins: bool = False
    """Whether a window may be emitted many times."""


class NullConsumerSpec(Spec):
    """The null consumer of a calibration: reads all events, or sends outputs if ``rows`` is the size of a batch."""

    streams: tuple[str, ...] = ()
    rows: int = 0


class SpecEnvelope(BaseModel):
    """What comes through the standard input of a child: where its specification is, and the secrets."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    spec: Path
    control: Path
    """The socket of the control channel."""
    token: str
    wire: dict[str, Any]
    """What the transport needs, such as addresses and secrets."""


S = TypeVar("S", bound=Spec)


def read_envelope(data: bytes, kind: type[S]) -> tuple[S, SpecEnvelope]:
    """The specification of this process, and its secrets."""
    envelope = SpecEnvelope.model_validate_json(data)
    return kind.model_validate_json(envelope.spec.read_bytes()), envelope


class ControlledProcess:
    """How to start a child with a control channel, and how to open the channel once it is ready."""

    def __init__(
        self, name: str, module: str, spec: Spec, wire: Mapping[str, Any], *, runtime: Path, cores: tuple[int, ...]
    ) -> None:
        slug = name.replace(" ", "-")
        path, self._token = spec.folder / f"{slug}.json", new_token()
        self._control = runtime / f"{slug}-{self._token[:6]}.control"
        replace_file(path, spec.model_dump_json(indent=1).encode(), durable=False)
        envelope = SpecEnvelope(spec=path, control=self._control, token=self._token, wire=dict(wire))
        self.process = ProcessSpec(
            name=name,
            argv=(sys.executable, "-m", module),
            cores=cores,
            ready=LineReady(),
            secret=envelope.model_dump_json(),
        )

    def connect(self, timeout: float = 10.0) -> ControlClient:
        """Its control channel; ``timeout`` is how many seconds a response may take."""
        return ControlClient(self._control, self._token, timeout)


def driver_process(
    spec: DriverSpec, wire: Mapping[str, Any], runtime: Path, cores: tuple[int, ...]
) -> ControlledProcess:
    """A load driver."""
    name = f"driver {spec.driver}"
    return ControlledProcess(name, "streamgauge.run.driver.generator", spec, wire, runtime=runtime, cores=cores)


def collector_process(
    spec: CollectorSpec, wire: Mapping[str, Any], runtime: Path, cores: tuple[int, ...]
) -> ControlledProcess:
    """The collector."""
    return ControlledProcess(
        "collector", "streamgauge.run.collector.collector", spec, wire, runtime=runtime, cores=cores
    )


def null_consumer_process(
    spec: NullConsumerSpec, wire: Mapping[str, Any], runtime: Path, cores: tuple[int, ...]
) -> ControlledProcess:
    """The null consumer."""
    return ControlledProcess(
        "null consumer", "streamgauge.run.calibrate.null_consumer", spec, wire, runtime=runtime, cores=cores
    )


class DriverControl:
    """The requests of the controller to one load driver."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def start(self, monotonic_ns: int, wall_ns: int) -> None:
        """The load begins at this moment of the monotonic clock; event 0 is due at ``wall_ns`` since 1970."""
        self._client.request("start", monotonic_ns=monotonic_ns, wall_ns=wall_ns)

    def status(self) -> Json:
        """The exact counts at this moment, and the phase."""
        return self._client.request("status")

    def position(self, position: Position) -> None:
        """How far the system under test is, if only its engine has the position."""
        started = None if position.started is None else offsets_to_json(position.started)
        self._client.request(
            "position", offsets=offsets_to_json(position.offsets), started=started, at_ns=position.at_ns
        )

    def end(self, at_ns: int) -> None:
        """Publish what is due before ``at_ns`` after the load began, the drain phase included, then nothing more."""
        self._client.request("end", at_ns=at_ns)

    def stop(self) -> None:
        """Publish nothing more from now on; what is in the queue stays there."""
        self._client.request("stop")

    def quit(self) -> None:
        """Write the last rows of the journals, and end."""
        self._client.request("quit")

    def close(self) -> None:
        """Close the channel."""
        self._client.close()


class CollectorControl:
    """The requests of the controller to the collector."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    def start(self, monotonic_ns: int, wall_ns: int) -> None:
        """The load begins at this moment."""
        self._client.request("start", monotonic_ns=monotonic_ns, wall_ns=wall_ns)

    def set_output_schema(self, columns: tuple[tuple[str, str], ...]) -> None:
        """Outputs have these columns, not those of the workload."""
        self._client.request("schema", columns=[list(column) for column in columns])

    def status(self) -> Json:
        """The counts so far, and sentences on outputs that cannot be read or counted."""
        return self._client.request("status")

    def finish(self, seconds: float) -> Json:
        """Count and write all that was committed; the counts. Nothing that is committed later is kept."""
        return self._client.request("finish", seconds)

    def quit(self, seconds: float) -> None:
        """Write the last rows of the journals, and end."""
        self._client.request("quit", seconds)

    def close(self) -> None:
        """Close the channel."""
        self._client.close()


def partitions_of(streams: tuple[str, ...], assigned: tuple[int, ...]) -> tuple[StreamPartition, ...]:
    """These partitions of every stream."""
    return tuple(StreamPartition(stream, number) for stream in streams for number in assigned)
