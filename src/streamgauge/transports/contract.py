"""The contract of a transport: how events reach a system under test, and how its outputs come back.

A transport is opened for a run (`OpenTransport`), and opens a channel for each trial (`Channel`). In a load driver it
is a `Publisher`, in the collector an `OutputSource`. The rest of the code does not depend on the transport.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
from pydantic import SecretStr

from streamgauge.install.requirements import Requirement
from streamgauge.model.facts import TransportFacts
from streamgauge.model.options import Options
from streamgauge.model.streams import StreamPartition
from streamgauge.processes.spec import Host, RunningProcess
from streamgauge.transports.ledger import Confirmation, Ledger
from streamgauge.workloads.contract import OutputContract, Stream

Json = dict[str, Any]


class TransportError(RuntimeError):
    """A transport cannot do its work: what failed, and where, is in the message."""


class EventBatch(Protocol):
    """Ready events of one partition: an Arrow batch, or the bytes that go to a broker."""

    @property
    def num_rows(self) -> int: ...

    def slice(self, offset: int, length: int) -> "EventBatch":
        """Some of them, without copying."""


class BatchSource(Protocol):
    """Makes the events of one stream."""

    def batch(self, partition: int, start: int, stop: int) -> EventBatch:
        """The events at the offsets ``start … stop − 1`` of a partition."""


class PartitionSource(Protocol):
    """Makes the events of one stream as Arrow batches."""

    @property
    def name(self) -> str:
        """The stream."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def partitions(self) -> int: ...

    def batch(self, partition: int, start: int, stop: int) -> pa.RecordBatch:
        """The events at the offsets ``start … stop − 1`` of a partition."""


Parts = Sequence[tuple[StreamPartition, Any]]
"""What becomes due together: events of partitions."""


@dataclass(frozen=True, slots=True)
class DriverShare:
    """What one load driver publishes, and the limits on what may wait."""

    streams: tuple[Stream, ...]
    partitions: tuple[StreamPartition, ...]
    """Those that this load driver publishes."""
    partition_count: int
    """Partitions of each stream, over all load drivers."""
    bound_events: int
    bound_bytes: int
    retry_ns: int
    """How long a stream that the system under test closed early may wait until it is read again."""
    lock: Lock
    """Guards the ledger against the threads of a server and of the journals."""
    monotonic_ns: Callable[[], int]
    elapsed_ns: Callable[[], int]
    """Nanoseconds since the load began; negative before."""


class Publisher(Protocol):
    """Sends the events of one load driver. It belongs to the thread that sends; its ledger is shared under the lock."""

    @property
    def ledger(self) -> Ledger[Any]: ...

    @property
    def close_delay_ns(self) -> int:
        """How long after the end of a second its acknowledgements may still arrive at the load driver."""

    def encode(self, source: PartitionSource) -> BatchSource:
        """Makes events in the form in which they are sent."""

    def publish(self, parts: Parts, until_us: int) -> bool:
        """Send everything due before ``until_us``. False: a bound is reached, and nothing was sent."""

    def wait(self, seconds: float) -> None:
        """Wait at most so long, and move meanwhile what is being sent."""

    def flush(self) -> None:
        """Return when all events are published."""

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """When the load begins, on the monotonic clock and on the wall clock of this load driver."""

    def take_confirmations(self) -> tuple[list[Confirmation], int]:
        """What a broker has confirmed since the last call, and the largest skew of partitions in nanoseconds.

        The caller holds the lock.
        """

    def status(self) -> Json:
        """What the controller needs beside the counts: events ``sent``, and ``clock`` bounds if there is a broker."""

    def close(self) -> None: ...


class OutputRows(NamedTuple):
    """Outputs of one query, with the columns ``emitted_us`` and ``batch``."""

    query: str
    rows: pa.Table
    unread: int = 0
    """Further outputs that exist and were not read, in a sample."""


class OutputsUnreadable(ValueError):
    """Outputs are not in the format of the trial; the message gives the reason. The system under test wrote them."""


