"""Ctrl-C and SIGTERM: both end the command in the same way. Finished trials are kept."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, SIGINT and SIGTERM raise KeyboardInterrupt, even if the shell had set them to be ignored."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
