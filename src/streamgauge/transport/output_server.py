"""The collector's door: outputs come by Flight ``do_put``, and count when their batch is committed.

The descriptor of a put is the command ``{"query", "batch", "partition", "attempt", "commit"}``; with
``commit: true`` the put commits its batch by itself, for engines with one task. The actions ``commit``,
``abort`` and ``status`` take and give JSON.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyarrow import flight

from streamgauge.transport.attempts import Arrival, Attempt, AttemptError, Attempts
from streamgauge.transport.queue_server import CONTROL, Control, Json, parse_json, refuse
from streamgauge.transport.token import KEY, Doorkeeper, caller

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
