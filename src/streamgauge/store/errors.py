"""What can go wrong in the results folder. Every message is a sentence that names the file or the run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StoreError(Exception):
    """The results folder cannot be read or written as asked."""


class NewerFormat(StoreError):
    """Written by a later streamgauge than this one."""


class UnknownRun(StoreError):
    """No run answers to this name."""


class AmbiguousRun(StoreError):
    """More than one run answers to this name."""


class RunLocked(StoreError):
    """Another process writes this run."""


@contextmanager
def told(doing: str, path: Path) -> Iterator[None]:
    """Turn what the operating system says into a sentence with the file in it."""
    try:
        yield
    except FileNotFoundError as error:
        missing = error.filename or path
        raise StoreError(f"cannot {doing} {path}: {missing} is missing") from error
    except OSError as error:
        raise StoreError(f"cannot {doing} {path}: {error.strerror or error}") from error
