"""The collector's door: outputs come by Flight ``do_put``, and count when their batch is committed.

The descriptor of a put is the command ``{"query", "batch", "partition", "attempt", "commit"}``; with
``commit: true`` the put commits its batch by itself, for engines with one task. The actions ``commit``,
``abort`` and ``status`` take and give JSON.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyarrow import flight

from streamgauge.transports.queue.attempts import Arrival, Attempt, AttemptError, Attempts
from streamgauge.transports.queue.reader import call
from streamgauge.transports.queue.server import (
    CONTROL,
    KEY,
    Control,
    Doorkeeper,
    Json,
    caller,
    options,
    parse_json,
    refuse,
)

Committed = Callable[[str, int, list[Arrival]], None]


class OutputServer(flight.FlightServerBase):  # type: ignore[misc]
    """Takes outputs, stamps each batch at its arrival and hands on what is committed."""

    def __init__(
        self,
        location: str,
        attempts: Attempts,
        *,
        tokens: Mapping[str, str],
        lock: AbstractContextManager[Any],
        now_us: Callable[[], int],
        committed: Committed,
        control: Control = refuse,
    ) -> None:
        """``now_us`` is the driver's clock in µs since 1970; ``committed`` gets query, batch and rows, and is quick."""
        self.attempts, self.lock = attempts, lock
        self._now, self._hand_on, self._control = now_us, committed, control
        super().__init__(location, middleware={KEY: Doorkeeper(tokens)})

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """The outputs of one attempt."""
        said = parse_json(descriptor.command)
        try:
            attempt = Attempt(str(said["query"]), int(said["batch"]), int(said["partition"]), int(said["attempt"]))
            with self.lock:
                self.attempts.open(attempt)
        except (AttemptError, KeyError, TypeError) as error:
            raise flight.FlightServerError(str(error)) from error
        try:
            self._take(attempt, reader)
        except (pa.ArrowException, OSError):
            with self.lock:
                self.attempts.discard(attempt)
            raise
        if context.is_cancelled():  # its sender died: gRPC ends such a stream as if it were whole
            with self.lock:
                self.attempts.discard(attempt)
            return
        with self.lock:
            self.attempts.finish(attempt)
        if said.get("commit"):
            self.commit(attempt.query, attempt.batch, [(attempt.partition, attempt.attempt)])

    def _take(self, attempt: Attempt, reader: flight.MetadataRecordBatchReader) -> None:
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
                self._hand_on(query, batch, arrivals)
        except AttemptError as error:
            raise flight.FlightServerError(str(error)) from error
        return sum(a.rows.num_rows for a in arrivals)

    def status(self) -> Json:
        """The exact counts at this moment."""
        with self.lock:
            return {**asdict(self.attempts.counts), "waiting": self.attempts.waiting}

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """``commit``, ``abort`` and ``status``; anything else is for the control channel."""
        body = parse_json(action.body.to_pybytes() or b"{}")
        try:
            answer = self._answer(action.type, body, caller(context).role)
        except (KeyError, TypeError, ValueError) as error:
            raise flight.FlightServerError(f"{action.type} {body}: {error}") from error
        return iter([json.dumps(answer).encode()])

    def _answer(self, action: str, body: Json, role: str) -> Json:
        if action == "commit":
            parts = [(int(partition), int(attempt)) for partition, attempt in body["parts"]]
            return {"rows": self.commit(str(body["query"]), int(body["batch"]), parts)}
        if action == "abort":
            with self.lock:
                self.attempts.abort(str(body["query"]), int(body["batch"]))
            return {}
        if action == "status":
            return self.status()
        if role != CONTROL:
            raise flight.FlightUnauthorizedError(f"{action} is for the controller alone")
        return self._control(action, body)


class OutputWriter:
    """Sends outputs to the collector and commits them."""

    def __init__(self, endpoint: str, token: str, timeout: float = 60.0) -> None:
        self._client = flight.FlightClient(endpoint)
        self._options = options(token, timeout)

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
            while answers.read() is not None:  # the end of the answers: the server has taken it all
                pass
        return rows

    def commit(self, query: str, batch: int, parts: Sequence[tuple[int, int]]) -> int:
        """Exactly these (partition, attempt) of the batch count. Rows that count now; 0 if they did before."""
        rows: int = call(self._client, self._options, "commit", query=query, batch=batch, parts=list(parts))["rows"]
        return rows

    def abort(self, query: str, batch: int) -> None:
        """The attempts of the batch will not count."""
        call(self._client, self._options, "abort", query=query, batch=batch)

    def status(self) -> dict[str, Any]:
        """The collector's counts."""
        return call(self._client, self._options, "status")

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> "OutputWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
