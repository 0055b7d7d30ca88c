"""Seconds ↔ files: Parquet for a whole trial, Arrow streams for one that still grows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.model.seconds import COLUMNS, KINDS, Column, Kind, Latencies, Seconds
from streamgauge.store.durable import StoreError, as_store_error

SECONDS = "seconds.parquet"
LATENCIES = "latencies.parquet"
LIVE_SECONDS = "seconds.arrows"
LIVE_LATENCIES = "latencies.arrows"

_LIVE_SECONDS = pa.schema([("second", pa.int64()), *((name, pa.int64()) for name in COLUMNS)])
_LIVE_LATENCIES = pa.schema([("kind", pa.int8()), *((n, pa.int64()) for n in ("second", "bucket", "count"))])


def _numbers(column: Any) -> Column:  # noqa: ANN401 - pyarrow is not typed
    if column.null_count:
        raise ValueError("a column has gaps")
    return np.asarray(column.to_numpy(), np.int64)


def _to_parquet(table: Any) -> bytes:  # noqa: ANN401
    # Differences of neighbours are small here: stored as differences they take less space and time than any codec.
    packed = {name: "DELTA_BINARY_PACKED" for name in table.column_names if name != "kind"}
    sink = pa.BufferOutputStream()
    pq.write_table(
        table, sink, compression="zstd", use_dictionary=["kind"], write_statistics=False, column_encoding=packed
    )
    return bytes(sink.getvalue())


def seconds_to_bytes(seconds: Seconds) -> bytes:
    """The columns that were recorded, one row per second, as Parquet."""
    second = np.arange(seconds.start, seconds.stop, dtype=np.int64)
    names = [name for name in COLUMNS if name in seconds.columns]
    return _to_parquet(pa.table({"second": second, **{name: seconds.columns[name] for name in names}}))


def _kinds_of(seconds: Seconds) -> list[Kind]:
    return [kind for kind in KINDS if kind in seconds.latencies]


def _flat(seconds: Seconds) -> list[Column]:
    """Code of the kind, second, bucket and count of every latency, of one kind after the other."""
    held = [(KINDS.index(kind), seconds.latencies[kind]) for kind in _kinds_of(seconds)]
    codes = [np.full(len(lat.second), code, np.int64) for code, lat in held]
    parts = [codes, [lat.second for _, lat in held], [lat.bucket for _, lat in held], [lat.count for _, lat in held]]
    return [np.concatenate(part) if part else np.zeros(0, np.int64) for part in parts]


def latencies_to_bytes(seconds: Seconds) -> bytes:
    """The counts of latencies as Parquet: kind, second, bucket, count."""
    code, second, bucket, count = _flat(seconds)
    kind = pa.DictionaryArray.from_arrays(pa.array(code.astype(np.int8)), pa.array(list(KINDS)))
    return _to_parquet(pa.table({"kind": kind, "second": second, "bucket": bucket, "count": count}))


def _by_kind(code: Column, columns: list[Column], kinds: tuple[Kind, ...]) -> dict[Kind, Latencies]:
    chosen = {kind: code == KINDS.index(kind) for kind in kinds}
    return {kind: Latencies(*(column[rows] for column in columns)) for kind, rows in chosen.items()}


def bytes_to_seconds(start: int, kinds: tuple[Kind, ...], seconds: bytes, latencies: bytes) -> Seconds:
    """What ``seconds_to_bytes`` and ``latencies_to_bytes`` have written."""
    table = pq.read_table(pa.BufferReader(seconds))
    columns = {name: _numbers(table[name]) for name in table.column_names if name in COLUMNS}
    counts = pq.read_table(pa.BufferReader(latencies))
    code = _numbers(pc.index_in(counts["kind"].cast(pa.string()), value_set=pa.array(list(KINDS))))
    held = [_numbers(counts[name]) for name in ("second", "bucket", "count")]
    return Seconds(start, columns, _by_kind(code, held, kinds))


def read_seconds(folder: Path, start: int, kinds: tuple[Kind, ...], data: dict[str, bytes]) -> Seconds:
    """The seconds of a whole trial, from the bytes of its two files."""
    try:
        return bytes_to_seconds(start, kinds, data[SECONDS], data[LATENCIES])
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise StoreError(f"{folder / SECONDS} or {LATENCIES} beside it is damaged: {error}") from error


class LiveSeconds:
    """Append-only files of a growing trial, readable while they grow. No fsync: they are removed with the trial."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[Any] = []
        self._seconds: Any = None
        self._latencies: Any = None

    def append(self, seconds: Seconds) -> None:
        """Add the stretch that follows. A reader sees it once its seconds are there, latencies before them."""
        with as_store_error("write", self._folder):
            if not self._files:
                self._open()
            flat = _flat(seconds)
            second = np.arange(seconds.start, seconds.stop, dtype=np.int64)
            columns = [flat[0].astype(np.int8), *flat[1:]]
            self._latencies.write_batch(pa.record_batch(columns, schema=_LIVE_LATENCIES))
            rows = [second, *(seconds[name] for name in COLUMNS)]
            self._seconds.write_batch(pa.record_batch(rows, schema=_LIVE_SECONDS))
            for file in self._files:
                file.flush()

    def _open(self) -> None:
        self._files = [pa.OSFile(str(self._folder / name), "wb") for name in (LIVE_SECONDS, LIVE_LATENCIES)]
        self._seconds = pa.ipc.new_stream(self._files[0], _LIVE_SECONDS)
        self._latencies = pa.ipc.new_stream(self._files[1], _LIVE_LATENCIES)

    def close(self) -> None:
        """Close the files; what was appended stays."""
        for file in self._files:
            file.close()
        self._files = []

    def discard(self) -> None:
        """Close and remove the files: the files of the whole trial contain everything."""
        self.close()
        for name in (LIVE_SECONDS, LIVE_LATENCIES):
            (self._folder / name).unlink(missing_ok=True)


def _whole_batches(path: Path, schema: Any) -> dict[str, Column]:  # noqa: ANN401
    """Every complete batch of a growing stream, without the one that is being written."""
    batches = []
    try:
        with pa.OSFile(str(path), "rb") as file:
            data = file.read()
        stream = pa.ipc.open_stream(pa.BufferReader(data))
        held = stream.schema
        if any(field.name not in schema.names or field.type != schema.field(field.name).type for field in held):
            raise StoreError(f"{path} is damaged: it has other columns than seconds have")
        for batch in stream:
            batch.validate(full=True)
            batches.append(batch)
    except (pa.ArrowException, OSError, EOFError):
        held = batches[0].schema if batches else schema  # torn by a crash, or still being written
    table = pa.Table.from_batches(batches, schema=held)
    # an earlier format had fewer columns
    return {name: _numbers(table[name]) for name in held.names}


def read_live(folder: Path) -> Seconds:
    """The seconds of a growing or abandoned trial, as far as they are whole."""
    rows = _whole_batches(folder / LIVE_SECONDS, _LIVE_SECONDS)
    second = rows.pop("second")
    if not len(second):
        return Seconds(0, rows)
    start, stop = int(second[0]), int(second[-1]) + 1
    flat = _whole_batches(folder / LIVE_LATENCIES, _LIVE_LATENCIES)
    kinds = tuple(kind for i, kind in enumerate(KINDS) if (flat["kind"] == i).any())
    held = [flat[name] for name in ("second", "bucket", "count")]
    found = _by_kind(flat["kind"], held, kinds)
    return Seconds(start, rows, {kind: lat.between(start, stop) for kind, lat in found.items()})
