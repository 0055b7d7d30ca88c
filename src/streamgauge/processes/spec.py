"""A child process as a value, and the host that starts it. Engines and transports describe; only the host starts."""

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
class LineReady:
    """Ready when its log has a line that begins with this prefix."""

    prefix: str = "ready"

    @property
    def text(self) -> str:
        return f"print {self.prefix}"


@dataclass(frozen=True, slots=True)
class PortReady:
    """Ready when it accepts connections on this port of this machine."""

    port: int
    host: str = "127.0.0.1"

    @property
    def text(self) -> str:
        return f"accept connections on port {self.port}"


Readiness = Started | LineReady | PortReady


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to start: the command, where it runs, and how to know that it is ready.

    ``secret`` goes to its standard input, and is in no process listing, file or environment.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    ready: Readiness = Started()
    deadline: int = 20 * SECOND
    stop_timeout: int = 2 * SECOND
    """How long it may take to end by itself after SIGTERM."""
    secret: str = field(default="", repr=False)
    working_folder: Path | None = None
    """Where it runs; None: where the controller runs."""
    temporary: Path | None = None
    """A folder that exists as long as the process: it is removed at its end, even after kill -9 of the controller."""


class LaunchError(RuntimeError):
    """A child did not become ready or could not be used: the sentence names it and why, ``log`` is the end of its log.

    As text it is both.
    """

    def __init__(self, sentence: str, log: Sequence[str] = ()) -> None:
        lines = "; last lines of its log:\n  " + "\n  ".join(log[-_SHOWN:]) if log else ""
        super().__init__(sentence + lines)
        self.sentence, self.log = sentence, tuple(log)


class RunningProcess(Protocol):
    """A child that was started."""

    @property
    def name(self) -> str: ...

    @property
    def pid(self) -> int:
        """Its process, which leads a separate session and group."""

    @property
    def guard(self) -> int:
        """The process above it: all that the child ever starts is a descendant of this one."""

    def alive(self) -> bool: ...

    def exit_code(self) -> int | None:
        """None while it runs; negative for the signal that ended it."""

    def tail(self, lines: int = 20) -> tuple[str, ...]:
        """The last lines of its log."""

    def wait(self, seconds: float) -> int | None:
        """Wait until it ended, at most so long; its exit code, or None."""

    def request_stop(self) -> None:
        """Begin to end it, without waiting."""

    def stop(self) -> None:
        """SIGTERM, its timeout, SIGKILL, to it and all that it started; waits until they are gone."""


class Starter(Protocol):
    """Starts processes: a launcher, or the host of a run."""

    @property
    def runtime(self) -> Path:
        """The folder for sockets, removed with the run."""

    def start(self, spec: ProcessSpec, logs: Path, /) -> RunningProcess:
        """Start it, with its log in the folder ``logs``, and wait until it is ready."""


class Host(Protocol):
    """What a run lends to engines and transports: cores, folders, a clock, and the only way to start processes."""

    @property
    def cores(self) -> tuple[int, ...]:
        """The cores of the system under test or of the broker; empty if nothing can be pinned."""

    @property
    def boot_cores(self) -> tuple[int, ...]:
        """The cores that it may use until it is warm."""

    @property
    def runtime(self) -> Path:
        """The folder for sockets and shared memory, removed with the run."""

    @property
    def logs(self) -> Path:
        """Where the logs of its processes and its working files go."""

    @property
    def cache(self) -> Path:
        """The user's cache of downloaded files."""

    @property
    def transport(self) -> str:
        """The name of the run's transport, whose connector a system may need at its start."""

    def start(self, process: ProcessSpec, logs: Path | None = None) -> RunningProcess:
        """Start it and wait until it is ready; raises LaunchError with the end of its log if it does not become so.

        Its log goes into ``logs``, else into the folder of the host.
        """

    def pin(self, processes: Sequence[RunningProcess]) -> None:
        """Bind processes, and all that they started, to the cores."""

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until it holds, at most so long; whether it does."""

    def monotonic_ns(self) -> int: ...

    def say(self, message: str) -> None:
        """Show the user what takes time."""
