"""Who may talk to a Flight server of ours: those who know one of its tokens, and each in its role."""

import hmac
from collections.abc import Callable, Mapping
from typing import Any

from pyarrow import flight

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
