"""Talk: stdout is data, stderr is talk. The only place that prints."""

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from streamgauge.model.text import on_one_line, printable
from streamgauge.report.encode import encode
from streamgauge.run.exits import ExitCode

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

documents_written = 0
"""How many documents this process has put on stdout: with ``--json`` there must be exactly one."""
_WIDTH = 80
results_kept = ""
"""A sentence that says where the results of this command are, apart from stdout; empty if they are nowhere else."""


class Talk:
    """How one command speaks: ``json`` puts one document on stdout and nothing else."""

    def __init__(self, json: bool) -> None:
        self.json = json
        self.stdout = open_console(stderr=False)
        self.stderr = open_console(stderr=True)

    def say(self, sentence: "RenderableType", style: str = "") -> None:
        """Talk, on stderr. Text is taken as it is: brackets in it are no markup."""
        self.stderr.print(sentence, style=style or None, markup=False, soft_wrap=True)  # commands in it stay whole

    def show(self, renderable: "RenderableType") -> None:
        """Data for a person, on stdout; nothing where a document is wanted."""
        if not self.json:
            self.stdout.print(renderable, markup=False)

    def show_line(self, text: str) -> None:
        """The same for one line, which stays one line however narrow the terminal is."""
        if not self.json:
            self.stdout.print(on_one_line(text), markup=False, soft_wrap=True)

    def keep(self, sentence: str) -> None:
        """Note where the results are apart from stdout, for the case that stdout cannot be written."""
        global results_kept  # noqa: PLW0603 (one process, one command)
        results_kept = sentence

    def end(self, document: dict[str, Any], code: int = ExitCode.FINE) -> NoReturn:
        """The document if it is wanted, then the exit."""
        if self.json:
            write_document(document)
        raise typer.Exit(int(code))


def open_console(stderr: bool) -> "Console":
    """A console that escapes the control characters of everything that is printed on it, and obeys none of them."""
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
    if console.width < 1:  # COLUMNS=0, or a terminal that does not know its size: nothing at all would be printed
        console.width = _WIDTH
    console.push_render_hook(Escaping())
    return console


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
