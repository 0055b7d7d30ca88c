"""The raw logs of a trial: their columns, and tables that grow while it runs.

Rows are appended as an Arrow stream that can be read at any moment. A journal becomes Parquet when it is closed.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

GROWING = ".arrows"
WHOLE = ".parquet"


Ints = npt.NDArray[np.int64]


def int64_schema(*names: str) -> pa.Schema:
    """The schema of a table with only whole numbers."""
    return pa.schema([(name, pa.int64()) for name in names])


def _of_monitor(texts: tuple[str, ...], *numbers: str) -> pa.Schema:
    return pa.schema([("time", pa.int64()), *((t, pa.string()) for t in texts), *((n, pa.int64()) for n in numbers)])


TICKS = int64_schema("tick", "intended", "actual", "count")
"""Per send interval, in nanoseconds since the load began: when its events should be sent, when they were, how many."""
ACKS = int64_schema("time", "published", "served", "acknowledged", "lag")
APPENDS = int64_schema("intended", "appended", "confirmed", "count")
"""Per send interval and partition that a broker confirmed, in nanoseconds since the load began."""
DRIVER_SECONDS = int64_schema(
    *("second", "offered", "published", "served", "acknowledged", "acks", "drops", "ack_time", "ack_lag", "queue"),
    *("schedule_lag", "hiccup", "skew", "clock_step", "clock_drift"),
)
"""Columns named as in ``model.seconds``; clock_drift in nanoseconds beside them."""
LATENCIES = int64_schema("second", "kind", "bucket", "count")
"""Counts of latencies and of delays. The writer numbers the kinds."""
COLLECTOR_SECONDS = int64_schema("second", "outputs", "firings", "negative")
COLLECTOR_HEALTH = int64_schema("time", "hiccup", "behind")
ROLES = _of_monitor(
    ("role",),
    *("cpu_us", "run_delay_ns", "rss_bytes", "threads", "processes", "read_bytes", "write_bytes", "rchar", "wchar"),
)
CORES = _of_monitor((), "core", "span_us", "busy_us", "steal_us", "ours_us", "foreign_us")
MACHINE = _of_monitor(
    (),
    *("cpu_pressure_us", "memory_pressure_us", "io_pressure_us"),
    *("loopback_received_bytes", "loopback_sent_bytes", "network_received_bytes", "network_sent_bytes"),
)


class GrowingRows:
    """A growing table of whole numbers and names. A reader sees each row from the moment at which it is added."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        """``path`` may have the ending of a growing table or none."""
        self.path, self.schema = path, schema
        self._file = path.with_suffix(GROWING).open("wb", buffering=0)
        self._writer = ipc.new_stream(self._file, schema)

    def append(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        """Add rows."""
        arrays = [pa.array(columns[field.name], field.type) for field in self.schema]
        self._writer.write_batch(pa.record_batch(arrays, schema=self.schema))

    def close(self) -> None:
        """No more rows."""
        self._writer.close()
        self._file.close()


class Journal(GrowingRows):
    """A growing table that ``close`` turns into Parquet beside it."""

    def truncate(self) -> None:
        """Remove all rows: they were only for readers of the growing file."""
        self._writer.close()
        self._file.close()
        self._file = self.path.with_suffix(GROWING).open("wb", buffering=0)
        self._writer = ipc.new_stream(self._file, self.schema)

    def close(self) -> None:
        """No more rows: leave them as Parquet."""
        super().close()
        growing, whole = self.path.with_suffix(GROWING), self.path.with_suffix(WHOLE)
        draft = whole.with_suffix(".tmp")
        pq.write_table(read_rows(self.path), draft)
        draft.replace(whole)
        growing.unlink()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_rows(path: Path) -> pa.Table:
    """The rows so far, or all of them. Incomplete rows at the end are ignored."""
    try:
        growing = path.with_suffix(GROWING).open("rb")
    except FileNotFoundError:  # closed, perhaps this very moment: the Parquet is there before the stream goes
        return pq.read_table(path.with_suffix(WHOLE))
    with growing as file:
        batches: list[pa.RecordBatch] = []
        schema = pa.schema([])
        with contextlib.suppress(pa.ArrowInvalid, OSError):  # the end may not be whole yet
            reader = ipc.open_stream(file)
            schema = reader.schema
            for batch in reader:
                batches.append(batch)
        return pa.Table.from_batches(batches, schema)


def read_columns(path: Path) -> dict[str, Ints]:
    """The rows so far by column; empty if nothing was written yet."""
    try:
        table = read_rows(path)
    except FileNotFoundError:
        return {}
    return {name: table.column(name).to_numpy() for name in table.schema.names}


class NumberedParts:
    """A table too large for one journal: numbered Parquet files, each whole when it is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = 0
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, table: pa.Table) -> None:
        """One more part. Without compression or dictionaries: the collector's time is worth more than the disk."""
        target = self.folder / f"part-{self.written:06d}{WHOLE}"
        draft = target.with_suffix(".tmp")
        pq.write_table(table, draft, compression="none", use_dictionary=False, write_statistics=False)
        draft.replace(target)
        self.written += 1


def read_parts(folder: Path) -> pa.Table | None:
    """All parts in their order; None if there are none."""
    parts = sorted(folder.glob(f"part-*{WHOLE}"))
    return pa.concat_tables([pq.read_table(part) for part in parts]) if parts else None
