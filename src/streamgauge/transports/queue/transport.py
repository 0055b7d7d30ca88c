"""The queue: events wait in the memory of the load drivers, as in Karimov et al. §III-A; no broker is involved."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex, token_urlsafe
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamgauge.install.requirements import Requirement
from streamgauge.model.facts import TransportFacts
from streamgauge.model.options import Options
from streamgauge.processes.clock import sleep
from streamgauge.processes.spec import Host, RunningProcess
from streamgauge.transports.contract import (
    BatchSource,
    Channel,
    ChannelSpec,
    DriverShare,
    Endpoints,
    EventReader,
    Json,
    Leftovers,
    OpenTransport,
    OutputSource,
    OutputWriter,
    PartitionSource,
    Parts,
    Publisher,
    Secrets,
)
from streamgauge.transports.ledger import Confirmation

if TYPE_CHECKING:
    pass

NAME = "queue"
MILLI = 1_000_000
SEND_INTERVAL = 5 * MILLI
_FINEST, _FINE = MILLI, 2 * MILLI
_PER_LATENCY = 50
"""An event waits half a send interval on average: 1 % of a latency that is so many intervals."""


def fine_interval(usual: int, least: int, latency: int) -> int:
    """The send interval for a system that processes events as they arrive, in whole halves of a millisecond.

    ``latency`` is the tightest objective on one, 0 if there is none. An interval without events sends nothing, so a
    low load can have the finest one.
    """
    wanted = latency // _PER_LATENCY if latency else _FINE
    return min(usual, max(wanted, least, _FINEST)) // (MILLI // 2) * (MILLI // 2)


class QueueOptions(Options):
    """The queue has no options."""


@dataclass(frozen=True, slots=True)
class QueueEndpoints:
    """The queues of the load drivers, and the collector."""

    queues: tuple[str, ...]
    """One per load driver, like ``grpc+unix:///…/queue-0.sock``."""
    outputs: str
    token: str
    partitions: int
    transport: str = NAME

    def wire(self) -> Json:
        """As JSON, the token included."""
        return {
            "transport": self.transport,
            "queues": list(self.queues),
            "outputs": self.outputs,
            "token": self.token,
            "partitions": self.partitions,
        }


class QueueChannel:
    """The empty queues of one trial: the load drivers make them when they start."""

    def __init__(self, runtime: Path, spec: ChannelSpec) -> None:
        name = f"{spec.trial}-{token_hex(2)}"
        queues = [f"grpc+unix://{runtime}/queue-{name}-{driver}.sock" for driver in range(spec.drivers)]
        outputs = f"grpc+unix://{runtime}/outputs-{name}.sock"
        self.endpoints: Endpoints = QueueEndpoints(tuple(queues), outputs, token_urlsafe(24), spec.partitions)

    def driver_wire(self, driver: int) -> Json:
        """Where a load driver serves its queue."""
        wire = self.endpoints.wire()
        return {"location": wire["queues"][driver], "token": wire["token"]}

    def collector_wire(self) -> Json:
        """Where the collector receives outputs."""
        wire = self.endpoints.wire()
        return {"location": wire["outputs"], "token": wire["token"]}

    def audit(self, sent: int, acknowledged: int) -> Sequence[str]:
        """The load driver is the queue, so there is no second count."""
        return ()

    def clock_bounds(self) -> Json | None:
        """The collector stamps outputs on the clock of the load driver."""
        return None

    def facts(self) -> TransportFacts:
        """Nothing more than the name."""
        return TransportFacts(NAME, "")


class OpenQueue:
    """The queue of a run: it has no process and keeps nothing between trials."""

    def __init__(self, runtime: Path) -> None:
        self._runtime = runtime

    @contextmanager
    def channel(self, spec: ChannelSpec) -> Iterator[Channel]:
        """Empty queues for a trial."""
        yield QueueChannel(self._runtime, spec)

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """None beside the load drivers."""
        return {}

    def failure(self) -> str:
        """There is nothing that can fail between trials."""
        return ""


