"""``streamgauge calibrate``: measure the limits and the measurement errors of streamgauge on this machine."""

import os
import secrets
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.cli.cluster import with_kafka
from streamgauge.cli.console import Talk
from streamgauge.cli.errors import Trouble
from streamgauge.cli.options import RUNS, Json, Out

if TYPE_CHECKING:
    from streamgauge.model.experiment import TransportChoice


class Transport(StrEnum):
    """How events reach the system under test."""

    QUEUE = "queue"
    KAFKA = "kafka"


class Format(StrEnum):
    """The formats of records on Kafka."""

    BINARY = "binary"
    JSON = "json"
    AVRO = "avro"


Cores = Annotated[
    int,
    typer.Option("--cores", min=1, help="Cores of the system under test; same as engine.cores in the experiment file."),
]
Over = Annotated[
    Transport,
    typer.Option(
        "--transport",
        help="How events reach the system under test: queue = memory of the load driver, kafka = local Kafka broker.",
    ),
]
Records = Annotated[
    Format,
    typer.Option("--format", help="Record format on Kafka; same as transport.format in the experiment file."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="EXPERIMENT",
        help="Measure on the external Kafka cluster of this experiment, with its transport options.",
    ),
]


def command(
    *,
    out: Out = RUNS,
    cores: Cores = 1,
    transport: Over = Transport.QUEUE,
    form: Records = Format.BINARY,
    cluster: Cluster = None,
    json: Json = False,
) -> None:
    """Measure how much load streamgauge can generate on this machine and how accurate its measurements are."""
    talk = Talk(json)

    from streamgauge.cli.inputs import open_store
    from streamgauge.model.units import format_duration
    from streamgauge.processes.placement import NotEnoughCores, place
    from streamgauge.report.render.json import document
    from streamgauge.report.render.terminal import render_calibration
    from streamgauge.run.calibrate.calibrate import ABOUT, calibrate, site
    from streamgauge.run.environment import machine_name
    from streamgauge.run.limits import Limits
    from streamgauge.run.result import ExitCode
    from streamgauge.store.calibrations import save, workspace

    try:
        placement = place({"cores": cores})
    except NotEnoughCores as error:
        raise Trouble(str(error).replace("engine.cores", "--cores")) from None
    choice = _of_experiment(cluster, form) if cluster is not None else _transport(transport, form)
    root, limits = open_store(out).root, with_kafka(Limits(runtime=runtime_folder()), choice, talk.say)
    talk.say(f"The calibration takes about {format_duration(ABOUT)}. Run nothing else on this machine until it ends.")
    with (
        workspace(root, secrets.token_hex(3)) as folder,
        site(folder, placement, talk.say, limits, choice) as at,
    ):
        found = calibrate(at, machine_name())
    talk.keep(f"The calibration is in {save(root, found)}.")
    talk.show(render_calibration(found))
    verdicts = {verdict for verdict, _ in found.problems()}
    code = ExitCode.SUT_FAILED if "FAILED" in verdicts else ExitCode.INVALID if verdicts else ExitCode.FINE
    talk.end(document(code, calibration=asdict(found)), code)


def _transport(transport: Transport, form: Format) -> "TransportChoice":
    """The transport with its options; Kafka runs on local brokers."""
    from streamgauge.model.experiment import TransportChoice

    if transport is not Transport.KAFKA:
        if form is not Format.BINARY:
            raise Trouble("--format sets the record format on Kafka. Add --transport kafka, or omit --format.")
        return TransportChoice()
    from streamgauge.transports.kafka.options import KafkaOptions

    return TransportChoice("kafka", KafkaOptions(format=form.value).dumped())


def _of_experiment(experiment: str, form: Format) -> "TransportChoice":
    """The transport of an experiment on an external Kafka cluster."""
    from streamgauge.cli.inputs import load_experiment
    from streamgauge.transports.kafka.options import kafka_options

    choice = load_experiment(experiment, None).transport
    options = kafka_options(choice)
    if options is None or options.cluster is None:
        raise Trouble(f"{experiment} has no transport.cluster. Use --transport kafka instead of --cluster.")
    if form is not Format.BINARY:
        raise Trouble(f"--cluster takes the format from {experiment}. Set transport.format there, and omit --format.")
    return choice


def runtime_folder() -> Path | None:
    """The folder for sockets: $XDG_RUNTIME_DIR, if it is set."""
    named = os.environ.get("XDG_RUNTIME_DIR")
    return Path(named) if named else None
