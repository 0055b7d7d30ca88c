"""The only clock. Everything else is told the time, or has none."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime


def now() -> datetime:
    """The wall clock, for names and stamps; nothing is measured with it."""
    return datetime.now(UTC)


def elapsed_ns() -> int:
    """The monotonic clock in nanoseconds, for lengths of time."""
    return time.monotonic_ns()


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a virtual second takes: ``real`` seconds. 0 is as fast as it goes."""

    real: float = 0.0

    def wait(self, virtual_seconds: int) -> None:
        """Let the real time of so many virtual seconds pass."""
        if self.real > 0:
            time.sleep(self.real * virtual_seconds)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clocks of a real trial, as one object, so that a test can step the wall clock of a single process.

    ``step_ns`` is added to the wall clock once ``step_at_ns`` of the monotonic clock is reached.
    """

    step_at_ns: int = 0
    step_ns: int = 0

    def monotonic_ns(self) -> int:
        """CLOCK_MONOTONIC: one for all processes of the machine. Everything is measured with it."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """CLOCK_REALTIME, in nanoseconds since 1970."""
        wall = time.time_ns()
        return wall + self.step_ns if self.step_ns and self.monotonic_ns() >= self.step_at_ns else wall
