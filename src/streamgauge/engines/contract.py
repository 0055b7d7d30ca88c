"""The contract of an engine. A plug-in is one object that satisfies it and one entry point."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from streamgauge.install.jars import Wanted
from streamgauge.model.experiment import Dimension, Span, TransportChoice, WorkloadChoice
from streamgauge.model.facts import EngineFacts, ProbeResult
from streamgauge.model.options import Options as Options  # noqa: PLC0414 - engines of other packages import it from here
from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Outcome, Trial
from streamgauge.processes.spec import Running, Starts
from streamgauge.transports.kafka.cluster import KafkaEnds


@runtime_checkable
class Engine(Protocol):
    """A system under test."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def options(self) -> type[Options]: ...

    @property
    def workloads(self) -> frozenset[str] | None:
        """Names of the workloads it implements; None means any."""

    def check(self, options: dict[str, Any]) -> Sequence[str]:
        """Problems that can be told before any minute is spent, each a sentence with its fix."""

    def describe(self, options: dict[str, Any]) -> EngineFacts:
        """Versions and effective settings, for the manifest."""


def transports(engine: Engine) -> frozenset[str]:
    """How events can come to an engine: what it says itself as ``transports``, else by the queue alone."""
    said: frozenset[str] = getattr(engine, "transports", frozenset({"queue"}))
    return said


def scales(engine: Engine) -> bool:
    """Whether an engine can be deployed on several instances: what it declares as ``scales``, else it cannot."""
    return bool(getattr(engine, "scales", False))


def jars_of(engine: Engine, options: dict[str, Any], transport: str) -> frozenset[Wanted]:
    """The sets of jars that an engine needs to read from a transport: what it returns as ``jars``, else none."""
    jars: Callable[[dict[str, Any], str], frozenset[Wanted]] | None = getattr(engine, "jars", None)
    return jars(options, transport) if jars else frozenset()


@dataclass(frozen=True, slots=True)
class Conditions:
    """What an experiment asks of an engine beside its options."""

    transport: TransportChoice = TransportChoice()
    workload: str = ""
    partitions: int = 0
    """Of each stream; 0: as many as the system under test has cores."""
    params: tuple[dict[str, Any], ...] = ()
    """The workload's parameters: one set, or one for each value of a parameter that is searched."""
    ranged: str = ""
    """The parameter that is searched over a range, whose ends ``params`` has; empty if none is."""


def conditions(
    transport: TransportChoice, workload: WorkloadChoice, partitions: int, searched: tuple[Dimension, Span] | None
) -> Conditions:
    """What an experiment asks of its engines; ``searched`` is the parameter that is searched and its values."""
    if searched is None:
        return Conditions(transport, workload.name, partitions, (workload.params,))
    dimension, span = searched
    whole = dimension.unit in ("count", "duration")
    values = [int(value) if whole else value for value in span.between or span.values]
    cases = tuple(workload.params | {dimension.name: value} for value in values)
    return Conditions(transport, workload.name, partitions, cases, dimension.name if span.between else "")


def unsuited(engine: Engine, options: dict[str, Any], conditions: Conditions) -> Sequence[str]:
    """What an engine cannot do under these conditions, each a sentence with its fix: what it says as ``suits``."""
    suits: Callable[[dict[str, Any], Conditions], Sequence[str]] | None = getattr(engine, "suits", None)
    return suits(options, conditions) if suits else ()


def too_fine(conditions: Conditions) -> Iterator[str]:
    """Window lengths that real events cannot have: their times are whole microseconds."""
    for params in conditions.params:
        for name in ("window", "slide", "watermark"):
            if params.get(name) and params[name] % 1000:
                yield f"workload.{name} must be a whole number of microseconds: event times have no finer unit"


@runtime_checkable
class VirtualEngine(Engine, Protocol):
    """An engine that runs in virtual time: no clock, no process."""

    def imagine(self, trial: Trial, work: float) -> "Imagination": ...


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a trial's events come from and where its outputs go. The token is a secret: standard input alone."""

    queues: tuple[str, ...]
    """One per driver instance, like ``grpc+unix:///…/queue-0.sock``."""
    outputs: str
    partitions: int
    folder: Path
    """The trial's folder: logs, temporary files and what the engine says of itself go here."""
    cores: tuple[int, ...]
    """The cores of the system under test; empty where nothing can be pinned."""
    token: str = field(repr=False, default="")
    kafka: KafkaEnds | None = None
    """Where events and outputs are on Kafka; None: on the queue. The drivers' doors count on both."""
    cache: Path | None = None
    """What was fetched once for this user, such as the jars of connectors; None: nothing of it is needed."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a system under test ended, where more is known than that its process is gone."""

    sentence: str
    trace: tuple[str, ...] = ()
    users: bool = False
    """Whether the user's own code is to blame."""


