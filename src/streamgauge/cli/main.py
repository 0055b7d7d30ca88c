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
from streamgauge.cli import console
from streamgauge.cli.commands import (
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
    workloads,
)
from streamgauge.cli.commands import list as list_
from streamgauge.cli.console import interruptible
from streamgauge.cli.errors import UserError, explain, os_error_code
from streamgauge.cli.output_streams import lost_stdout, open_streams
from streamgauge.model.text import printable
from streamgauge.processes.clock import now
from streamgauge.report.render.json import document
from streamgauge.run.result import ExitCode

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
"""Base class of the command-line parser's errors. Some versions of typer include this parser, others import it."""


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

    EXPERIMENT is an experiment file or the name of a built-in experiment; `streamgauge experiments` lists these. Start
    with `streamgauge run quickstart`, which needs Spark and Java.

    RUN is the id of a run, a unique prefix of it, the name of an experiment (its latest run), @last or @last~1.
    """


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code. Every error is handled here."""
    console.documents_written, console.results_location = 0, ""
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    if argv is None:
        open_streams()
    try:
        with interruptible():
            completion.prepare_completion()
            code = int(app(arguments, prog_name="streamgauge", standalone_mode=False) or 0)
    except BaseException as error:
        code = _handle(error, arguments)
    if argv is None:
        _exit_now(_written(code))
    sys.exit(code)


def _written(code: int) -> int:
    """The exit code, after a message on stderr if not everything was written to stdout.

    The exit code does not change if the results are stored elsewhere too, or if the reader of stdout ended first, as
    in ``streamgauge list | head``.
    """
    lost = lost_stdout()
    if lost is None or (lost.errno == errno.EPIPE and not console.results_location):
        return code
    message = f"The output could not be written to stdout: {lost.strerror}. {console.results_location}"
    print(printable(message.strip()), file=sys.stderr)
    return code if console.results_location else code or ExitCode.USAGE


def _exit_now(code: int) -> NoReturn:
    """End the process immediately, after everything was written.

    All files are on the disk and all child processes have ended by now. The usual exit of Python would destroy Arrow's
    threads while one of them is still working for an interrupted command, and the abort would replace the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _handle(error: BaseException, arguments: Sequence[str]) -> int:
    """Print the error that ended the command, and return its exit code."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else ExitCode.INTERNAL_ERROR
    message, code, problems = _message_and_code(error, arguments)
    if "--json" in arguments and not console.documents_written:
        console.write_document(document(code, error=message, problems=problems))
    print(printable(message), file=sys.stderr)
    return code


def _message_and_code(error: BaseException, arguments: Sequence[str]) -> tuple[str, ExitCode, Sequence[dict[str, Any]]]:
    if isinstance(error, UserError):
        return error.message, error.code, error.problems
    if isinstance(error, _USAGE_ERRORS):
        problem = getattr(error, "format_message", error.__str__)()
        return f"{problem} See `streamgauge --help`.", ExitCode.USAGE, ()
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return "Interrupted.", ExitCode.INTERRUPTED, ()
    if (code := _known_error_code(error)) is not None:
        return str(error), code, ()
    if isinstance(error, OSError) and error.strerror:
        return explain(error), os_error_code(error), ()
    return _write_bug_report(error, arguments), ExitCode.INTERNAL_ERROR, ()


def _known_error_code(error: BaseException) -> ExitCode | None:
    """The exit code of an error whose message is for the user; None for all others."""
    from streamgauge.processes.launch import LaunchError
    from streamgauge.store import StoreError
    from streamgauge.transports.contract import TransportError

    if isinstance(error, StoreError):
        return ExitCode.USAGE
    return ExitCode.INVALID if isinstance(error, (LaunchError, TransportError)) else None


def _write_bug_report(error: BaseException, arguments: Sequence[str]) -> str:
    """Write the details of an internal error to a file, and return the message for the user."""
    from importlib import metadata

    packages = sorted(f"{d.metadata['Name']} {d.version}" for d in metadata.distributions())
    lines = [
        f"streamgauge {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"arguments: {shlex.join(arguments)}",
        "".join(traceback.format_exception(error)),
        *packages,
    ]
    name = f"streamgauge-bug-{now():%Y%m%dT%H%M%S}-{os.getpid()}.txt"
    for folder in (_out_folder(arguments), Path(tempfile.gettempdir())):
        try:
            (folder / name).write_text("\n".join(lines), encoding="utf-8")
        except (OSError, ValueError):  # ValueError: a name that no file can have
            continue
        return (
            f"Internal error in streamgauge: {error!r:.200}. The details are in {folder / name}. "
            "Please attach this file to a bug report."
        )
    return "\n".join(["Internal error in streamgauge. Please attach these details to a bug report:", *lines])


def _out_folder(arguments: Sequence[str]) -> Path:
    for at, argument in enumerate(arguments):
        if argument == "--out" and at + 1 < len(arguments):
            return Path(arguments[at + 1])
        if argument.startswith("--out="):
            return Path(argument.removeprefix("--out="))
    return Path("runs")
