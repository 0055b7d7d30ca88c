"""Outputs over the queue: the collector's server and source, and the writer of the system under test.

Outputs arrive by Flight ``do_put``, and count when their batch is committed. The descriptor of a put is the command
``{"query", "batch", "partition", "attempt", "commit"}``; with ``commit: true`` the put commits its batch by itself, for
engines with one task. The actions ``commit``, ``abort`` and ``status`` take and return JSON.
"""

import json
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import flight

from streamgauge.processes.clock import Clock
from streamgauge.transports.contract import OutputRows
from streamgauge.transports.queue.attempts import Attempt, AttemptError, Attempts, StampedRows
from streamgauge.transports.queue.reader import call_action
from streamgauge.transports.queue.server import MIDDLEWARE, Json, TokenAuth, call_options, parse_json

Committed = Callable[[str, int, list[StampedRows]], None]


class OutputServer(flight.FlightServerBase):  # type: ignore[misc]
    """Receives outputs, stamps each batch at its arrival and passes on what is committed."""

    def __init__(
        self, location: str, attempts: Attempts, *, token: str, now_us: Callable[[], int], committed: Committed
    ) -> None:
        """``now_us`` is the clock of the load driver in µs since 1970; ``committed`` gets query, batch and rows, and is
        quick."""
        self.attempts, self.lock = attempts, threading.Lock()
        self._now, self._on_commit = now_us, committed
        super().__init__(location, middleware={MIDDLEWARE: TokenAuth(token)})

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """The outputs of one attempt."""
        key = parse_json(descriptor.command)
        try:
            attempt = Attempt(str(key["query"]), int(key["batch"]), int(key["partition"]), int(key["attempt"]))
            with self.lock:
                self.attempts.open(attempt)
        except (AttemptError, KeyError, TypeError) as error:
            raise flight.FlightServerError(str(error)) from error
        try:
            self._receive(attempt, reader)
        except (pa.ArrowException, OSError):
            with self.lock:
                self.attempts.discard(attempt)
            raise
        if context.is_cancelled():  # its sender ended: gRPC ends such a stream as if it were whole
            with self.lock:
                self.attempts.discard(attempt)
            return
        with self.lock:
            self.attempts.finish(attempt)
        if key.get("commit"):
            self.commit(attempt.query, attempt.batch, [(attempt.partition, attempt.attempt)])

    def _receive(self, attempt: Attempt, reader: flight.MetadataRecordBatchReader) -> None:
        while True:
            try:
                chunk = reader.read_chunk()
            except StopIteration:
                return
            emitted = self._now()
            with self.lock:
                self.attempts.add(attempt, chunk.data, emitted)

    def commit(self, query: str, batch: int, parts: list[tuple[int, int]]) -> int:
        """Commit a batch; the number of rows that count now."""
        try:
            with self.lock:
                arrivals = self.attempts.commit(query, batch, parts)
                self._on_commit(query, batch, arrivals)
        except AttemptError as error:
            raise flight.FlightServerError(str(error)) from error
        return sum(a.rows.num_rows for a in arrivals)

    def status(self) -> Json:
        """The exact counts at this moment."""
        with self.lock:
            return {**asdict(self.attempts.counts), "waiting": self.attempts.waiting}

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """``commit``, ``abort`` and ``status``."""
        body = parse_json(action.body.to_pybytes() or b"{}")
        try:
            answer = self._answer(action.type, body)
        except (KeyError, TypeError, ValueError) as error:
            raise flight.FlightServerError(f"{action.type} {body}: {error}") from error
        return iter([json.dumps(answer).encode()])

    def _answer(self, action: str, body: Json) -> Json:
        if action == "commit":
            parts = [(int(partition), int(attempt)) for partition, attempt in body["parts"]]
            return {"rows": self.commit(str(body["query"]), int(body["batch"]), parts)}
        if action == "abort":
            with self.lock:
                self.attempts.abort(str(body["query"]), int(body["batch"]))
            return {}
        if action == "status":
            return self.status()
        raise KeyError(f"unknown action {action}")


