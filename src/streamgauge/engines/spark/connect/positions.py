"""How far the query is, reported to the controller after every micro-batch: over a broker only Spark has it.

Spark's connector commits no offsets. A listener on the JVM's bus passes on the JSON of each progress, one call of a few
hundred microseconds, and a thread reports it when the next micro-batch begins. That is when Spark itself acknowledges a
queue: so both transports have one boundary, and a lag does not depend on how long a micro-batch took that was on time.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import java_import
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from streamgauge.engines.spark.connect.table import Notify
from streamgauge.engines.toolkit import position_notification
from streamgauge.model.streams import Position, StreamPartition
from streamgauge.transports.kafka.cluster import KafkaEndpoints

if TYPE_CHECKING:
    from streamgauge.transports.kafka.client.positions import PositionCommitter

_END_TIMEOUT = 5.0
_POLL_INTERVAL = 0.02
"""Seconds between two reads of the checkpoint: with a trigger of a second, lag is wrong by 2 % at most."""
Offsets = dict[StreamPartition, int]


def offsets_in(text: str, streams: Mapping[str, str]) -> dict[StreamPartition, int]:
    """The end offsets of a micro-batch by partition, from its file. ``streams``: names of the streams by topic."""
    found: dict[StreamPartition, int] = {}
    for line in text.splitlines()[1:]:  # the first is the version, then Spark's metadata, then a line per source
        entry = json.loads(line) if line.startswith("{") else {}
        for topic, partitions in entry.items():
            if topic in streams and isinstance(partitions, dict):
                found |= {StreamPartition(streams[topic], int(number)): int(at) for number, at in partitions.items()}
    return found


class StartedOffsets:
    """A thread that watches for the file of the next micro-batch, and reports where it ends."""

    def __init__(self, checkpoint: Path, streams: Mapping[str, str], report: Callable[[Offsets], None]) -> None:
        self._folder, self._streams, self._report = checkpoint / "offsets", streams, report
        self._next = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="started", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_INTERVAL):
            with suppress(OSError):  # Spark has removed the file
                self.poll()

    def poll(self) -> None:
        """Report the newest micro-batch, if it is a new one."""
        before = self._next
        while (self._folder / str(self._next)).exists():
            self._next += 1
        if self._next > before:
            offsets = offsets_in((self._folder / str(self._next - 1)).read_text(encoding="utf-8"), self._streams)
            if offsets:
                self._report(offsets)

    def close(self) -> None:
        """Watch no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()


def positions_of(progress: dict[str, Any], streams: dict[str, str]) -> Offsets:
    """Where a micro-batch ended, by partition. ``streams`` are the names of the streams by topic."""
    found: Offsets = {}
    for source in progress.get("sources", []):
        for topic, partitions in (source.get("endOffset") or {}).items():
            if topic in streams:
                found |= {StreamPartition(streams[topic], int(number)): int(at) for number, at in partitions.items()}
    return found


def next_trigger(progress: dict[str, Any], trigger_ns: int) -> float:
    """When the micro-batch after this one begins, if this one is done by then: seconds since 1970.

    Spark's triggers are whole multiples of their length on that clock.
    """
    if not trigger_ns:
        return 0.0
    began_ms, length_ms = datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000, trigger_ns / 1e6
    return (round(began_ms) // length_ms + 1) * length_ms / 1000


class PositionReporter:
    """Reports the latest position in a separate thread, when the next micro-batch begins.

    Micro-batches begin every ``trigger_ns``; 0: as soon as one is done.
    """

    def __init__(self, to: KafkaEndpoints, notify: Notify, trigger_ns: int = 0, checkpoint: Path | None = None) -> None:
        """``checkpoint`` is that of a query which writes down what a micro-batch takes when it starts."""
        self._trigger_ns, self._notify = trigger_ns, notify
        self._streams = {topic: stream for stream, topic in to.inputs.items()}
        self._committer = _open_committer(to) if to.group else None
        self._changed = threading.Condition()
        self._newest: Offsets = {}
        self._due = 0.0
        self._stopping = False
        self._lock = threading.Lock()
        self._done, self._started = Position({}, 0), dict[StreamPartition, int]()
        self._thread = threading.Thread(target=self._report_all, name="positions", daemon=True)
        self._thread.start()
        self._watcher = StartedOffsets(checkpoint, self._streams, self._report_started) if checkpoint else None
        if self._watcher is not None:
            self._watcher.start()

    def progressed(self, text: str) -> None:
        """A micro-batch is done; ``text`` is Spark's JSON of it."""
        progress = json.loads(text)
        offsets, due = positions_of(progress, self._streams), next_trigger(progress, self._trigger_ns)
        if offsets:
            with self._changed:
                self._newest, self._due = offsets, due
                self._changed.notify()

    def close(self) -> None:
        """Report what is left, and stop."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(_END_TIMEOUT)
        if self._watcher is not None:
            self._watcher.close()
        if self._committer is not None:
            self._committer.close()

    def _report_all(self) -> None:
        while offsets := self._next():
            with self._lock:
                self._done = Position(offsets, time.monotonic_ns())
            self._send()
            if self._committer is not None:
                self._committer.commit(offsets)

    def _report_started(self, offsets: Offsets) -> None:
        with self._lock:
            self._started = offsets
        self._send()

    def _send(self) -> None:
        with self._lock:
            done, started = self._done, self._started
        self._notify(position_notification(done._replace(started=started or done.offsets)))

    def _next(self) -> Offsets:
        """The next position to report; none at the end."""
        with self._changed:
            while not self._stopping and (not self._newest or time.time() < self._due):
                self._changed.wait(max(0.0, self._due - time.time()) if self._newest else None)
            offsets, self._newest = self._newest, {}
            return offsets


def _open_committer(to: KafkaEndpoints) -> "PositionCommitter":
    from streamgauge.transports.kafka.client.positions import PositionCommitter  # noqa: PLC0415 - librdkafka is large

    return PositionCommitter(to)


class ProgressListener:
    """A listener of Spark's queries, as the JVM calls it. Spark's own would read every field over a socket."""

    def __init__(self, spark: SparkSession) -> None:
        self.positions: PositionReporter | None = None
        gateway: Any = SparkContext._gateway
        java_import(gateway.jvm, "org.apache.spark.sql.streaming.*")
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        spark.streams._jsqm.addListener(gateway.jvm.PythonStreamingQueryListenerWrapper(self))

    def onQueryProgress(self, event: Any) -> None:  # noqa: ANN401 - the JVM's names
        """A micro-batch is done."""
        positions = self.positions
        if positions is not None:
            positions.progressed(str(event.progress().json()))

    def onQueryStarted(self, event: object) -> None:
        """Nothing to do."""

    def onQueryIdle(self, event: object) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: object) -> None:
        """Nothing to do."""

    class Java:
        """What it is for the JVM."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
