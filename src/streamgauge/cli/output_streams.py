"""stdout and stderr of a process: a write error on them never ends a command.

A run stores its results in its folder before it prints them, so a full disk behind stdout, a closed stdout or a reader
that has ended must not change its exit code.
"""

import codecs
import errno
import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_LATIN = {
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "→": "->",
    "×": "x",
    "±": "+-",
    "≈": "~",
    "≤": "<=",
    "≥": ">=",
    "µ": "u",
    "·": ".",
    "•": "-",
    "’": "'",
    "“": '"',
    "”": '"',
    "θ": "theta",
}
"""Replacements of characters that the terminal's encoding lacks. Other characters become a question mark."""
_REPLACE = "streamgauge-replace"


class SturdyOutput(io.RawIOBase):
    """A file descriptor for output. After the first error it accepts everything and writes nothing."""

    def __init__(self, descriptor: int, lost: OSError | None = None) -> None:
        self._descriptor = descriptor
        self._closed = lost
        self.lost: OSError | None = None
        """Why something could not be written; None as long as nothing was lost."""

    def fileno(self) -> int:
        """The descriptor, which gives the size of the terminal."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._closed is None and os.isatty(self._descriptor)

    def writable(self) -> bool:
        """It is for output."""
        return True

    def write(self, content: "ReadableBuffer", /) -> int:
        """Write a part of the content, or record why that is impossible."""
        size = memoryview(content).nbytes
        if self._closed is not None:
            self.lost = self._closed
        while self.lost is None:
            try:
                return os.write(self._descriptor, content)
            except BlockingIOError:  # the other side made it non-blocking, and reads slowly
                select.select([], [self._descriptor], [])
            except OSError as error:
                self.lost = error
        return size


def replace_lacking(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is written in place of characters that an encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_LATIN.get(character, "?") for character in error.object[error.start : error.end]), error.end


def open_streams() -> None:
    """Replace stdout and stderr of this process by streams that never raise."""
    codecs.register_error(_REPLACE, replace_lacking)
    _occupy()
    sys.stdout = _opened(sys.stdout, 1)
    sys.stderr = _opened(sys.stderr, 2)


def _occupy() -> None:
    """Open descriptors that were closed when the process started: the next file would get one of their numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free


def _opened(stream: TextIO | None, descriptor: int) -> TextIO:
    closed = OSError(errno.EBADF, "it is closed") if stream is None else None
    encoding = "utf-8" if stream is None else stream.encoding
    if stream is not None:
        stream.flush()
    raw = SturdyOutput(descriptor, closed)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors=_REPLACE, line_buffering=descriptor == 2 or raw.isatty()
    )


def lost_stdout() -> OSError | None:
    """The first write error of stdout; None if there was none, or if it is no stream of ``open_streams``."""
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.lost if isinstance(raw, SturdyOutput) else None
