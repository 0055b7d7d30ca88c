"""Rows that grow while a trial runs: appended as an Arrow stream, readable at any moment, Parquet when whole."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import ipc

GROWING = ".arrows"
WHOLE = ".parquet"


class Journal:
    """One growing table of whole numbers and names. ``close`` turns it into Parquet beside it."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        """``path`` without an ending."""
        self.path, self.schema = path, schema
        self._file = path.with_suffix(GROWING).open("wb", buffering=0)
        self._writer = ipc.new_stream(self._file, schema)

    def append(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        """Add rows; a reader sees them from now on."""
        arrays = [pa.array(columns[field.name], field.type) for field in self.schema]
        self._writer.write_batch(pa.record_batch(arrays, schema=self.schema))

    def truncate(self) -> None:
        """Remove all rows: they were only for readers of the growing file."""
        self._writer.close()
        self._file.close()
        self._file = self.path.with_suffix(GROWING).open("wb", buffering=0)
        self._writer = ipc.new_stream(self._file, self.schema)

    def close(self) -> Path:
        """No more rows: leave them as Parquet. Where it is."""
        self._writer.close()
        self._file.close()
        growing, whole = self.path.with_suffix(GROWING), self.path.with_suffix(WHOLE)
        draft = whole.with_suffix(".tmp")
        pq.write_table(read_rows(self.path), draft)
        draft.replace(whole)
        growing.unlink()
        return whole

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_rows(path: Path) -> pa.Table:
    """The rows so far, or all of them. What a crash tore off at the end is left out."""
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
