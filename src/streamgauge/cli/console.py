"""The output of a command: results on stdout and messages on stderr. The only place that prints."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from streamgauge.model.text import on_one_line, printable
from streamgauge.report.render.json import encode
from streamgauge.run.result import ExitCode

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, SIGINT and SIGTERM raise KeyboardInterrupt, even if the shell had set them to be ignored."""
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


documents_written = 0
"""How many documents this process has put on stdout: with ``--json`` there must be exactly one."""
_WIDTH = 80
results_location = ""
"""A sentence on where the results of this command are stored; empty if they are only on stdout."""


class CliOutput:
    """The output of one command: with ``json``, only one document is printed on stdout."""

    def __init__(self, json: bool) -> None:
        self.json = json
        self.stdout = open_console(stderr=False)
        self.stderr = open_console(stderr=True)

    def note(self, message: "RenderableType", style: str = "") -> None:
        """Print a message on stderr. Markup such as [bold] is not interpreted."""
        self.stderr.print(message, style=style or None, markup=False, soft_wrap=True)  # commands in it stay whole

    def print(self, renderable: "RenderableType") -> None:
        """Print a result on stdout; nothing with ``--json``."""
        if not self.json:
            self.stdout.print(renderable, markup=False)

    def print_line(self, text: str) -> None:
        """Print a result on one line, without wrapping, however narrow the terminal is."""
        if not self.json:
            self.stdout.print(on_one_line(text), markup=False, soft_wrap=True)

    def stored(self, sentence: str) -> None:
        """Remember where the results are stored, for the message if stdout cannot be written."""
        global results_location  # noqa: PLW0603 (one process, one command)
        results_location = sentence

    def exit(self, document: dict[str, Any], code: int = ExitCode.OK) -> NoReturn:
        """Print the document with ``--json``, then exit."""
        if self.json:
            write_document(document)
        raise typer.Exit(int(code))


def open_console(stderr: bool) -> "Console":
    """A console that escapes all control characters in what is printed on it."""
    from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
    from rich.segment import Segment

    class Escaped:
        def __init__(self, renderable: ConsoleRenderable) -> None:
            self._renderable = renderable

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for text, style, control in console.render(self._renderable, options):
                yield Segment(text if control else printable(text), style, control)

    class Escaping(RenderHook):
        def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
            return [Escaped(renderable) for renderable in renderables]

    console = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if console.width < 1:  # COLUMNS=0, or a terminal without a size: nothing at all would be printed
        console.width = _WIDTH
    console.push_render_hook(Escaping())
    return console


def write_document(document: dict[str, Any]) -> None:
    """Print one JSON document on stdout."""
    global documents_written  # noqa: PLW0603 (one process, one stdout)
    documents_written += 1
    write_bytes(encode(document))


def write_bytes(content: bytes) -> None:
    """Write bytes to stdout, whatever its encoding is; if stdout was replaced by a text stream, write text."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(content.decode())
    else:
        buffer.write(content)
    sys.stdout.flush()
