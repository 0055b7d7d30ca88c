"""streamgauge: the command line. A table of contents; each command has its own file."""

import errno
import os
import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from streamgauge import __version__
from streamgauge.cli import (
    calibrate,
    clean,
    completion,
    doctor,
    engines,
    experiments,
    init,
    plan,
    report,
    resume,
    run,
    schema,
    setup,
    show,
    talk,
    workloads,
)
from streamgauge.cli import list as list_
from streamgauge.cli.interrupt import interruptible
from streamgauge.cli.java import settle_java
from streamgauge.cli.os_errors import exit_code, explain
from streamgauge.cli.streams import lost_stdout, open_streams
from streamgauge.cli.trouble import Trouble
from streamgauge.model.text import printable
from streamgauge.report.encode import document
from streamgauge.run.clock import now
from streamgauge.run.exits import ExitCode

app = typer.Typer(
    name="streamgauge",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (
    run,
    plan,
    calibrate,
    resume,
    list_,
    show,
    report,
    init,
    schema,
    doctor,
    setup,
    clean,
    experiments,
    engines,
    workloads,
    completion,
):
    app.command(command.__name__.rsplit(".", 1)[-1])(command.command)

_USAGE_ERRORS = typer.BadParameter.__mro__[2]
"""The parser's own errors; typer brings its parser along or borrows it, by version."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamgauge {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Measure the highest load that a streaming job can sustain, and its latency at that load.

    `streamgauge experiments` lists the built-in experiments. `streamgauge run quickstart` runs the first of them.
    """


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code. The one place where everything ends up."""
    talk.documents_written, talk.results_kept = 0, ""
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    if argv is None:
        open_streams()
    try:
        with interruptible():
            if not completion.prepare_completion():
                settle_java()
            code = int(app(arguments, prog_name="streamgauge", standalone_mode=False) or 0)
    except BaseException as error:
        code = _ended_by(error, arguments)
    if argv is None:
        _leave(_written(code))
    sys.exit(code)


def _written(code: int) -> int:
    """The exit code, after a sentence on stderr if stdout has not got everything.

    A command that has kept its results elsewhere keeps its exit code. So does one whose reader has seen enough, as in
    ``streamgauge list | head``.
    """
    lost = lost_stdout()
    if lost is None or (lost.errno == errno.EPIPE and not talk.results_kept):
        return code
    sentence = f"The output could not be written to stdout: {lost.strerror}. {talk.results_kept}"
    print(printable(sentence.strip()), file=sys.stderr)
    return code if talk.results_kept else code or ExitCode.USAGE


def _leave(code: int) -> NoReturn:
    """End the process immediately, after everything was written.

    Everything is on the disk and every child is gone by now. Python's own way out would take Arrow's threads apart
    while one of them still works for a command that was interrupted, and the abort would take the exit code's place.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _ended_by(error: BaseException, arguments: Sequence[str]) -> int:
    """Whatever ended the command, as a sentence and an exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else ExitCode.BUG
    sentence, code, problems = _in_words(error, arguments)
    if "--json" in arguments and not talk.documents_written:
        talk.write_document(document(code, error=sentence, problems=problems))
    print(printable(sentence), file=sys.stderr)
    return code


def _in_words(error: BaseException, arguments: Sequence[str]) -> tuple[str, ExitCode, Sequence[dict[str, Any]]]:
    if isinstance(error, Trouble):
        return error.sentence, error.code, error.problems
    if isinstance(error, _USAGE_ERRORS):
        said = getattr(error, "format_message", error.__str__)()
        return f"{said} See `streamgauge --help`.", ExitCode.USAGE, ()
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return "Interrupted.", ExitCode.INTERRUPTED, ()
    if (code := _expected(error)) is not None:
        return str(error), code, ()
    if isinstance(error, OSError) and error.strerror:
        return explain(error), exit_code(error), ()
    return _bug(error, arguments), ExitCode.BUG, ()


def _expected(error: BaseException) -> ExitCode | None:
    """The code of an error that says in its own words what is wrong; None for all others."""
    from streamgauge.run.launch import LaunchError
    from streamgauge.store import StoreError
    from streamgauge.transport.kafka.protocol import KafkaFailure

    if isinstance(error, StoreError):
        return ExitCode.USAGE
    return ExitCode.INVALID if isinstance(error, (LaunchError, KafkaFailure)) else None


def _bug(error: BaseException, arguments: Sequence[str]) -> str:
    """Write down everything needed to find a bug of ours, and say where."""
    from importlib import metadata

    packages = sorted(f"{d.metadata['Name']} {d.version}" for d in metadata.distributions())
    lines = [
        f"streamgauge {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"arguments: {shlex.join(arguments)}",
        "".join(traceback.format_exception(error)),
        *packages,
    ]
    name = f"streamgauge-bug-{now():%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    for folder in (_out_of(arguments), Path(tempfile.gettempdir())):
        try:
            (folder / name).write_text("\n".join(lines), encoding="utf-8")
        except (OSError, ValueError):  # ValueError: a name that no file can have
            continue
        return f"This is a bug of streamgauge, not yours: {error!r:.200}. Please send us {folder / name}"
    return "\n".join(["This is a bug of streamgauge, not yours. Please send us this:", *lines])


def _out_of(arguments: Sequence[str]) -> Path:
    for at, argument in enumerate(arguments):
        if argument == "--out" and at + 1 < len(arguments):
            return Path(arguments[at + 1])
        if argument.startswith("--out="):
            return Path(argument.removeprefix("--out="))
    return Path("runs")
