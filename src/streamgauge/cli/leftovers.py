"""What runs have left on an external system, for example topics on a cluster: listed, and deleted on request."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge.cli.console import CliOutput
from streamgauge.cli.errors import UserError
from streamgauge.cli.inputs import load_experiment
from streamgauge.cli.requirements import require, secrets_of

if TYPE_CHECKING:
    from streamgauge.transports.contract import Leftover, Leftovers


def clean_external(experiment: str, runs: Sequence[str], out: Path, yes: bool, output: CliOutput) -> None:
    """List what runs have left there, and delete it with ``yes``. What a run in progress uses is kept."""
    from rich.text import Text

    from streamgauge.report.render.json import document
    from streamgauge.transports.contract import TransportError

    try:
        system = _open(experiment, output)
        found = system.of_runs(selected(system.runs(), runs, out, output))
        for leftover in found:
            output.print(Text(leftover.summary))
        if yes:
            system.delete(found)
    except TransportError as error:
        raise UserError(f"{error}.") from None
    output.note(_summary(found, system, yes))
    output.exit(document(0, deleted=yes, items=[{**leftover.document} for leftover in found]))


def _open(experiment: str, output: CliOutput) -> "Leftovers":
    """The external system of an experiment. Raises UserError if it uses none."""
    from streamgauge.transports.registry import transport_of

    choice = load_experiment(experiment, None).transport
    transport, options = transport_of(choice)
    if not transport.external(options):
        raise UserError(
            f"{experiment} has no transport.cluster, so there is no external cluster to clean. What a run starts by "
            "itself is removed when the run ends."
        )
    secrets = secrets_of(choice)
    require(transport.requirements(options), output.note)
    system = transport.leftovers(options, secrets)
    if system is None:
        raise UserError(f"Transport {choice.name} leaves nothing that could be cleaned.")
    return system


def selected(there: Sequence[str], named: Sequence[str], out: Path, output: CliOutput) -> list[str]:
    """The ids of the named runs, or of all runs that left something, without those in progress."""
    locked = locked_runs(out, there)
    for run in locked:
        output.note(f"Run {run} is in progress. What it uses is kept.")
    wanted = [_find(each, there, out) for each in named] if named else there
    return [run for run in dict.fromkeys(wanted) if run not in locked]


def _find(named: str, there: Sequence[str], out: Path) -> str:
    """The id of the run with this id or prefix, or of @last."""
    from streamgauge.cli.inputs import find_run

    wanted = find_run(out, named).id if named.startswith("@") else named
    found = [run for run in there if run == wanted] or [run for run in there if run.startswith(wanted)]
    if len(found) != 1:
        problem = f"{len(found)} runs have ids that start with {wanted}" if found else f"Run {wanted} left nothing"
        raise UserError(f"{problem}. Runs that left something: {', '.join(there) or 'none'}.")
    return found[0]


def locked_runs(out: Path, there: Sequence[str]) -> set[str]:
    """The ids of these runs that are in progress on this machine."""
    from streamgauge.cli.inputs import open_store
    from streamgauge.store import RunLocked

    store, locked = open_store(out), set[str]()
    for summary in store.runs():
        if summary.id in there and summary.state != "unreadable":
            try:
                with store.find(summary.id).lock():
                    continue
            except RunLocked:
                locked.add(summary.id)
    return locked


def _summary(found: "Sequence[Leftover]", system: "Leftovers", deleted: bool) -> str:
    if not found:
        return f"Nothing to clean on {system.place}."
    runs = len({leftover.run for leftover in found})
    count = f"{len(found)} {system.noun}{'s' * (len(found) != 1)} of {runs} run{'s' * (runs != 1)}"
    things = f"{count} on {system.place}"
    return f"Deleted {things}." if deleted else f"{things}. Nothing was deleted; add --yes to delete."
