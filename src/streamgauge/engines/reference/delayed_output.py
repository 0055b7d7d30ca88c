"""Sends outputs when they are due, in a separate thread: delays take nothing from the capacity."""

import heapq
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamgauge.engines.reference.ground_truth import OUTPUT, OUTPUTS
from streamgauge.engines.reference.windows import ClosedWindows
from streamgauge.model.streams import schema_of
from streamgauge.model.units import SECOND
from streamgauge.processes.clock import SteadyWallClock
from streamgauge.store.journal import GrowingRows
from streamgauge.transports.contract import OutputWriter
from streamgauge.workloads.windowed_aggregation import OUTPUT as SUMS

_LEAD = 5_000_000
"""Nanoseconds before its time at which the call to the collector is opened: then only the rows have to travel."""
SCHEMA = schema_of(SUMS.schema)
"""Columns of an output."""


def as_rows(fired: ClosedWindows) -> pa.RecordBatch:
    """Outputs as they are sent. Views, not casts: the first cast loads all of Arrow's functions, in 100 ms."""
    columns = [pa.array(fired["gem_pack_id"].astype("int32"))]
    columns += [pa.array(fired[field.name]).view(field.type) for field in list(SCHEMA)[1:]]
    return pa.record_batch(columns, schema=SCHEMA)


class DelayedOutput:
    """Outputs that wait, and the thread that sends them: one commit for each window result."""

    def __init__(self, writer: OutputWriter, query: str, folder: Path, clock: SteadyWallClock) -> None:
        self._writer, self._query, self._clock = writer, query, clock
        self._log = GrowingRows(folder / OUTPUTS, OUTPUT)
        self._waiting: list[tuple[int, int, ClosedWindows]] = []
        self._changed = threading.Condition()
        self._count, self._stopping = 0, False
        self._thread = threading.Thread(target=self._send_all, name="release", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    @property
    def works(self) -> bool:
        """False once the collector could not be reached: the log has the reason."""
        return self._thread.is_alive()

    def schedule(self, moment_ns: int, fired: ClosedWindows) -> None:
        """Send these outputs at this moment of the monotonic clock."""
        with self._changed:
            heapq.heappush(self._waiting, (moment_ns, self._count, fired))
            self._count += 1
            self._changed.notify()

    def close(self) -> None:
        """Send nothing more, and leave a whole log."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(1.0)
        self._log.close()

    def _send_all(self) -> None:
        while (ready := self._next()) is not None:
            self._send(*ready)

    def _next(self) -> tuple[int, int, ClosedWindows] | None:
        """Wait until the time of the first one has nearly come."""
        with self._changed:
            while not self._stopping:
                left = self._waiting[0][0] - _LEAD - time.monotonic_ns() if self._waiting else SECOND
                if left <= 0:
                    return heapq.heappop(self._waiting)
                self._changed.wait(left / SECOND)
        return None

    def _send(self, moment: int, number: int, fired: ClosedWindows) -> None:
        rows, released = as_rows(fired), 0

        def when_due() -> Iterator[pa.RecordBatch]:
            nonlocal released
            while (left := moment - time.monotonic_ns()) > 0:
                time.sleep(left / SECOND)
            released = time.monotonic_ns()
            yield rows

        self._writer.put(self._query, number, SCHEMA, when_due(), commit=True)
        moments = {"firing": number, "released_ns": released, "released_us": self._clock.micros(released)}
        known = {name: fired[name] for name in ("window_start", "gem_pack_id")} | {"max_due_us": fired["max_due"]}
        self._log.append({**known, **{name: np.full(rows.num_rows, value) for name, value in moments.items()}})
