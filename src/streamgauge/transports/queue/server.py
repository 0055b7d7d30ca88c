"""The queue's door: Arrow Flight on a Unix socket, plain Arrow on the wire, for engines in any language.

``do_get`` with the ticket ``{"stream", "partition", "start", "stop"}`` streams a range. The actions ``cut``,
``taken``, ``acknowledge`` and ``status`` take and give JSON. Ready batches are handed to Flight as a reader, so that
they stream in C++ without Python's lock: the generator in the same process keeps its ticks.
"""

import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyarrow import flight

from streamgauge.transports.ledger import BacklogError, Books, Lane
from streamgauge.transports.queue.buffer import Backlog

KEY = "role"
_PREFIX = "Bearer "


def options(token: str, timeout: float | None = None) -> flight.FlightCallOptions:
    """What a client sends with every call."""
    return flight.FlightCallOptions(headers=[(b"authorization", (_PREFIX + token).encode())], timeout=timeout)


class Caller(flight.ServerMiddleware):  # type: ignore[misc]
    """One call: the role of the caller, and what to do when the call is over."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.at_end: Callable[[], None] | None = None

    def call_completed(self, exception: BaseException | None) -> None:
        """Called by Flight at the end of the call, while its context is still there."""
        ending, self.at_end = self.at_end, None
        if ending is not None:
            ending()


class Doorkeeper(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Lets in who has a token, in constant time whatever is wrong with it."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        """``tokens``: the secret of each role."""
        super().__init__()
        self._tokens = {role: secret.encode() for role, secret in tokens.items()}

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> Caller:  # noqa: ANN401 - Flight's own
        """Refuse the call, or name its role."""
        given = (headers.get("authorization") or [""])[0].removeprefix(_PREFIX).encode()
        matching = [role for role, secret in self._tokens.items() if hmac.compare_digest(secret, given)]
        if not matching:
            raise flight.FlightUnauthenticatedError("this server wants its token")
        return Caller(matching[0])


def caller(context: flight.ServerCallContext) -> Caller:
    """Who is calling."""
    found: Caller = context.get_middleware(KEY)
    return found


SUT = "sut"
CONTROL = "control"

Json = dict[str, Any]
Control = Callable[[str, Json], Json]


def refuse(action: str, body: Json) -> Json:
    """The control channel of a queue that has none."""
    raise flight.FlightServerError(f"no action {action}")


def _offsets(body: Json) -> dict[Lane, int]:
    """The offset of each lane that a reader names."""
    return {Lane(str(stream), int(number)): int(offset) for stream, number, offset in body["offsets"]}


class Door(flight.FlightServerBase):  # type: ignore[misc]
    """Counts, cuts and acknowledgements of a driver's lanes for the wire, wherever their events are read."""

    def __init__(
        self,
        location: str,
        books: Books[Any],
        *,
        schemas: Mapping[str, pa.Schema],
        tokens: Mapping[str, str],
        lock: AbstractContextManager[Any],
        now_ns: Callable[[], int],
        control: Control = refuse,
    ) -> None:
        """``tokens`` has the secrets of the roles ``sut`` and ``control``; ``now_ns`` is the run's clock."""
        self.books, self.lock = books, lock
        self._schemas, self._now, self._control = dict(schemas), now_ns, control
        super().__init__(location, middleware={KEY: Doorkeeper(tokens)})

    def status(self) -> Json:
        """The exact counts at this moment."""
        with self.lock:
            b = self.books
            drops = b.settle(self._now())
            return {
                "published": b.published,
                "served": b.served,
                "reread": b.reread,
                "acknowledged": b.acknowledged,
                "lag": b.lag,
                "longest": b.longest,
                "held_bytes": b.held_bytes,
                "acks": b.ack_count,
                "drops": drops,
                "full": b.full,
                "until": b.until_us,
            }

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.RecordBatchStream:
        """No events are to be had here."""
        raise flight.FlightServerError("events are read from the broker; this door counts, cuts and acknowledges")

    def get_schema(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        """The schema of the stream that the path names."""
        name = descriptor.path[0].decode()
        if name not in self._schemas:
            raise flight.FlightServerError(f"no stream {name}: there are {', '.join(self._schemas)}")
        return flight.SchemaResult(self._schemas[name])

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """``cut``, ``taken``, ``acknowledge`` and ``status``; anything else is for the control channel."""
        body = parse_json(action.body.to_pybytes() or b"{}")
        try:
            answer = self._answer(action.type, body, caller(context).role)
        except (BacklogError, KeyError, TypeError) as error:
            raise flight.FlightServerError(f"{action.type} {body}: {error}") from error
        return iter([json.dumps(answer).encode()])

    def _answer(self, action: str, body: Json, role: str) -> Json:
        if action == "status":
            return self.status()
        if action == "cut":
            with self.lock:
                most = body.get("most")
                due, offsets = self.books.cut(body.get("due") if most is None else self.books.due_of(int(most)))
                started = self.books.offsets()
            return {"due": due, "offsets": [[*lane, started[lane][0], offset] for lane, offset in offsets.items()]}
        if action == "acknowledge":
            offsets = _offsets(body)
            with self.lock:
                return {"lag": self.books.acknowledge(offsets, self._now()).lag}
        if action == "taken":
            offsets = _offsets(body)
            with self.lock:
                self.books.take(offsets)
                return {"waiting": self.books.waiting}
        if role != CONTROL:
            raise flight.FlightUnauthorizedError(f"{action} is for the controller alone")
        return self._control(action, body)


class QueueServer(Door):
    """Serves a backlog. ``publish`` is for the generator in the same process, the rest for the wire."""

    books: Backlog

    @property
    def backlog(self) -> Backlog:
        """What is in the queue."""
        return self.books

    def publish(self, parts: list[tuple[Lane, pa.RecordBatch]], until_us: int) -> bool:
        """Put a tick into the queue; False when it is full."""
        with self.lock:
            return self.backlog.publish(parts, until_us)

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.RecordBatchStream:
        """A range of one lane."""
        asked = parse_json(ticket.ticket)
        try:
            lane = Lane(str(asked["stream"]), int(asked["partition"]))
            with self.lock:
                loan, batches = self.backlog.lend(lane, int(asked["start"]), int(asked["stop"]))
        except (BacklogError, KeyError, TypeError) as error:
            raise flight.FlightServerError(f"cannot read {asked}: {error}") from error

        def at_end() -> None:
            if context.is_cancelled():
                with self.lock:
                    self.backlog.cancelled(loan, self._now())

        caller(context).at_end = at_end
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(self._schemas[lane.stream], batches))


def parse_json(raw: bytes) -> Json:
    """A JSON object from the wire."""
    try:
        read = json.loads(raw)
    except ValueError as error:
        raise flight.FlightServerError(f"not JSON: {raw[:80]!r}") from error
    if not isinstance(read, dict):
        raise flight.FlightServerError(f"not an object: {raw[:80]!r}")
    return read
