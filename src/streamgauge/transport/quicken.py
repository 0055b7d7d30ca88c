"""What every process does that is held to milliseconds: drivers, collector, and the system that they are proved on."""

import ctypes
import gc
import sys

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
