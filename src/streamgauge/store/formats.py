"""Format versions of the results folder. Old ones keep reading; a newer one is refused with a sentence.

When the shape of a document changes in a way that defaults cannot bridge, raise ``FORMAT`` and give the
old number a reader that brings its content to the new shape. ``tests/golden/store`` keeps a run of every
format ever written.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamgauge.store.errors import NewerFormat, StoreError

FORMAT = 2
"""The format that is written."""

CHANGED = {
    2: "the lag behind the plan, the queue of events not yet read, send delays, and the second in which outputs were "
    "due"
}
"""What a format records that those before it do not."""

Reader = Callable[[str, Any], Any]
"""Takes the kind and the content of a document, gives the content in the shape of today."""


def _as_it_is(kind: str, content: Any) -> Any:  # noqa: ANN401
    return content


def _read_1(kind: str, content: Any) -> Any:  # noqa: ANN401
    """The columns of a trial had other meanings: it says so, and is shown as it was judged."""
    return content | {"format": 1} if kind == "trial" and isinstance(content, dict) else content


READERS: dict[int, Reader] = {1: _read_1, 2: _as_it_is}


def lacks(version: int) -> str:
    """What a trial of this format did not record; nothing if it is of today's format."""
    return "; ".join(what for since, what in CHANGED.items() if since > version)


def reader(version: object, path: Path) -> Reader:
    """The reader of a format version."""
    if isinstance(version, bool) or not isinstance(version, int):
        raise StoreError(f"{path} is damaged: its format is {version!r:.40}, not a number")
    if version > FORMAT:
        raise NewerFormat(
            f"{path} was written by a newer streamgauge (format {version}); "
            f"upgrade streamgauge to read it, this one reads formats up to {FORMAT}"
        )
    found = READERS.get(version)
    if found is None:
        raise StoreError(f"{path} is damaged: format {version} does not exist")
    return found
