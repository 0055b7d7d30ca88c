"""A child process, described. Engines and transports describe; only ``run``'s launcher starts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from streamgauge.model.units import SECOND

_SHOWN = 8
"""Lines of a log that are shown with an error."""


@dataclass(frozen=True, slots=True)
class Started:
    """Ready as soon as it runs."""

    text: str = "start"


@dataclass(frozen=True, slots=True)
class FileReady:
    """Ready when this file is there."""

    path: Path

    @property
    def text(self) -> str:
        return f"make the file {self.path.name}"


@dataclass(frozen=True, slots=True)
class LineReady:
    """Ready when its log has a line that starts with these words."""

    words: str = "ready"

    @property
    def text(self) -> str:
        return f"say {self.words}"


@dataclass(frozen=True, slots=True)
class PortReady:
    """Ready when it accepts connections on this port of this machine."""

    port: int
    host: str = "127.0.0.1"

    @property
    def text(self) -> str:
        return f"accept connections on port {self.port}"


@dataclass(frozen=True, slots=True)
class CallReady:
    """Ready when the function says so. ``text`` completes "it did not …"."""

    ask: Callable[[], bool]
    text: str = "become ready"


Readiness = Started | FileReady | LineReady | PortReady | CallReady


@dataclass(frozen=True, slots=True)
class Child:
    """A process to start: what, where, and how to tell that it is ready.

    ``secret`` goes to its standard input, and is in no listing, file or environment.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    ready: Readiness = Started()
    deadline: int = 20 * SECOND
    grace: int = 2 * SECOND
    """How long it may take to end by itself after SIGTERM."""
    secret: str = field(default="", repr=False)
    folder: Path | None = None
    """Where it runs; None: where the controller runs."""
    scratch: Path | None = None
    """A folder that lives as long as it does: removed at its end, also after kill -9 of the controller."""


class LaunchError(RuntimeError):
    """A child did not become ready or could not be used: the sentence names it and why, ``log`` is the end of its log.

    As text it is both.
    """

    def __init__(self, sentence: str, log: Sequence[str] = ()) -> None:
        lines = "; last lines of its log:\n  " + "\n  ".join(log[-_SHOWN:]) if log else ""
        super().__init__(sentence + lines)
        self.sentence, self.log = sentence, tuple(log)


class Running(Protocol):
    """A child that was started."""

    @property
    def pid(self) -> int:
        """Its process, which leads a session and group of its own."""

    @property
    def guard(self) -> int:
        """The process above it: all that the child ever starts is a descendant of this one."""

    def alive(self) -> bool: ...

    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""

    def tail(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines of its log."""

    def stop(self) -> None:
        """SIGTERM, its grace, SIGKILL, to it and all that it started; waits until they are gone."""


class Starts(Protocol):
    """What engines are handed: the one place that starts children."""

    @property
    def runtime(self) -> Path:
        """The folder for sockets and shared memory, removed with the run."""

    def start(self, child: Child, logs: Path) -> Running:
        """Start it and wait until it is ready; raises with the last lines of its log if it does not become so."""