class QueuePublisher:
    """Into the queue in this process."""

    close_delay_ns = 0

    def __init__(self, wire: Mapping[str, Any], share: DriverShare) -> None:
        from streamgauge.model.streams import schema_of  # noqa: PLC0415
        from streamgauge.transports.queue.buffer import QueueBuffer  # noqa: PLC0415 - Arrow Flight only where it serves
        from streamgauge.transports.queue.server import QueueServer  # noqa: PLC0415

        self.ledger: QueueBuffer = QueueBuffer(share.partitions, share.bound_events, share.bound_bytes, share.retry_ns)
        self._lock = share.lock
        self._server = QueueServer(
            str(wire["location"]),
            self.ledger,
            schemas={stream.name: schema_of(stream.schema) for stream in share.streams},
            token=str(wire["token"]),
            lock=share.lock,
            now_ns=share.elapsed_ns,
        )

    def encode(self, source: PartitionSource) -> BatchSource:
        """As they are made: Arrow batches."""
        return source

    def publish(self, parts: Parts, until_us: int) -> bool:
        """Put what becomes due into the queue."""
        with self._lock:
            return self.ledger.publish(parts, until_us)

    def wait(self, seconds: float) -> None:
        """Sleep."""
        sleep(seconds)

    def flush(self) -> None:
        """What is in the queue is published."""

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """There is no other clock to compare with."""

    def take_confirmations(self) -> tuple[list[Confirmation], int]:
        """There is no broker, and what becomes due together is put into all partitions together."""
        return [], 0

    def status(self) -> Json:
        """All that was sent is in the queue."""
        return {"sent": self.ledger.sent}

    def close(self) -> None:
        """Serve no longer."""
        self._server.shutdown()


class QueueTransport:
    """Events wait in the memory of the load drivers."""

    name = NAME
    title = "the queue"
    summary = "a queue in the memory of the load driver"
    options: type[Options] = QueueOptions
    formats: tuple[str, ...] = ()
    broker = False
    exact_offsets = True
    queue_counts_reads = True
    allowance_ns = 0
    usual_interval_ns = SEND_INTERVAL
    unthrottled_per_interval = 100_000
    delay_probe_rate = 1e6
    collector_limits = True

    def send_interval_ns(self, load: float, partitions: int, latency: int) -> int:
        """As fine as the latency needs."""
        return fine_interval(SEND_INTERVAL, 0, latency)

    start_seconds = 0.0

    def resolve(self, values: Mapping[str, Any]) -> QueueOptions:
        """There are no options."""
        return QueueOptions()

    def secret_variables(self, options: QueueOptions) -> Sequence[str]:
        """None."""
        return ()

    def check(self, options: QueueOptions, secrets: Secrets) -> Sequence[str]:
        """Nothing can be missing."""
        return ()

    def external(self, options: QueueOptions) -> bool:
        """It is in the load driver."""
        return False

    def leftovers(self, options: QueueOptions, secrets: Secrets) -> Leftovers | None:
        """Nothing stays."""
        return None

    def requirements(self, options: QueueOptions) -> Sequence[Requirement]:
        """Nothing."""
        return ()

    def identity(self, options: QueueOptions) -> str:
        """Its options change no rate."""
        return self.name

    def calibrate_arguments(self, options: QueueOptions) -> tuple[str, ...]:
        """The queue is the default."""
        return ()

    @contextmanager
    def open(self, options: QueueOptions, run: str, host: Host, secrets: Secrets) -> Iterator[OpenTransport]:
        """Nothing is started."""
        yield OpenQueue(host.runtime)

    def publisher(self, wire: Json, share: DriverShare) -> Publisher:
        """The server of the queue, in the process of the load driver."""
        return QueuePublisher(wire, share)

    def outputs(self, wire: Json) -> OutputSource:
        """The server that receives outputs, in the process of the collector."""
        from streamgauge.transports.queue.outputs import QueueOutputs  # noqa: PLC0415 - Arrow Flight only where it serves

        return QueueOutputs(str(wire["location"]), str(wire["token"]))

    def endpoints(self, wire: Json) -> Endpoints:
        """What ``QueueEndpoints.wire`` returned."""
        return QueueEndpoints(
            tuple(map(str, wire["queues"])), str(wire["outputs"]), str(wire["token"]), int(wire["partitions"])
        )

    def reader(self, wire: Json) -> EventReader:
        """Reads from the queues of all load drivers."""
        from streamgauge.transports.queue.reader import QueueReader  # noqa: PLC0415 - Arrow Flight only where it reads

        return QueueReader([str(each) for each in wire["queues"]], str(wire["token"]))

    def writer(self, wire: Json, schema: pa.Schema) -> OutputWriter:
        """Sends outputs to the collector."""
        from streamgauge.transports.queue.outputs import QueueOutputWriter  # noqa: PLC0415

        return QueueOutputWriter(str(wire["outputs"]), str(wire["token"]))


queue = QueueTransport()
