"""What a child process of streamgauge does first: read its specification, and keep its threads on time."""

import ctypes
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pyarrow as pa

_PR_SET_TIMERSLACK = 29
_SWITCH = 0.0005
"""Seconds that one Python thread may keep the interpreter while another waits for it: a tenth of a send interval."""


def read_spec() -> bytes:
    """All of the standard input: the specification of this process, with its secrets."""
    text = b""
    while received := os.read(0, 1 << 16):
        text += received
    return text


def log(text: str) -> None:
    """Write a line into the log of this process."""
    os.write(1, text.encode() + b"\n")


def on_sigterm(stop: Callable[[], object]) -> None:
    """Call ``stop`` at SIGTERM. It runs between two instructions of the main thread, which may hold any lock: it may
    only set flags."""
    signal.signal(signal.SIGTERM, lambda *_: stop())


def low_latency_mode() -> None:
    """Let sleeps end on time and threads switch quickly; garbage is not collected, because no cycles are made."""
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(_SWITCH)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


class _NoPandas(MetaPathFinder):
    """Finds no pandas, even if it is installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave anything but pandas to the finders after this one."""
        if fullname == "pandas":
            raise ModuleNotFoundError("Arrow works without pandas here", name=fullname)
        return None


def hide_pandas() -> None:
    """Let Arrow work without pandas in this process, as it does if pandas is not installed.

    Arrow's first conversion from or to numpy imports pandas, only to check whether its argument is a series. If pandas
    is installed (Spark needs it), that one call takes 0.4 s in which no other thread of this process can run: in the
    middle of a load, while it holds the lock of the queue. So the first conversion is made here, where it finds no
    pandas; Arrow looks only once.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array(np.zeros(1, np.int64)).to_numpy()
    finally:
        sys.meta_path.remove(finder)


_NAP = 0.001


class HiccupMeter:
    """Longest overshoot since the last call, in nanoseconds."""

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
