"""A line to a process of ours that serves many trials: JSON, a line each, over a Unix socket.

The socket lies in the runtime folder, which is its owner's alone, and the first thing on a connection is the
token. The one side asks and gets an answer with the same number; the other may also tell of its own accord.
"""

import contextlib
import hmac
import json
import select
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

Json = dict[str, Any]
_CHUNK = 1 << 16
_LONGEST_TOKEN = 1024


class LineError(ConnectionError):
    """The other side is gone, or did not answer in time; the sentence says which."""


class _Lines:
    """Whole lines out of a socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self._rest = connection, b""
        self._waiting: list[bytes] = []

    def next(self, seconds: float | None) -> Json | None:
        """The next line, or None if none has come in this time. Raises at the end."""
        while not self._waiting:
            if not select.select([self.connection], [], [], seconds)[0]:
                return None
            got = self.connection.recv(_CHUNK)
            if not got:
                raise LineError("the other side has closed the line")
            *self._waiting, self._rest = (self._rest + got).split(b"\n")
        said: Json = json.loads(self._waiting.pop(0))
        return said


class Line:
    """The side that asks."""

    def __init__(self, path: Path, token: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._lines, self._number = _Lines(self._socket), 0
        self._told: list[Json] = []
        try:
            self._socket.connect(str(path))
            self._socket.sendall(token.encode() + b"\n")
        except OSError as error:
            self._socket.close()
            raise LineError(f"the line is broken: {error}") from error

    def ask(self, action: str, seconds: float, **body: object) -> Json:
        """The answer to a question; what is told meanwhile is kept for ``told``."""
        self._number += 1
        try:
            self._socket.sendall(json.dumps({"number": self._number, "action": action, **body}).encode() + b"\n")
        except OSError as error:
            raise LineError(f"the line is broken: {error}") from error
        while True:
            said = self._next(seconds)
            if said is None:
                raise LineError(f"no answer to {action} within {seconds:g} s")
            if said.get("number") == self._number:
                return said
            self._told.append(said)

    def told(self) -> list[Json]:
        """What the other side has told of its own accord since the last time. Raises if it is gone."""
        while (said := self._next(0.0)) is not None:
            self._told.append(said)
        told, self._told = self._told, []
        return told

    def _next(self, seconds: float) -> Json | None:
        try:
            return self._lines.next(seconds)
        except OSError as error:
            raise LineError(str(error)) from error

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class LineServer:
    """The side that answers: one caller at a time, who knows the token."""

    def __init__(self, path: Path, token: str, lock: AbstractContextManager[Any]) -> None:
        """``lock`` keeps the lines of several threads apart."""
        self._token = token.encode()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(str(path))
        self._door.listen(1)
        self._caller: socket.socket | None = None
        self._lock = lock

    def serve(self, answer: Callable[[str, Json], Json]) -> None:
        """Answer until the caller says ``quit``. Whoever does not know the token is hung up on."""
        while True:
            connection, _ = self._door.accept()
            with connection:
                if not self._knows(connection):
                    continue
                self._caller = connection
                if self._converse(connection, answer):
                    return

    def _knows(self, connection: socket.socket) -> bool:
        given = b""
        while not given.endswith(b"\n") and len(given) < _LONGEST_TOKEN:
            got = connection.recv(1)
            if not got:
                return False
            given += got
        return hmac.compare_digest(given.strip(), self._token)

    def _converse(self, connection: socket.socket, answer: Callable[[str, Json], Json]) -> bool:
        """True once told to quit, False when the caller is gone."""
        lines = _Lines(connection)
        while True:
            try:
                said = lines.next(None)
            except OSError:
                return False
            if said is None or said["action"] == "quit":
                return True
            number, action = said.pop("number"), said.pop("action")
            self.tell({"number": number, **answer(action, said)})

    def tell(self, what: Json) -> None:
        """Say something to the caller, from any thread; if it is gone, nobody hears it."""
        with self._lock, contextlib.suppress(OSError):
            if self._caller is not None:
                self._caller.sendall(json.dumps(what).encode() + b"\n")
