"""Talk: stdout is data, stderr is talk. The only place that prints."""

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from streamgauge.report.encode import encode
from streamgauge.run.exits import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType

documents_written = 0
"""How many documents this process has put on stdout: with ``--json`` there must be exactly one."""


class Talk:
    """How one command speaks: ``json`` puts one document on stdout and nothing else."""

    def __init__(self, json: bool) -> None:
        from rich.console import Console

        class Open(Console):
            """A console that leaves a broken pipe to ``main``, which ends quietly."""

            def on_broken_pipe(self) -> None:
                raise BrokenPipeError

        self.json = json
        self.stdout = Open(highlight=False, soft_wrap=False)
        self.stderr = Open(stderr=True, highlight=False, soft_wrap=False)

    def say(self, sentence: "RenderableType", style: str = "") -> None:
        """Talk, on stderr. Text is taken as it is: brackets in it are no markup."""
        self.stderr.print(sentence, style=style or None, markup=False, soft_wrap=True)  # commands in it stay whole

    def show(self, renderable: "RenderableType") -> None:
        """Data for a person, on stdout; nothing where a document is wanted."""
        if not self.json:
            self.stdout.print(renderable, markup=False)

    def end(self, document: dict[str, Any], code: int = ExitCode.FINE) -> NoReturn:
        """The document if it is wanted, then the exit."""
        if self.json:
            write_document(document)
        raise typer.Exit(int(code))


def write_document(document: dict[str, Any]) -> None:
    """Put one document on stdout."""
    global documents_written  # noqa: PLW0603 (one process, one stdout)
    documents_written += 1
    write_bytes(encode(document))


def write_bytes(content: bytes) -> None:
    """Bytes on stdout, whatever its encoding is; a stand-in for stdout gets text."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(content.decode())
    else:
        buffer.write(content)
    sys.stdout.flush()


def silence_stdout() -> None:
    """After a broken pipe: let the interpreter's last flush go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
