"""The control channel between the controller and a child process: one JSON object per line, over a Unix socket.

The socket is in the runtime folder, which only its owner can open, and the first line of a connection is a token. The
controller sends requests and gets a response with the same number. The child can also send notifications.
"""

import contextlib
import hmac
import json
import secrets
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Handle = Callable[[str, Json], Json]
"""Handles a request: its action and its content, to the content of the response. It may raise ControlRefused."""
_CHUNK = 1 << 16
_MAX_TOKEN = 1024


class ControlError(ConnectionError):
    """The child has ended or did not respond in time; the message names it."""


class ControlRefused(ValueError):
    """The child refuses a request; the message gives the reason."""


def new_token() -> str:
    """A secret for one channel. It reaches the child through its standard input only."""
    return secrets.token_urlsafe(32)


class _Lines:
    """Whole lines out of a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self._rest = connection, b""
        self._waiting: list[bytes] = []

    def next(self, seconds: float | None) -> Json | None:
        """The next line, or None if none has arrived in this time. Raises at the end."""
        while not self._waiting:
            if not select.select([self.connection], [], [], seconds)[0]:
                return None
            received = self.connection.recv(_CHUNK)
            if not received:
                raise ControlError("the process has closed its control channel")
            *self._waiting, self._rest = (self._rest + received).split(b"\n")
        line: Json = json.loads(self._waiting.pop(0))
        return line


class ControlClient:
    """The controller's end."""

    def __init__(self, path: Path, token: str, timeout: float = 10.0) -> None:
        """``timeout`` is how many seconds a response may take, unless a request sets another one."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lines, self._number, self._timeout = _Lines(self._socket), 0, timeout
        self._notifications: list[Json] = []
        try:
            self._socket.connect(str(path))
            self._socket.sendall(token.encode() + b"\n")
        except OSError as error:
            self._socket.close()
            raise ControlError(f"the control channel is broken: {error}") from error

    def request(self, action: str, seconds: float | None = None, **content: object) -> Json:
        """The response to a request; notifications that arrive meanwhile are kept for ``notifications``."""
        limit = self._timeout if seconds is None else seconds
        self._number += 1
        try:
            self._socket.sendall(json.dumps({"number": self._number, "action": action, **content}).encode() + b"\n")
        except OSError as error:
            raise ControlError(f"the control channel is broken: {error}") from error
        while True:
            line = self._next(limit)
            if line is None:
                raise ControlError(f"no response to {action} within {limit:g} s")
            if "number" not in line:
                self._notifications.append(line)
            elif line["number"] == self._number:  # a response that came too late is of no use
                if "refusal" in line:
                    raise ControlRefused(str(line["refusal"]))
                return line

    def notifications(self) -> list[Json]:
        """The notifications since the last call. Raises if the child has ended and none is left to return."""
        try:
            while (line := self._next(0.0)) is not None:
                if "number" not in line:
                    self._notifications.append(line)
        except ControlError:
            if not self._notifications:
                raise
        arrived, self._notifications = self._notifications, []
        return arrived

    def _next(self, seconds: float) -> Json | None:
        try:
            return self._lines.next(seconds)
        except OSError as error:
            raise ControlError(str(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class ControlServer:
    """The child's end: one caller at a time, which has the token."""

    def __init__(self, path: Path, token: str) -> None:
        self._token = token.encode()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(1)
        self._caller: socket.socket | None = None
        self._lock = threading.Lock()
        """Keeps the lines of several threads apart."""
        self._responding = threading.Lock()

    def serve(self, handle: Handle) -> None:
        """Respond until the caller requests ``quit``. A caller without the token is disconnected."""
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if not self._authenticate(connection):
                    continue
                self._caller = connection
                if self._handle(connection, handle):
                    return

    def serve_in_background(self, handle: Handle) -> None:
        """The same in a thread, which does not keep the process alive."""
        threading.Thread(target=self.serve, args=(handle,), name="control", daemon=True).start()

    def _authenticate(self, connection: socket.socket) -> bool:
        given = b""
        while not given.endswith(b"\n") and len(given) < _MAX_TOKEN:
            received = connection.recv(1)
            if not received:
                return False
            given += received
        return hmac.compare_digest(given.strip(), self._token)

    def _handle(self, connection: socket.socket, handle: Handle) -> bool:
        """True once ``quit`` was requested, False when the caller has ended."""
        lines = _Lines(connection)
        while True:
            try:
                line = lines.next(None)
            except OSError:
                return False
            if line is None:
                return False
            number, action = line.pop("number"), line.pop("action")
            with self._responding:
                try:
                    response = handle(action, line)
                except ControlRefused as error:
                    response = {"refusal": str(error)}
                self.notify({"number": number, **response})
            if action == "quit":
                return True

    def wait_responded(self, seconds: float = 5.0) -> None:
        """Wait until the response to a request that is being handled is sent, such as to the one to end."""
        if self._responding.acquire(timeout=seconds):
            self._responding.release()

    def notify(self, notification: Json) -> None:
        """Send a notification, from any thread; if there is no caller, it is dropped."""
        with self._lock, contextlib.suppress(OSError):
            if self._caller is not None:
                self._caller.sendall(json.dumps(notification).encode() + b"\n")
