"""The hiccup meter: a thread that sleeps a millisecond and looks how much longer it took. It shows a starved driver."""

import threading
import time

_NAP = 0.001


class HiccupMeter:
    """Longest overshoot since it was last asked, in nanoseconds."""

    def __init__(self) -> None:
        self._longest = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hiccups", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        before = time.monotonic_ns()
        while not self._stop.is_set():
            time.sleep(_NAP)
            now = time.monotonic_ns()
            self._longest = max(self._longest, now - before - 1_000_000)
            before = now

    def take(self) -> int:
        """The longest hiccup since the last call."""
        longest, self._longest = self._longest, 0
        return longest

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
