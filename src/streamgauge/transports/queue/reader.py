"""The engine's side of the queue: the queues of several load drivers, read as one."""

import json
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyarrow import flight

from streamgauge.model.streams import Offsets, StreamPartition
from streamgauge.processes.clock import SteadyWallClock
from streamgauge.transports.contract import Available
from streamgauge.transports.ledger import offsets_to_json, only_of
from streamgauge.transports.queue.server import call_options


class QueueReader:
    """Reads and acknowledges over all load drivers of a trial."""

    acknowledges = True

    def __init__(self, endpoints: Sequence[str], token: str, timeout: float = 60.0) -> None:
        """``endpoints`` like ``grpc+unix:///run/…/queue-0.sock``."""
        self._address, self._clock = (tuple(endpoints), token), SteadyWallClock()
        self._clients = [flight.FlightClient(endpoint) for endpoint in endpoints]
        self._options = call_options(token, timeout)
        self._driver_of: dict[StreamPartition, flight.FlightClient] = {}

    def _request(self, client: flight.FlightClient, action: str, **body: object) -> dict[str, Any]:
        return call_action(client, self._options, action, **body)

    def available(self, most: int | None = None) -> Available:
        """The latest due time until which every load driver has published, and the offsets there.

        With ``most``, the latest one at which not many more than so many events wait: load drivers have equal shares.
        """
        if most is None:
            return self.up_to(None)
        each = max(1, most // len(self._clients))
        return self._available([self._request(client, "offsets", most=each) for client in self._clients], None)

    def up_to(self, due: int | None) -> Available:
        """The offsets of all partitions at one due time, so that no partition is ahead of another. None: the latest."""
        return self._available([self._request(client, "offsets", due=due) for client in self._clients], due)

    def _available(self, answers: list[dict[str, Any]], due: int | None) -> Available:
        dues = [answer["due"] for answer in answers]
        if due is None and len(set(dues)) > 1:
            if None in dues:  # one has not begun: nothing is there in all partitions
                earliest = None
                answers = [{"offsets": [[*o[:3], o[2]] for o in a["offsets"]]} for a in answers]
            else:
                answers = [self._request(client, "offsets", due=min(dues)) for client in self._clients]
                earliest = min(answer["due"] for answer in answers)
        else:
            earliest = dues[0]
        offsets, starts = {}, {}
        for client, answer in zip(self._clients, answers, strict=True):
            for stream, number, start, offset in answer["offsets"]:
                partition = StreamPartition(stream, number)
                offsets[partition], starts[partition] = offset, start
                self._driver_of[partition] = client
        return Available(offsets, starts, earliest)

    def _client(self, partition: StreamPartition) -> flight.FlightClient:
        if partition not in self._driver_of:
            self.up_to(None)
        if partition not in self._driver_of:
            raise KeyError(f"no load driver has partition {partition.partition} of {partition.stream}")
        return self._driver_of[partition]

    def partitions(self) -> tuple[StreamPartition, ...]:
        """All partitions of all load drivers."""
        return tuple(sorted(self.available().offsets))

    def schema(self, stream: str) -> pa.Schema:
        """The columns of a stream."""
        return self._clients[0].get_schema(flight.FlightDescriptor.for_path(stream), self._options).schema

    def stream(self, partition: StreamPartition, start: int, stop: int) -> pa.RecordBatchReader:
        """The events ``start … stop − 1`` of a partition, as they come. Closing it early counts as a disconnect."""
        ticket = {"stream": partition.stream, "partition": partition.partition, "start": start, "stop": stop}
        return self._client(partition).do_get(flight.Ticket(json.dumps(ticket).encode()), self._options).to_reader()

    def read(self, partition: StreamPartition, start: int, stop: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The same, each batch with the moment at which it arrived here."""
        for batch in self.stream(partition, start, stop):
            yield batch, self._clock.now_us()

    def complete_until(self, available: Available) -> int | None:
        """The queue has the time until which everything is published."""
        return available.due_us

    def disconnect(self, partition: StreamPartition, start: int, stop: int) -> None:
        """Begin to read over a separate connection and close it: the load driver notices."""
        endpoints, token = self._address
        with QueueReader(endpoints, token) as apart:
            apart.stream(partition, start, stop).read_next_batch()

    def acknowledge(self, offsets: Offsets) -> None:
        """Everything below these offsets is finished; one acknowledgement per load driver."""
        for client in self._clients:
            assigned = only_of([each for each in offsets if self._client(each) is client], offsets)
            if assigned:
                self._request(client, "acknowledge", offsets=offsets_to_json(assigned))

    def status(self) -> list[dict[str, Any]]:
        """The counts of every load driver."""
        return [self._request(client, "status") for client in self._clients]

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def __enter__(self) -> "QueueReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def call_action(
    client: flight.FlightClient, call_options: flight.FlightCallOptions, action: str, **body: object
) -> dict[str, Any]:
    """One action with JSON in and JSON out."""
    results = client.do_action(flight.Action(action, json.dumps(body).encode()), call_options)
    answer: dict[str, Any] = json.loads(next(iter(results)).body.to_pybytes())
    return answer
