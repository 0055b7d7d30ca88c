"""What the controller tells a driver instance, and the way it says so."""

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyarrow import flight
from pydantic import BaseModel, ConfigDict

from streamgauge.model.profile import LoadProfile
from streamgauge.model.units import SECOND
from streamgauge.processes.spec import Child, LineReady
from streamgauge.run.driver.send_schedule import MILLI, TICK
from streamgauge.store.durable import replace_file
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.queue.reader import call
from streamgauge.transports.queue.server import CONTROL, SUT, options


class Order(BaseModel):
    """Base of the orders: strict, frozen, kept as JSON in the trial's folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DriveOrder(Order):
    """One driver instance: its share of the partitions, its plan and its queue."""

    driver: int
    endpoint: str
    folder: Path
    """The trial's folder: the driver writes its journals there."""
    workload: str
    params: dict[str, Any]
    seed: int
    profiles: dict[str, LoadProfile]
    """The load of each stream, all partitions together."""
    horizon_ns: int
    """How far the plan goes: the trial's limit and its tail."""
    partitions: int
    """Partitions of each stream, over all drivers."""
    mine: tuple[int, ...]
    """Those of this driver."""
    tick_ns: int = TICK
    ahead_ns: int = 50 * MILLI
    bound_events: int = 0
    bound_bytes: int = 4 << 30
    retry_ns: int = 10 * SECOND
    flat_out: int = 0
    """For the ceiling: tick as fast as it goes, as long as no more than so many events wait in the queue."""
    kafka: dict[str, Any] | None = None
    """Options of Kafka, where events go there; where it is and what opens it comes through standard input."""
    wall_step_at_ns: int = 0
    """For tests of the clock's supervision: step this process's wall clock so long after the load began …"""
    wall_step_ns: int = 0
    """… by so much."""


class CollectOrder(Order):
    """The collector of a trial."""

    endpoint: str
    folder: Path
    """The trial's folder: outputs and counts are written there."""
    firing: str | None = None
    """The output column that tells firings apart, such as ``window_end``; None: every row is its own."""
    columns: tuple[tuple[str, str], ...] = ()
    """Columns of an output, where they are read from Kafka."""
    identity: tuple[str, ...] = ()
    """The columns that tell outputs apart."""
    last_row_wins: bool = False
    """Whether a window may be put out many times."""


class OppositeOrder(Order):
    """The other side for calibration: reads all queues, or sends outputs if ``rows`` says how many to a batch."""

    endpoints: tuple[str, ...]
    folder: Path
    rows: int = 0


class Tokens(BaseModel):
    """The secrets of a trial's servers, made new for every run; they travel through standard input alone."""

    model_config = ConfigDict(frozen=True)

    sut: str
    control: str

    @classmethod
    def new(cls) -> "Tokens":
        return cls(sut=secrets.token_urlsafe(24), control=secrets.token_urlsafe(24))

    def roles(self) -> dict[str, str]:
        return {SUT: self.sut, CONTROL: self.control}


class Errand(BaseModel):
    """What comes through a child's standard input: where its order lies, and the secrets."""

    order: Path
    tokens: Tokens
    kafka: dict[str, Any] | None = None
    """The trial's topics, as ``KafkaEnds.wire`` says them."""

    @property
    def ends(self) -> KafkaEnds | None:
        """The trial's topics; None: it is on the queue."""
        return KafkaEnds.read(self.kafka) if self.kafka else None


def own_child(
    name: str,
    module: str,
    order: Order,
    path: Path,
    *,
    tokens: Tokens,
    cores: tuple[int, ...] = (),
    ends: KafkaEnds | None = None,
) -> Child:
    """A child that runs a module of ours: its order goes into a file, the secrets to its standard input."""
    replace_file(path, order.model_dump_json(indent=1).encode(), durable=False)
    return Child(
        name=name,
        argv=(sys.executable, "-m", module),
        cores=cores,
        ready=LineReady(),
        secret=Errand(order=path, tokens=tokens, kafka=ends.wire() if ends else None).model_dump_json(),
    )


def driver_child(
    order: DriveOrder, tokens: Tokens, cores: tuple[int, ...] = (), ends: KafkaEnds | None = None
) -> Child:
    """The driver instance as a child for the launcher."""
    path, name = order.folder / f"driver-{order.driver}.json", f"driver {order.driver}"
    return own_child(name, "streamgauge.run.driver.generator", order, path, tokens=tokens, cores=cores, ends=ends)


def collector_child(
    order: CollectOrder, tokens: Tokens, cores: tuple[int, ...] = (), ends: KafkaEnds | None = None
) -> Child:
    """The collector as a child for the launcher."""
    path = order.folder / "collector.json"
    return own_child(
        "collector", "streamgauge.run.collector.collector", order, path, tokens=tokens, cores=cores, ends=ends
    )


def opposite_child(
    order: OppositeOrder, tokens: Tokens, cores: tuple[int, ...] = (), ends: KafkaEnds | None = None
) -> Child:
    """The other side as a child for the launcher."""
    path = order.folder / "opposite.json"
    return own_child(
        "other side", "streamgauge.run.calibrate.null_consumer", order, path, tokens=tokens, cores=cores, ends=ends
    )


class Line:
    """The control channel to a child of ours."""

    def __init__(self, endpoint: str, tokens: Tokens, timeout: float = 10.0) -> None:
        self._client = flight.FlightClient(endpoint)
        self._options = options(tokens.control, timeout)

    def start(self, monotonic_ns: int, wall_ns: int) -> None:
        """The load begins at this moment of the monotonic clock; event 0 is due at ``wall_ns`` since 1970."""
        call(self._client, self._options, "start", monotonic_ns=monotonic_ns, wall_ns=wall_ns)

    def status(self) -> dict[str, Any]:
        """The exact counts at this moment, and a driver's phase."""
        return call(self._client, self._options, "progress")

    def quit(self) -> None:
        """Write the journals' last rows, and end."""
        call(self._client, self._options, "quit")

    def close(self) -> None:
        self._client.close()


class DriverLine(Line):
    """The control channel to one driver instance."""

    def end(self, at_ns: int) -> None:
        """Publish what is due before ``at_ns`` after the load began (the tail with it), then nothing more."""
        call(self._client, self._options, "end", at_ns=at_ns)

    def stop(self) -> None:
        """Publish nothing more from now on; what is in the queue stays there."""
        call(self._client, self._options, "stop")


class CollectorLine(Line):
    """The control channel to the collector."""

    def __init__(self, endpoint: str, tokens: Tokens, timeout: float = 90.0) -> None:
        """Longer than the minute that the last outputs may take to the disk."""
        super().__init__(endpoint, tokens, timeout)

    def expect(self, columns: Sequence[Sequence[str]]) -> dict[str, Any]:
        """On Kafka: outputs have these columns, where they are not the workload's own."""
        return call(self._client, self._options, "columns", columns=columns)

    def faults(self) -> dict[str, Any]:
        """Sentences on outputs that cannot be read (``unreadable``) or counted (``unstamped``)."""
        return call(self._client, self._options, "faults")

    def finish(self) -> dict[str, Any]:
        """Count and write all that was committed; the counts. Nothing that is committed later is kept."""
        return call(self._client, self._options, "finish")
