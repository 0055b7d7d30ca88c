"""What engines' own processes have in common: a log of whole numbers that can be read while it grows."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

Ints = npt.NDArray[np.int64]


def whole_numbers(*names: str) -> pa.Schema:
    """The schema of a log with these columns."""
    return pa.schema([(name, pa.int64()) for name in names])


class Log:
    """A growing table of whole numbers; what is appended is readable from then on."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._file = path.open("wb", buffering=0)
        self._writer = ipc.new_stream(self._file, schema)

    def append(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        """Add rows."""
        arrays = [pa.array(columns[name], pa.int64()) for name in self._schema.names]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))

    def close(self) -> None:
        """No more rows."""
        self._writer.close()
        self._file.close()


def read_log(path: Path) -> dict[str, Ints]:
    """The columns of a log, as far as it is there: a crash may have torn off its end."""
    batches: list[pa.RecordBatch] = []
    with path.open("rb") as file:
        reader = ipc.open_stream(file)
        with contextlib.suppress(pa.ArrowInvalid, OSError):  # the last rows may not be whole
            batches.extend(reader)
        table = pa.Table.from_batches(batches, reader.schema)
    return {name: table.column(name).to_numpy() for name in table.schema.names}
