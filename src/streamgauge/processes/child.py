"""Keep pandas out of processes that are held to milliseconds."""

import ctypes
import gc
import sys
import threading
import time
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pyarrow as pa

_PR_SET_TIMERSLACK = 29
_SWITCH = 0.0005
"""Seconds that one Python thread may keep the interpreter while another wants it: a tenth of a tick."""


def quicken() -> None:
    """Let sleeps end when they should and threads change quickly; no pauses for cyclic garbage: we make none."""
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(_SWITCH)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


class _NoPandas(MetaPathFinder):
    """Finds no pandas, wherever it lies."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave anything but pandas to the finders after this one."""
        if fullname == "pandas":
            raise ModuleNotFoundError("Arrow is to do without pandas here", name=fullname)
        return None


def without_pandas() -> None:
    """Let Arrow do without pandas in this process, as it does where none is installed.

    Its first conversion from or to numpy loads pandas, only to ask whether what it was given is a series. Where
    pandas is installed (Spark wants it) that one call takes 0.4 s in which no other thread of ours can run: in the
    middle of a load, under the lock of the queue. So the first conversion is made here, where it finds no pandas;
    Arrow looks only once.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array(np.zeros(1, np.int64)).to_numpy()
    finally:
        sys.meta_path.remove(finder)


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
