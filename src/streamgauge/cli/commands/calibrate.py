"""``streamgauge calibrate``: measure the limits and the measurement errors of streamgauge on this machine."""

import secrets
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.cli.console import CliOutput
from streamgauge.cli.environment import runtime_folder
from streamgauge.cli.errors import UserError
from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.cli.requirements import prepare
from streamgauge.model.experiment import TransportChoice
from streamgauge.transports.registry import choice_of, transports

if TYPE_CHECKING:
    from streamgauge.transports.contract import Transport


def _one_of(*names: str) -> Callable[[str], str]:
    """A parser that accepts these names."""

    def parse(name: str) -> str:
        if name not in names:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, names))}.")
        return name

    return parse


_TRANSPORTS, _DEFAULT = transports(), TransportChoice().name
_FORMATS = tuple(dict.fromkeys(form for transport in _TRANSPORTS.values() for form in transport.formats))
_WITH_FORMATS = [name for name, transport in _TRANSPORTS.items() if transport.formats]
_SUMMARIES = "; ".join(f"{name} = {transport.summary}" for name, transport in _TRANSPORTS.items())

Cores = Annotated[
    int,
    typer.Option("--cores", min=1, help="Cores of the system under test; same as engine.cores in the experiment file."),
]
TransportOption = Annotated[
    str,
    typer.Option(
        "--transport",
        metavar="|".join(_TRANSPORTS),
        parser=_one_of(*_TRANSPORTS),
        autocompletion=lambda incomplete: [name for name in _TRANSPORTS if name.startswith(incomplete)],
        help=f"How events reach the system under test: {_SUMMARIES}.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="|".join(_FORMATS),
        parser=_one_of(*_FORMATS),
        autocompletion=lambda incomplete: [name for name in _FORMATS if name.startswith(incomplete)],
        help=f"Record format of transport {' or '.join(_WITH_FORMATS)}; same as transport.format in the experiment "
        "file, with the same default.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="EXPERIMENT",
        help="Measure on the external cluster of this experiment, with its transport options.",
    ),
]


def command(
    *,
    out: Out = RUNS,
    cores: Cores = 1,
    transport: TransportOption = _DEFAULT,
    form: FormatOption = None,
    cluster: Cluster = None,
    json: Json = False,
) -> None:
    """Measure how much load streamgauge can generate on this machine and how accurate its measurements are."""
    output = CliOutput(json)

    from streamgauge.cli.inputs import open_store
    from streamgauge.model.units import duration_text
    from streamgauge.processes.placement import NotEnoughCores, assign_cores
    from streamgauge.report.render.json import document
    from streamgauge.report.render.terminal import render_calibration
    from streamgauge.run.calibrate.calibrate import EXPECTED_DURATION, calibrate, open_setup
    from streamgauge.run.environment import machine_name
    from streamgauge.run.result import ExitCode
    from streamgauge.run.trial.setup import RunLimits
    from streamgauge.store.calibrations import save, workspace

    try:
        placement = assign_cores(cores)
    except NotEnoughCores as error:
        raise UserError(str(error).replace("engine.cores", "--cores")) from None
    choice = _of_experiment(cluster, form) if cluster is not None else _local(transport, form)
    root, limits = open_store(out).root, prepare(RunLimits(runtime=runtime_folder()), choice, output.note)
    output.note(
        f"The calibration takes about {duration_text(EXPECTED_DURATION)}. Run nothing else on this machine until it "
        "ends."
    )
    with (
        workspace(root, secrets.token_hex(3)) as folder,
        open_setup(folder, placement, output.note, limits, choice) as setup,
    ):
        found = calibrate(setup, machine_name())
    output.stored(f"The calibration is in {save(root, found)}.")
    output.print(render_calibration(found))
    verdicts = {verdict for verdict, _ in found.problems()}
    code = ExitCode.SUT_FAILED if "FAILED" in verdicts else ExitCode.INVALID if verdicts else ExitCode.OK
    output.exit(document(code, calibration=asdict(found)), code)


def _local(transport: str, form: str | None) -> TransportChoice:
    """A transport on this machine, with default options except for the format."""
    chosen: Transport = _TRANSPORTS[transport]
    if form is not None and form not in chosen.formats:
        known = f"the formats {', '.join(chosen.formats)}" if chosen.formats else "no record formats"
        fitting = [name for name in _WITH_FORMATS if form in _TRANSPORTS[name].formats]
        raise UserError(
            f"Transport {transport} has {known}. Add --transport {' or '.join(fitting)}, or omit --format {form}."
        )
    options = chosen.options.model_validate({} if form is None else {"format": form})
    return choice_of(chosen, options)


def _of_experiment(experiment: str, form: str | None) -> TransportChoice:
    """The transport of an experiment on an external cluster."""
    from streamgauge.cli.inputs import load_experiment
    from streamgauge.transports.registry import transport_of

    choice = load_experiment(experiment, None).transport
    transport, options = transport_of(choice)
    if not transport.external(options):
        raise UserError(f"{experiment} has no transport.cluster. Use --transport {choice.name} instead of --cluster.")
    if form is not None:
        raise UserError(f"--cluster takes the format from {experiment}. Set transport.format there, and omit --format.")
    return choice
