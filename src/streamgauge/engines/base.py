"""The contract of an engine. A plug-in is one object that satisfies it and one entry point."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Outcome, Trial
from streamgauge.transport.child import Running, Starts


class Options(BaseModel):
    """Options of an engine: unknown keys are errors, values frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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

    def describe(self, options: dict[str, Any]) -> dict[str, Any]:
        """Versions and effective settings, for the manifest."""


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


class Deployment(Protocol):
    """A system under test that runs and consumes."""

    def alive(self) -> bool: ...

    def processes(self) -> tuple[Running, ...]:
        """Its children, for the monitor and for the last lines of their logs."""

    def probe(self) -> dict[str, Any]:
        """The engine's own numbers: an explanation, never the measurement."""

    def describe(self) -> dict[str, Any]:
        """Versions and effective settings, for the manifest."""


@runtime_checkable
class RealEngine(Engine, Protocol):
    """An engine with processes of its own, on the real queue."""

    def deploy(self, trial: Trial, endpoints: Endpoints, starts: Starts) -> AbstractContextManager[Deployment]:
        """Start it; yields once it consumes. Leaving the context ends it."""

    def trigger(self, options: dict[str, Any]) -> int:
        """Nanoseconds between two micro-batches at most while it keeps up, for the length of the tail."""


class Imagination(Protocol):
    """A trial in virtual time, made as far as it is looked at."""

    def seconds(self) -> Iterator[Seconds]:
        """Stretches of seconds, one after the other, up to the trial's limit or its own end."""

    def outcome(self, stop: int) -> Outcome:
        """How the trial ended, if it was stopped after second ``stop``."""
