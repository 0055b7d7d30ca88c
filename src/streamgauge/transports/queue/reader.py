"""The client's side of the queue, for engines: several driver instances seen as one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyarrow import flight

from streamgauge.transports.ledger import Lane
from streamgauge.transports.queue.server import options


@dataclass(frozen=True, slots=True)
class Cut:
    """One due time (µs since 1970) in all lanes. ``starts`` are the offsets acknowledged, ``offsets`` those at it."""

    due: int | None
    offsets: dict[Lane, int]
    starts: dict[Lane, int]


class QueueReader:
    """Reads, cuts and acknowledges over all driver instances of a trial."""

    def __init__(self, endpoints: Sequence[str], token: str, timeout: float = 60.0) -> None:
        """``endpoints`` like ``grpc+unix:///run/…/queue-0.sock``."""
        self._clients = [flight.FlightClient(endpoint) for endpoint in endpoints]
        self._options = options(token, timeout)
        self._home: dict[Lane, flight.FlightClient] = {}

    def _ask(self, client: flight.FlightClient, action: str, **body: object) -> dict[str, Any]:
        return call(client, self._options, action, **body)

    def latest(self, most: int | None = None) -> Cut:
        """The latest due time until which every driver has published, and the offsets there.

        With ``most``, the latest one at which not many more than so many events wait: drivers have equal shares.
        """
        if most is None:
            return self.cut(None)
        return self._cut([self._ask(c, "cut", most=max(1, most // len(self._clients))) for c in self._clients], None)

    def cut(self, due: int | None) -> Cut:
        """The offsets of all lanes at one due time, so that no lane runs ahead of another. None: the latest."""
        return self._cut([self._ask(client, "cut", due=due) for client in self._clients], due)

    def _cut(self, answers: list[dict[str, Any]], due: int | None) -> Cut:
        dues = [answer["due"] for answer in answers]
        if due is None and len(set(dues)) > 1:
            if None in dues:  # one has not begun: nothing is there in all lanes
                earliest = None
                answers = [{"offsets": [[*o[:3], o[2]] for o in a["offsets"]]} for a in answers]
            else:
                answers = [self._ask(client, "cut", due=min(dues)) for client in self._clients]
                earliest = min(answer["due"] for answer in answers)
        else:
            earliest = dues[0]
        offsets, starts = {}, {}
        for client, answer in zip(self._clients, answers, strict=True):
            for stream, partition, start, offset in answer["offsets"]:
                lane = Lane(stream, partition)
                offsets[lane], starts[lane] = offset, start
                self._home[lane] = client
        return Cut(earliest, offsets, starts)

    def _client(self, lane: Lane) -> flight.FlightClient:
        if lane not in self._home:
            self.cut(None)
        if lane not in self._home:
            raise KeyError(f"no driver has partition {lane.partition} of {lane.stream}")
        return self._home[lane]

    def lanes(self) -> tuple[Lane, ...]:
        """All lanes of all drivers."""
        return tuple(sorted(self.cut(None).offsets))

    def schema(self, stream: str) -> pa.Schema:
        """The columns of a stream."""
        return self._clients[0].get_schema(flight.FlightDescriptor.for_path(stream), self._options).schema

    def read(self, lane: Lane, start: int, stop: int) -> pa.RecordBatchReader:
        """The events ``start … stop − 1`` of a lane, as they come. Dropping it before its end counts as a drop."""
        ticket = {"stream": lane.stream, "partition": lane.partition, "start": start, "stop": stop}
        return self._client(lane).do_get(flight.Ticket(json.dumps(ticket).encode()), self._options).to_reader()

    def taken(self, offsets: Mapping[Lane, int]) -> None:
        """Begun to work on everything below these offsets. A queue that hands events out knows it by itself."""
        self._tell("taken", offsets)

    def acknowledge(self, offsets: Mapping[Lane, int]) -> None:
        """Done with everything below these offsets; one acknowledgement per driver."""
        self._tell("acknowledge", offsets)

    def _tell(self, action: str, offsets: Mapping[Lane, int]) -> None:
        for client in self._clients:
            mine = [[*lane, offset] for lane, offset in offsets.items() if self._client(lane) is client]
            if mine:
                self._ask(client, action, offsets=mine)

    def status(self) -> list[dict[str, Any]]:
        """The counts of every driver."""
        return [self._ask(client, "status") for client in self._clients]

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def __enter__(self) -> "QueueReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def call(
    client: flight.FlightClient, call_options: flight.FlightCallOptions, action: str, **body: object
) -> dict[str, Any]:
    """One action with JSON in and JSON out."""
    results = client.do_action(flight.Action(action, json.dumps(body).encode()), call_options)
    answer: dict[str, Any] = json.loads(next(iter(results)).body.to_pybytes())
    return answer
