"""What the running micro-batch has taken from Kafka, told to the drivers' doors as soon as it starts.

Spark plans a micro-batch, writes its end offsets to ``offsets/N`` of the checkpoint, and only then runs it. Nobody else
says what waits in the topic and what Spark works on already. Real-time mode writes them when a batch ends: there the
last reported position has to do.
"""

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pyarrow import ArrowException

from streamgauge.transport.books import Lane

_GLANCE = 0.02
"""Seconds between two looks: what a trigger of a second makes wait is off by 2 % at most."""


def offsets_in(text: str, streams: Mapping[str, str]) -> dict[Lane, int]:
    """The end offsets of a micro-batch by lane, from its file. ``streams`` are the names of the streams by topic."""
    found: dict[Lane, int] = {}
    for line in text.splitlines()[1:]:  # the first is the version, then what Spark notes, then a line per source
        told = json.loads(line) if line.startswith("{") else {}
        for topic, partitions in told.items():
            if topic in streams and isinstance(partitions, dict):
                found |= {Lane(streams[topic], int(number)): int(at) for number, at in partitions.items()}
    return found


class Taken:
    """A thread that looks for the file of the next micro-batch, and tells what it holds."""

    def __init__(
        self, checkpoint: Path, streams: Mapping[str, str], tell: Callable[[Mapping[Lane, int]], None]
    ) -> None:
        self._folder, self._streams, self._tell = checkpoint / "offsets", streams, tell
        self._next = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="taken", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_GLANCE):
            with suppress(ArrowException, OSError):  # the drivers are ending, or Spark has removed the file
                self.look()

    def look(self) -> None:
        """Tell of the newest micro-batch, if it is a new one."""
        before = self._next
        while (self._folder / str(self._next)).exists():
            self._next += 1
        if self._next > before:
            offsets = offsets_in((self._folder / str(self._next - 1)).read_text(encoding="utf-8"), self._streams)
            if offsets:
                self._tell(offsets)

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
