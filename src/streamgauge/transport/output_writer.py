"""The client's side of the collector, for engines' sinks."""

import json
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyarrow import flight

from streamgauge.transport.queue_reader import call
from streamgauge.transport.token import options


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
