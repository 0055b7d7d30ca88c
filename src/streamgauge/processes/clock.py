"""The only clock. Everything else gets the time as an argument, or has none."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


def now() -> datetime:
    """The wall clock, for names and stamps; nothing is measured with it."""
    return datetime.now(UTC)


def elapsed_ns() -> int:
    """The monotonic clock in nanoseconds, for lengths of time."""
    return time.monotonic_ns()


def sleep(seconds: float) -> None:
    """Let this time pass."""
    time.sleep(seconds)


class SteadyWallClock:
    """The wall clock as it was when it was last set, and from then on as the monotonic clock goes: never stepped."""

    def __init__(self) -> None:
        self._offset = 0
        self.set()

    def set(self) -> None:
        """Set it to the wall clock."""
        self._offset = time.time_ns() - time.monotonic_ns()

    def micros(self, monotonic_ns: int) -> int:
        """A moment of the monotonic clock as microseconds since 1970."""
        return (monotonic_ns + self._offset) // 1_000

    def now_us(self) -> int:
        """This moment in microseconds since 1970."""
        return self.micros(time.monotonic_ns())


def wait_until(holds: Callable[[], bool], seconds: float, interval: float = 0.02) -> bool:
    """Wait until it holds, at most so long; whether it does."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(interval)
    return True


@dataclass(frozen=True, slots=True)
class VirtualPace:
    """How long a simulated second takes: ``real`` seconds. 0 is as fast as it is computed."""

    real: float = 0.0

    def wait(self, simulated_seconds: int) -> None:
        """Let the real time of so many simulated seconds pass."""
        if self.real > 0:
            time.sleep(self.real * simulated_seconds)


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