class QueueOutputs:
    """The outputs of a trial as they are committed: each batch of rows once."""

    final = True

    def __init__(self, location: str, token: str) -> None:
        self._clock = Clock()
        self._start_ns, self._wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        self._commits: queue.SimpleQueue[tuple[str, int, list[StampedRows]]] = queue.SimpleQueue()
        self._server = OutputServer(
            location, Attempts(), token=token, now_us=self.now_us, committed=lambda *commit: self._commits.put(commit)
        )

    def now_us(self) -> int:
        """The clock of the load driver: the monotonic one, set to the wall clock at the start of the load only."""
        return (self._wall_ns + self._clock.monotonic_ns() - self._start_ns) // 1_000

    def set_clock(self, start_ns: int, wall_ns: int) -> None:
        """When the load begins."""
        self._start_ns, self._wall_ns = start_ns, wall_ns

    def set_schema(self, schema: pa.Schema) -> None:
        """Arrow batches have their schema with them."""

    def poll(self, seconds: float) -> Sequence[OutputRows]:
        """The next batch that was committed."""
        try:
            commit = self._commits.get(timeout=seconds)
        except queue.Empty:
            return ()
        return [committed_rows(*commit)] if commit[2] else ()

    def drain(self) -> Iterator[OutputRows]:
        """The batches that are left."""
        while not self._commits.empty():
            yield from self.poll(0.0)

    def status(self) -> Json:
        """The counts so far."""
        return self._server.status()

    def behind(self) -> int:
        """Batches that wait to be counted."""
        return self._commits.qsize()

    def close(self) -> None:
        """Accept no more outputs."""
        self._server.shutdown()


def committed_rows(query: str, batch: int, arrivals: Sequence[StampedRows]) -> OutputRows:
    """The rows of a commit as they are stored: with ``emitted_us`` and the number of their batch."""
    table = pa.Table.from_batches([arrival.rows for arrival in arrivals]).combine_chunks()
    emitted = np.repeat([a.emitted_us for a in arrivals], [a.rows.num_rows for a in arrivals]).astype(np.int64)
    table = table.append_column("emitted_us", pa.array(emitted))
    return OutputRows(query, table.append_column("batch", pa.array(np.full(len(emitted), batch, np.int64))))


class QueueOutputWriter:
    """Sends outputs to the collector and commits them."""

    def __init__(self, endpoint: str, token: str, timeout: float = 60.0) -> None:
        self._client = flight.FlightClient(endpoint)
        self._options = call_options(token, timeout)

    def put(
        self,
        query: str,
        batch: int,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        *,
        partition: int = 0,
        attempt: int = 0,
        commit: bool = False,
    ) -> int:
        """Send the outputs of one attempt, as they are made; returns when all have arrived. Their number."""
        key = {"query": query, "batch": batch, "partition": partition, "attempt": attempt, "commit": commit}
        descriptor = flight.FlightDescriptor.for_command(json.dumps(key).encode())
        writer, answers = self._client.do_put(descriptor, schema, self._options)
        rows = 0
        with writer:
            for one in batches:
                writer.write_batch(one)
                rows += one.num_rows
            writer.done_writing()
            while answers.read() is not None:  # the end of the responses: the server has taken it all
                pass
        return rows

    def commit(self, query: str, batch: int, parts: Sequence[tuple[int, int]]) -> int:
        """Exactly these (partition, attempt) of the batch count. Rows that count now; 0 if they did before."""
        rows: int = call_action(self._client, self._options, "commit", query=query, batch=batch, parts=list(parts))[
            "rows"
        ]
        return rows

    def abort(self, query: str, batch: int) -> None:
        """The attempts of the batch will not count."""
        call_action(self._client, self._options, "abort", query=query, batch=batch)

    def status(self) -> dict[str, Any]:
        """The collector's counts."""
        return call_action(self._client, self._options, "status")

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> "QueueOutputWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
