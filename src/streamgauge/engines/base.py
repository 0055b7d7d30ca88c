"""The contract of an engine. A plug-in is one object that satisfies it and one entry point."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from streamgauge.model.seconds import Seconds
from streamgauge.model.trial import Outcome, Trial


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


class Imagination(Protocol):
    """A trial in virtual time, made as far as it is looked at."""

    def seconds(self) -> Iterator[Seconds]:
        """Stretches of seconds, one after the other, up to the trial's limit or its own end."""

    def outcome(self, stop: int) -> Outcome:
        """How the trial ended, if it was stopped after second ``stop``."""
