"""``streamgauge setup``: check or install what an engine or a transport needs from the system."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgauge.cli.console import CliOutput
from streamgauge.cli.errors import UserError
from streamgauge.cli.options import Json
from streamgauge.engines.registry import engine_names
from streamgauge.transports.registry import transport_names

if TYPE_CHECKING:
    from streamgauge.install.ensure import Status

_NAMES = (*engine_names(), *transport_names())


def part_names(incomplete: str) -> list[str]:
    """For the shell: the engines and transports."""
    return [name for name in _NAMES if name.startswith(incomplete)]


def _known_part(name: str) -> str:
    if name not in _NAMES:
        raise typer.BadParameter(f"{name!r} is not an engine or a transport. Known: {', '.join(_NAMES)}.")
    return name


def command(
    part: Annotated[
        str,
        typer.Argument(
            metavar="PART",
            parser=_known_part,
            autocompletion=part_names,
            help=f"The engine ({', '.join(engine_names())}) or the transport ({', '.join(transport_names())}).",
        ),
    ],
    json: Json = False,
) -> None:
    """Check or install what an engine or a transport needs: Java, Maven and jars.

    Java and Maven are installed with the package manager of the system if no password is needed. Otherwise the command
    to run is printed.
    """
    output = CliOutput(json)

    from rich.text import Text

    from streamgauge.cli.environment import locations
    from streamgauge.cli.requirements import parts
    from streamgauge.install.ensure import RequirementError, ensure
    from streamgauge.report.render.json import document

    needed = [each for known in parts() if known.name == part for each in known.requirements]
    try:
        found = ensure(needed, locations(), output.note)
    except RequirementError as error:
        raise UserError(str(error)) from None
    output.print(Text(f"{part}: {', '.join(status.text for status in found) or 'needs nothing else'}"))
    output.exit(document(0, part=part, **_fields(found)))


def _fields(found: "Sequence[Status]") -> dict[str, Any]:
    """What was found, for the JSON document: a field for each package, and for Java and the jars."""
    from streamgauge.install.requirements import JarSet, JavaRuntime, PythonPackage

    fields: dict[str, Any] = {}
    jars: list[dict[str, str]] = []
    for status in found:
        match status.requirement:
            case PythonPackage() as package:
                fields[package.field or package.name] = status.version
            case JavaRuntime():
                fields["java"] = {
                    "version": status.version,
                    "home": str(status.folder),
                    "installed": status.installed,
                }
            case JarSet() as jar_set:
                jars.append({"name": jar_set.name, "version": jar_set.version, "folder": str(status.folder)})
    if jars:
        fetched = any(status.installed for status in found if isinstance(status.requirement, JarSet))
        fields |= {"jars": jars, "fetched": fetched}
    return fields
