"""The queue as a server: Arrow Flight on a Unix socket, plain Arrow on the wire, for engines in any language.

``do_get`` with the ticket ``{"stream", "partition", "start", "stop"}`` streams a range. The actions ``offsets``,
``acknowledge`` and ``status`` take and return JSON. Ready batches are passed to Flight as a reader, so that they stream
in C++ without Python's lock: the generator in the same process stays on schedule.
"""

import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import Any

import pyarrow as pa
from pyarrow import flight

from streamgauge.model.streams import StreamPartition
from streamgauge.transports.ledger import LedgerError, offsets_from_json
from streamgauge.transports.queue.buffer import QueueBuffer

MIDDLEWARE = "authenticated"
_PREFIX = "Bearer "
Json = dict[str, Any]


def call_options(token: str, timeout: float | None = None) -> flight.FlightCallOptions:
    """What a client sends with every call."""
    return flight.FlightCallOptions(headers=[(b"authorization", (_PREFIX + token).encode())], timeout=timeout)


class AuthenticatedCall(flight.ServerMiddleware):  # type: ignore[misc]
    """One call, and what to do when it is over."""

    def __init__(self) -> None:
        self.at_end: Callable[[], None] | None = None

    def call_completed(self, exception: BaseException | None) -> None:
        """Flight calls it at the end of a call, while its context still exists."""
        ending, self.at_end = self.at_end, None
        if ending is not None:
            ending()


class TokenAuth(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Accepts a call with the token, in constant time whatever is wrong with another one."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token.encode()

    def start_call(self, info: Any, headers: Mapping[str, list[str]]) -> AuthenticatedCall:  # noqa: ANN401 - of Flight
        """Refuse the call, or accept it."""
        given = (headers.get("authorization") or [""])[0].removeprefix(_PREFIX).encode()
        if not hmac.compare_digest(self._token, given):
            raise flight.FlightUnauthenticatedError("this server needs its token")
        return AuthenticatedCall()


class QueueServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves a buffer. ``publish`` is for the generator in the same process, the rest for the system under test."""

    def __init__(
        self,
        location: str,
        buffer: QueueBuffer,
        *,
        schemas: Mapping[str, pa.Schema],
        token: str,
        lock: Lock,
        now_ns: Callable[[], int],
    ) -> None:
        """``now_ns`` is the time since the load began; ``schemas`` are those of the streams."""
        self.buffer, self.lock = buffer, lock
        self._schemas, self._now = dict(schemas), now_ns
        super().__init__(location, middleware={MIDDLEWARE: TokenAuth(token)})

    def publish(self, parts: list[tuple[StreamPartition, pa.RecordBatch]], until_us: int) -> bool:
        """Put what becomes due into the queue; False when it is full."""
        with self.lock:
            return self.buffer.publish(parts, until_us)

    def status(self) -> Json:
        """The exact counts at this moment."""
        with self.lock:
            b = self.buffer
            return {
                "published": b.published,
                "served": b.served,
                "acknowledged": b.acknowledged,
                "lag": b.lag,
                "reread": b.reread,
                "bytes": b.buffered_bytes,
                "full": b.full,
                "disconnects": b.expire_cancelled(self._now()),
                "until": b.published_until_us,
            }

    def get_schema(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        """The schema of the stream that the path names."""
        name = descriptor.path[0].decode()
        if name not in self._schemas:
            raise flight.FlightServerError(f"there is no stream {name}, only {', '.join(self._schemas)}")
        return flight.SchemaResult(self._schemas[name])

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """``offsets``, ``acknowledge`` and ``status``."""
        body = parse_json(action.body.to_pybytes() or b"{}")
        try:
            answer = self._answer(action.type, body)
        except (LedgerError, KeyError, TypeError, ValueError) as error:
            raise flight.FlightServerError(f"{action.type} {body}: {error}") from error
        return iter([json.dumps(answer).encode()])

    def _answer(self, action: str, body: Json) -> Json:
        if action == "status":
            return self.status()
        if action == "offsets":
            with self.lock:
                most = body.get("most")
                due = body.get("due") if most is None else self.buffer.due_time_for(int(most))
                found = self.buffer.consistent_offsets(due)
                rows = [[*p, self.buffer.partition(p).acknowledged, at] for p, at in found.offsets.items()]
            return {"due": found.due_us, "offsets": rows}
        if action == "acknowledge":
            offsets = offsets_from_json(body["offsets"])
            with self.lock:
                return {"lag": self.buffer.acknowledge(offsets, self._now()).lag}
        raise KeyError(f"unknown action {action}")

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.RecordBatchStream:
        """A range of one partition."""
        wanted = parse_json(ticket.ticket)
        try:
            partition = StreamPartition(str(wanted["stream"]), int(wanted["partition"]))
            with self.lock:
                lease, batches = self.buffer.lease(partition, int(wanted["start"]), int(wanted["stop"]))
        except (LedgerError, KeyError, TypeError) as error:
            raise flight.FlightServerError(f"cannot read {wanted}: {error}") from error

        def at_end() -> None:
            if context.is_cancelled():
                with self.lock:
                    self.buffer.cancel(lease, self._now())

        context.get_middleware(MIDDLEWARE).at_end = at_end
        return flight.RecordBatchStream(pa.RecordBatchReader.from_batches(self._schemas[partition.stream], batches))


def parse_json(raw: bytes) -> Json:
    """A JSON object from the wire."""
    try:
        read = json.loads(raw)
    except ValueError as error:
        raise flight.FlightServerError(f"not JSON: {raw[:80]!r}") from error
    if not isinstance(read, dict):
        raise flight.FlightServerError(f"not an object: {raw[:80]!r}")
    return read
