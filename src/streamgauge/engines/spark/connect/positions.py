"""How far the query is, told to the drivers' doors after every micro-batch: on Kafka nobody else could know.

Spark's connector commits no offsets. A listener on the JVM's bus hands over the JSON of each progress, one call of a
few hundred microseconds, and a thread sends what it says when the next micro-batch begins. That is when Spark itself
tells a source of a queue: so both ways have one boundary, and a lag does not depend on how long a micro-batch took
that was done in time.
"""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from py4j.java_gateway import java_import
from pyarrow import ArrowException
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from streamgauge.engines.spark.options import Ends
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.reader import QueueReader

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


Offsets = dict[Lane, int]
_AGAIN, _PATIENCE = 0.02, 5.0
"""Seconds. The broker may have handed a record on before its driver knows that it was taken."""


def positions_of(progress: dict[str, Any], streams: dict[str, str]) -> Offsets:
    """Where a micro-batch ended, by lane. ``streams`` are the names of the streams by topic."""
    found: Offsets = {}
    for source in progress.get("sources", []):
        for topic, partitions in (source.get("endOffset") or {}).items():
            if topic in streams:
                found |= {Lane(streams[topic], int(number)): int(at) for number, at in partitions.items()}
    return found


def next_begins(progress: dict[str, Any], trigger_ns: int) -> float:
    """When the micro-batch after this one begins, if this one is done by then: seconds since 1970.

    Spark's triggers are whole multiples of their length on that clock.
    """
    if not trigger_ns:
        return 0.0
    began_ms, length_ms = datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000, trigger_ns / 1e6
    return (round(began_ms) // length_ms + 1) * length_ms / 1000


class Positions:
    """Sends the latest position, in a thread of its own; what is overtaken by a newer one is not sent.

    Micro-batches begin every ``trigger_ns``; 0: as soon as one is done.
    """

    def __init__(self, ends: Ends, to: KafkaEnds, trigger_ns: int = 0, checkpoint: Path | None = None) -> None:
        """``checkpoint`` is that of a query which writes down what a micro-batch takes when it starts."""
        self._trigger_ns = trigger_ns
        self._streams = {topic: stream for stream, topic in to.inputs.items()}
        self._door = QueueReader(ends.queues, ends.token)
        self._commit = _committer(to) if to.group else None
        self._changed = threading.Condition()
        self._newest: Offsets = {}
        self._due = 0.0
        self._over = False
        self._thread = threading.Thread(target=self._send_all, name="positions", daemon=True)
        self._thread.start()
        self._taking = QueueReader(ends.queues, ends.token) if checkpoint else None  # a line for its own thread
        self._taken = Taken(checkpoint, self._streams, self._taking.taken) if checkpoint and self._taking else None
        if self._taken is not None:
            self._taken.start()

    def progressed(self, told: str) -> None:
        """A micro-batch is done; ``told`` is Spark's JSON of it."""
        progress = json.loads(told)
        offsets, due = positions_of(progress, self._streams), next_begins(progress, self._trigger_ns)
        if offsets:
            with self._changed:
                self._newest, self._due = offsets, due
                self._changed.notify()

    def close(self) -> None:
        """Send what is left, and hang up."""
        with self._changed:
            self._over = True
            self._changed.notify()
        self._thread.join(_PATIENCE)
        self._door.close()
        if self._taken is not None and self._taking is not None:
            self._taken.close()
            self._taking.close()

    def _send_all(self) -> None:
        while offsets := self._next():
            self._acknowledge(offsets)
            if self._commit is not None:
                self._commit(offsets)

    def _next(self) -> Offsets:
        """The next position to send; none at the end."""
        with self._changed:
            while not self._over and (not self._newest or time.time() < self._due):
                self._changed.wait(max(0.0, self._due - time.time()) if self._newest else None)
            offsets, self._newest = self._newest, {}
            return offsets

    def _acknowledge(self, offsets: Offsets) -> None:
        ends = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._door.acknowledge(offsets)
            except (ArrowException, OSError) as error:
                if self._newest or self._over:
                    return None  # a newer one comes, or the drivers are ending
                if time.monotonic() > ends:
                    raise RuntimeError(f"the position {offsets} could not be told to the drivers") from error
            time.sleep(_AGAIN)


def _committer(to: KafkaEnds) -> Callable[[Offsets], None]:
    """Commits positions to a consumer group that nobody is a member of, so that any monitor of Kafka sees the lag."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415 - only where it is asked for

    consumer = Consumer({**to.cluster.client_settings(), "group.id": to.group, "enable.auto.commit": False})

    def commit(offsets: Offsets) -> None:
        parts = [TopicPartition(to.inputs[lane.stream], lane.partition, at) for lane, at in offsets.items()]
        consumer.commit(offsets=parts, asynchronous=True)
        consumer.poll(0)

    return commit


class Listener:
    """A listener of Spark's queries, as the JVM calls it. Spark's own would read every field over a socket."""

    def __init__(self, spark: SparkSession) -> None:
        self.positions: Positions | None = None
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