class Deployment(Protocol):
    """A system under test that runs and consumes."""

    def alive(self) -> bool: ...

    def failure(self) -> Failure | None:
        """Why it is not alive, if it knows more than the end of its process."""

    def processes(self) -> tuple[Running, ...]:
        """Its children, for the monitor and for the last lines of their logs."""

    def probe(self, since_ns: int, until_ns: int) -> ProbeResult:
        """The engine's own numbers between two moments of the monotonic clock: they explain, and never measure."""

    def describe(self) -> EngineFacts:
        """Versions and effective settings, for the manifest."""

    def end(self) -> None:
        """The trial is over: read and write nothing more. Leaving the context ends what is left."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """The watermark that a running job reports, where the job sets its own. Microseconds."""

    passed: int
    """Since 1970: all rows of windows that end there or before are out."""
    delay: int
    """How far it stays behind the newest event."""


def reported(system: Deployment) -> Watermark | None:
    """The watermark that a system reports as ``watermark``; None if it reports none."""
    ask: Callable[[], Watermark | None] | None = getattr(system, "watermark", None)
    return ask() if ask else None


class UsersCodeFailed(ValueError):
    """Code of the user's failed; the sentence says how, and ``trace`` where."""

    def __init__(self, sentence: str, trace: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.trace = tuple(trace)


Expected = Callable[[pa.Table, dict[str, Any]], pa.Table]
"""What a user says that their job must answer to these events and parameters."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What an engine's outputs are held to."""

    own: bool = False
    """A job of the user's own: the workload's reference answer is not the one to compare with."""
    expected: Expected | None = None
    """The user's own answer; without it such a job's outputs are not checked."""
    last_row_wins: bool = False
    """Update mode: a window may be put out many times, and its last row must be right."""
    keys: tuple[str, ...] = ()
    """Of a job of the user's own in update mode: the columns that tell rows of one window apart; empty: by default."""


@runtime_checkable
class RealEngine(Engine, Protocol):
    """An engine with processes of its own, on the real queue."""

    def deploy(self, trial: Trial, endpoints: Endpoints, starts: Starts) -> AbstractContextManager[Deployment]:
        """Start it; yields once it consumes. Leaving the context ends it."""

    def trigger(self, options: dict[str, Any]) -> int:
        """Nanoseconds between two micro-batches at most while it keeps up, for the length of the tail."""

    def promise(self, options: dict[str, Any]) -> Promise:
        """What its outputs are held to."""


def appends(engine: Engine, options: dict[str, Any]) -> bool:
    """Whether an engine puts out a window of the workload once, when it closes: what it says as ``appends``, else yes.

    It does not in update mode, and not for a user's own function, whose windows are unknown.
    """
    ask: Callable[[dict[str, Any]], bool] | None = getattr(engine, "appends", None)
    return ask(options) if ask else True


def trigger_of(engine: Engine | None, options: dict[str, Any]) -> int:
    """Nanoseconds between two micro-batches that the trigger of an engine makes; 0 where it has none."""
    ask: Callable[[dict[str, Any]], int] | None = getattr(engine, "trigger", None)
    return ask(options) if ask else 0


def continuous(engine: Engine | None, options: dict[str, Any]) -> bool:
    """Whether an engine takes events as they come, and not in micro-batches: what it returns as ``continuous``."""
    ask: Callable[[dict[str, Any]], bool] | None = getattr(engine, "continuous", None)
    return ask(options) if ask else False


@dataclass(frozen=True, slots=True)
class Warming:
    """How a system that stays up is warmed up before anything is judged, and whether many trials share it."""

    load: float
    limit: int
    """Nanoseconds at most; 0: not at all."""
    shared: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    """Options that differ while it warms up."""
    least: int = 0
    """Nanoseconds at least, where its cost is known to rest for a while before it falls further."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a standing system is built: its folder, its own cores, and those it may use until it is warm."""

    folder: Path
    cores: tuple[int, ...]
    boot: tuple[int, ...] = ()
    cache: Path | None = None
    """What was fetched once for this user, such as the jars of connectors; None on the queue, which needs none."""


class Standing(Protocol):
    """A system that stays up between trials: each trial is a fresh job in it."""

    def alive(self) -> bool: ...

    def processes(self) -> tuple[Running, ...]:
        """Its children; all that they start is below them."""

    def serve(self, trial: Trial, endpoints: Endpoints) -> AbstractContextManager[Deployment]:
        """Start the trial's job; yields once it consumes. Leaving the context ends the job and cleans up after it."""

    def left(self) -> tuple[str, ...]:
        """What the last job left behind in it, a sentence each; nothing: it is clean."""

    def stop(self) -> None:
        """End it."""


@runtime_checkable
class StandingEngine(RealEngine, Protocol):
    """An engine whose start is dear: one system of it may serve many trials."""

    def stand(self, options: dict[str, Any], ground: Ground, starts: Starts) -> Standing:
        """Start it; it is bound to its own cores once it is warm."""

    def warming(self, options: dict[str, Any]) -> Warming: ...


class Imagination(Protocol):
    """A trial in virtual time, made as far as it is looked at."""

    def seconds(self) -> Iterator[Seconds]:
        """Stretches of seconds, one after the other, up to the trial's limit or its own end."""

    def outcome(self, stop: int) -> Outcome:
        """How the trial ended, if it was stopped after second ``stop``."""