class OutputSource(Protocol):
    """The outputs of a trial, as the collector gets them."""

    @property
    def final(self) -> bool:
        """Whether what ``poll`` returns counts. Otherwise it is a sample, and ``drain`` returns everything again."""

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """When the load begins, on the monotonic clock and on the wall clock."""

    def set_schema(self, schema: pa.Schema) -> None:
        """The columns of the outputs, if they are not those of the workload."""

    def poll(self, seconds: float) -> Sequence[OutputRows]:
        """The newest outputs; waits at most so long for some. Raises OutputsUnreadable or TransportError."""

    def drain(self) -> Iterator[OutputRows]:
        """The outputs that are left once no more come; all of them if ``poll`` returned samples."""

    def behind(self) -> int:
        """Batches of outputs that wait to be returned by ``poll``."""

    def status(self) -> Json:
        """Counts: ``committed`` outputs and more."""

    def close(self) -> None: ...


class Available(NamedTuple):
    """What can be read now. ``starts`` are the offsets that are acknowledged."""

    offsets: dict[StreamPartition, int]
    starts: dict[StreamPartition, int]
    due_us: int | None = None
    """The due time until which it is complete, in µs since 1970; None: not known before it is read."""


class EventReader(Protocol):
    """Reads the events of a trial in a process of an engine."""

    @property
    def acknowledges(self) -> bool:
        """Whether ``acknowledge`` reaches the load drivers; otherwise the engine reports its position."""

    def available(self, most: int | None = None) -> Available:
        """What can be read; with ``most`` about so many unacknowledged events, at least one send interval."""

    def read(self, partition: StreamPartition, start: int, stop: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The events ``start … stop − 1`` of a partition, and when they were ingested, in µs since 1970."""

    def complete_until(self, available: Available) -> int | None:
        """The due time until which all events were read, once everything available is read; None: not known yet."""

    def acknowledge(self, offsets: Mapping[StreamPartition, int]) -> None:
        """Everything below these offsets is finished."""

    def disconnect(self, partition: StreamPartition, start: int, stop: int) -> None:
        """Begin to read a range and close the connection, as a system does that fails."""

    def close(self) -> None: ...


class OutputWriter(Protocol):
    """Writes outputs in a process of an engine."""

    def put(
        self,
        query: str,
        batch: int,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        partition: int = 0,
        attempt: int = 0,
        commit: bool = False,
    ) -> int:
        """Write outputs as they are made; returns when all have arrived. Their number."""

    def status(self) -> Json: ...

    def close(self) -> None: ...


@runtime_checkable
class Endpoints(Protocol):
    """Where the system under test reads events and writes outputs."""

    @property
    def transport(self) -> str: ...

    @property
    def partitions(self) -> int:
        """Partitions of each stream."""

    def wire(self) -> Json:
        """As JSON, secrets included: for the standard input or the control channel of a child, nowhere else."""


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """What a trial needs of its channel."""

    trial: int
    streams: tuple[Stream, ...]
    output: OutputContract
    partitions: int
    drivers: int = 1
    updates: bool = False
    """Whether a window may be emitted many times."""


class Channel(Protocol):
    """The way of one trial: empty queues or fresh topics."""

    @property
    def endpoints(self) -> Endpoints: ...

    def driver_wire(self, driver: int) -> Json:
        """What a load driver needs, with secrets."""

    def collector_wire(self) -> Json:
        """What the collector needs, with secrets."""

    def audit(self, sent: int, acknowledged: int) -> Sequence[str]:
        """Where the numbers of events that were sent, acknowledged and stored differ."""

    def clock_bounds(self) -> Json | None:
        """How far the clock that stamps outputs is from that of the load driver; None: it is the same clock."""

    def facts(self) -> TransportFacts: ...


class OpenTransport(Protocol):
    """A transport while a run lasts."""

    def channel(self, spec: ChannelSpec) -> AbstractContextManager[Channel]:
        """Empty queues or fresh topics for a trial."""

    def processes(self) -> Mapping[str, Sequence[RunningProcess]]:
        """Its processes by role, for the monitor."""

    def failure(self) -> str:
        """Why it cannot be used any more; empty if it can. It makes a trial INVALID."""


Secrets = Mapping[str, SecretStr]
"""The secrets of an external system by the environment variables that contained them."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing that a run has left on an external system."""

    run: str
    name: str
    summary: str
    """Name and size, for one line of text."""
    document: Mapping[str, Any]
    """The same as data for ``--json``."""


class Leftovers(Protocol):
    """What runs have left on an external system. Its methods raise TransportError."""

    @property
    def place(self) -> str:
        """The system, for a sentence: the cluster at broker:9092."""

    @property
    def noun(self) -> str:
        """What one thing is, for a sentence: topic."""

    def runs(self) -> Sequence[str]:
        """The ids of the runs that have left something."""

    def of_runs(self, runs: Collection[str]) -> Sequence[Leftover]:
        """All that these runs have left."""

    def delete(self, leftovers: Sequence[Leftover]) -> None:
        """Delete these, and nothing else."""


@runtime_checkable
class Transport(Protocol):
    """How events reach a system under test and how its outputs come back."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """Its name in a sentence."""

    @property
    def summary(self) -> str: ...

    @property
    def options(self) -> type[Options]: ...

    @property
    def formats(self) -> tuple[str, ...]:
        """The record formats that it supports; empty: events are not encoded."""

    @property
    def broker(self) -> bool:
        """Whether a broker outside the load driver stores events and outputs: it can be late, and it stamps records."""

    @property
    def exact_offsets(self) -> bool:
        """Whether every event and output is counted at the transport itself, so that a disturbance never explains
        outputs that are lost, duplicate or wrong. They are then always a fault of the system under test."""

    @property
    def queue_counts_reads(self) -> bool:
        """Whether the load driver itself measures what the system under test has begun to process."""

    @property
    def allowance_ns(self) -> int:
        """How long windows wait by default for the slowest partition: partitions are not read up to one moment."""

    @property
    def usual_interval_ns(self) -> int:
        """From one send of the generator to the next, if micro-batches collect events anyway."""

    @property
    def delay_probe_rate(self) -> float:
        """Events per second at which a calibration shows the send delay."""

    @property
    def collector_limits(self) -> bool:
        """Whether outputs pass the collector while the load lasts, so that it can be the limit."""

    @property
    def unthrottled_per_interval(self) -> int:
        """Events of one send interval if the maximum rate is measured."""

    def send_interval_ns(self, load: float, partitions: int, latency: int) -> int:
        """The send interval for a system that processes events as they arrive.

        ``latency`` is the tightest objective on one, in nanoseconds; 0 if there is none.
        """

    @property
    def start_seconds(self) -> float:
        """The estimated time to start it at the beginning of a run, for ``plan``."""

    def resolve(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the transport's own options
        """The options from their resolved values, as experiments and trials store them."""

    def requirements(self, options: Any) -> Sequence[Requirement]:  # noqa: ANN401
        """What must be installed or downloaded before a run."""

    def secret_variables(self, options: Any) -> Sequence[str]:  # noqa: ANN401
        """The environment variables that contain secrets."""

    def check(self, options: Any, secrets: Secrets) -> Sequence[str]:  # noqa: ANN401
        """Problems that would prevent every trial, each a sentence with its fix: is the external system there?"""

    def external(self, options: Any) -> bool:  # noqa: ANN401
        """Whether it uses a system that the user runs, and starts nothing."""

    def leftovers(self, options: Any, secrets: Secrets) -> Leftovers | None:  # noqa: ANN401
        """What runs have left on the external system; None if there is no such system."""

    def identity(self, options: Any) -> str:  # noqa: ANN401
        """All that its rates depend on; calibrations are stored by it."""

    def calibrate_arguments(self, options: Any) -> tuple[str, ...]:  # noqa: ANN401
        """The arguments of ``streamgauge calibrate`` for these options."""

    def open(self, options: Any, run: str, host: Host, secrets: Secrets) -> AbstractContextManager[OpenTransport]:  # noqa: ANN401
        """Open it for a run; brokers start at the first channel, on the cores of the host."""

    def publisher(self, wire: Json, share: DriverShare) -> Publisher:
        """In a load driver: what sends its events."""

    def outputs(self, wire: Json) -> OutputSource:
        """In the collector: where outputs come from."""

    def endpoints(self, wire: Json) -> Endpoints:
        """In a process of an engine: what ``Endpoints.wire`` returned."""

    def reader(self, wire: Json) -> EventReader:
        """In a process of an engine: what reads the events. ``wire`` is that of the endpoints."""

    def writer(self, wire: Json, schema: pa.Schema) -> OutputWriter:
        """In a process of an engine: what writes outputs of this schema."""
