"""The collector on Kafka: it reads the outputs back from their topic after the trial, so that nothing competes with it.

An output was emitted when the broker appended it (LogAppendTime). While the load goes on, only the end of the topic is
asked for, and a light sample of the newest outputs is read for those who look on.
"""

import queue
import threading
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.run.collector.collector import Collector
from streamgauge.run.collector.counts import FIRST_ROW, LAST_ROW, STAMPS, Results, Tally, cells, countable, merged
from streamgauge.run.driver.generator import say
from streamgauge.run.driver.specs import CollectOrder, Tokens
from streamgauge.transports.kafka.client.protocol import KafkaFailure
from streamgauge.transports.kafka.client.reader import open_ends, open_ranges, read_parts
from streamgauge.transports.kafka.cluster import KafkaEnds
from streamgauge.transports.kafka.formats.columns import FormatError
from streamgauge.transports.kafka.formats.formats import output_format
from streamgauge.transports.queue.server import Json
from streamgauge.transports.schemas import schema_of

Ints = npt.NDArray[np.int64]
QUERY = "outputs"
_MILLI = 1_000
_SAMPLE = 5_000
"""Outputs that are read in a second at most while the load goes on."""


class TopicCollector(Collector):
    """Counts what a topic holds: roughly while it grows, exactly when it is whole."""

    patience = 300.0

    def __init__(self, order: CollectOrder, tokens: Tokens, ends: KafkaEnds) -> None:
        self._ends = ends
        self._format = output_format(ends.format, schema_of(order.columns))
        self._asking = threading.Lock()
        self._line = open_ends(ends.cluster, ends.output)
        self._ranges = open_ranges(ends.cluster, ends.output)
        self._seen = dict.fromkeys(self._line.ask(), 0)
        super().__init__(order, tokens)

    def control(self, action: str, body: Json) -> Json:
        """An order of the controller. A function of the user's has columns of its own, told before the load begins."""
        if action == "columns":
            self._format = output_format(self._ends.format, schema_of(tuple((n, k) for n, k in body["columns"])))
            return self.status()
        return super().control(action, body)

    def _held(self) -> dict[int, int]:
        with self._asking:
            return self._line.ask()

    def status(self) -> Json:
        """How many outputs the topic holds."""
        try:
            held = sum(self._held().values())
        except KafkaFailure as error:
            raise ValueError(str(error)) from error
        return {**self.server.status(), **self.faults(), "committed": held, "behind": 0}

    def count(self) -> None:
        """A thread: look at the topic once a second, until told to finish; then read all of it."""
        try:
            while self._wait():
                self.write_down([t for t in [self._look()] if t.second], self.clock.monotonic_ns())
            self._read_all()
        except KafkaFailure as error:
            self.trouble = str(error)
            say(self.trouble)
        except FormatError as error:  # the system under test wrote them: nothing is wrong on our side
            self.unreadable = f"its outputs cannot be read as {self._ends.format}: {error}"
            say(self.unreadable)
        self.close_journals()

    def _wait(self) -> bool:
        """Until the next look; False: it is time to finish."""
        try:
            return self.commits.get(timeout=1.0) is not None
        except queue.Empty:
            return True

    def _look(self) -> Tally:
        """A sample of the newest outputs; their number is exact."""
        ends, tallies, fresh = self._held(), list[Tally](), 0
        for partition, end in ends.items():
            first = max(self._seen[partition], end - _SAMPLE // len(ends))
            fresh += end - self._seen[partition]
            self._seen[partition] = end
            for records in self._ranges.read(partition, first, end):
                tallies.append(self.tally(self._rows(records), self.order.firing))
        found = merged(tallies)
        if found.outputs:  # those that were not read count in the newest second
            newest = max(range(len(found.second)), key=lambda at: (found.outputs[at] > 0, found.second[at]))
            found.outputs[newest] += fresh - sum(found.outputs)
        return found

    def _rows(self, records: pa.RecordBatch) -> pa.Table:
        """Outputs as they are kept: with the moment of the broker's clock, and the number of their batch."""
        rows = pa.Table.from_batches([self._format.decode(records.column("value"))])
        emitted = records.column("timestamp").to_numpy().astype(np.int64) * _MILLI
        # no batch is known here: a window fires once, or, where it may be put out many times, once in a second
        origin = self.wall_ns // 1_000
        batch = (emitted - origin) // 1_000_000 if self.order.last_row_wins else np.zeros(len(emitted), np.int64)
        return rows.append_column("emitted_us", pa.array(emitted)).append_column("batch", pa.array(batch))

    def _read_all(self) -> None:
        """Count and keep the whole topic."""
        for journal in (self.seconds, self.latencies):
            journal.truncate()
        origin, results, updates = self.wall_ns // 1_000, dict[str, Results](), Updates(self.order.identity)
        for records in read_parts(self._ends.cluster, self._ends.output):
            table = self._rows(records)
            counted = self.tally(table, None)
            firing = self.order.firing
            if firing is not None and firing in table.schema.names:
                results.setdefault(firing, Results(firing)).see(countable(table)[0])
                counted.firings = [0] * len(counted.firings)
            if self.order.last_row_wins:
                updates.see(countable(table)[0])
            self.write_down([counted], self.clock.monotonic_ns())
            self.archive.add(QUERY, table)
        self.archive.flush()
        rest = [found.counted(origin) for found in results.values()]
        rest += updates.counted(origin) if self.order.last_row_wins else []
        self.write_down([t for t in rest if t.second or t.latencies], self.clock.monotonic_ns())


class Updates:
    """The first and the last row of every window and key, where it may be put out many times.

    ``most`` rows wait before all between first and last ones are let go: a topic may hold far more than memory does.
    """

    def __init__(self, identity: tuple[str, ...], most: int = 500_000) -> None:
        self._identity, self._most = identity, most
        self._kept: list[pa.Table] = []

    def see(self, table: pa.Table) -> None:
        """Take some outputs, in the order of the log."""
        if not {*self._identity, STAMPS["event-time"]} <= {*table.schema.names}:
            return
        self._kept.append(table.select([*self._identity, STAMPS["event-time"], "emitted_us"]))
        if self.held > self._most:
            rows, ends = self._ends()
            self._kept = [rows.take(pc.unique(pa.concat_arrays(ends)).sort())]
            self._most = max(self._most, 2 * self.held)  # where windows are many it is not done for each part

    @property
    def held(self) -> int:
        """Rows in memory."""
        return sum(map(len, self._kept))

    def _ends(self) -> tuple[pa.Table, list[pa.Array]]:
        """The rows, and which of them are the first and the last of their window and key."""
        rows = pa.concat_tables(self._kept).combine_chunks()
        numbered = rows.append_column("row", pa.array(np.arange(len(rows))))
        found = numbered.group_by([*self._identity]).aggregate([("row", "min"), ("row", "max")])
        return rows, [found.column(f"row_{end}").combine_chunks() for end in ("min", "max")]

    def counted(self, origin_us: int) -> Iterator[Tally]:
        """The latencies of first rows and of last rows."""
        if not self._kept:
            return
        rows, ends = self._ends()
        for kind, chosen in zip((FIRST_ROW, LAST_ROW), ends, strict=True):
            yield _latencies(rows.take(chosen), kind, origin_us)


def _latencies(rows: pa.Table, kind: int, origin_us: int) -> Tally:
    emitted: Ints = rows.column("emitted_us").to_numpy()
    due: Ints = rows.column(STAMPS["event-time"]).cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    return Tally(latencies=[cells(kind, due, emitted - due, origin_us)])


def collect_topic(order: CollectOrder, tokens: Tokens, ends: KafkaEnds) -> None:
    """Serve until told to quit."""
    try:
        collector = TopicCollector(order, tokens, ends)
    except KafkaFailure as error:
        say(str(error))  # it never says that it is ready: the controller shows these words
        return
    collector.run()
