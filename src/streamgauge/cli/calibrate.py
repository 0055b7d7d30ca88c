"""``streamgauge calibrate``: how far this harness can be believed on this machine."""

import os
import secrets
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.cli.talk import Talk
from streamgauge.cli.trouble import Trouble

if TYPE_CHECKING:
    from streamgauge.model.transport import TransportChoice


class Transport(StrEnum):
    """What is between generator and system under test."""

    QUEUE = "queue"
    KAFKA = "kafka"


class Format(StrEnum):
    """How events are written into Kafka's records."""

    BINARY = "binary"
    JSON = "json"
    AVRO = "avro"


def command(
    *,
    out: Out = RUNS,
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores of the system under test, as engine.cores.")] = 1,
    transport: Annotated[
        Transport, typer.Option("--transport", help="What is between generator and system under test.")
    ] = Transport.QUEUE,
    form: Annotated[Format, typer.Option("--format", help="Of Kafka's records, as transport.format.")] = Format.BINARY,
    json: Json = False,
) -> None:
    """Measure the driver itself: its ceilings, its schedule lag, and known capacities and delays."""
    talk = Talk(json)

    from streamgauge.cli.runs import open_store
    from streamgauge.model.units import format_duration
    from streamgauge.report.calibration import render_calibration
    from streamgauge.report.encode import document
    from streamgauge.run.calibrate import ABOUT, calibrate, site
    from streamgauge.run.clock import Limits
    from streamgauge.run.environment import machine_name
    from streamgauge.run.exits import ExitCode
    from streamgauge.run.place import NotEnoughCores, place
    from streamgauge.store.calibrations import keep, workspace

    try:
        placement = place({"cores": cores})
    except NotEnoughCores as error:
        raise Trouble(str(error).replace("engine.cores", "--cores")) from None
    choice, cache = _transport(transport, form, talk)
    root, limits = open_store(out).root, Limits(runtime=runtime_folder(), cache=cache)
    talk.say(f"Calibrating takes about {format_duration(ABOUT)}; keep this machine quiet meanwhile.")
    with (
        workspace(root, secrets.token_hex(3)) as folder,
        site(folder, placement, talk.say, limits, choice) as at,
    ):
        found = calibrate(at, machine_name())
    talk.keep(f"The calibration is in {keep(root, found)}.")
    talk.show(render_calibration(found))
    verdicts = {verdict for verdict, _ in found.problems()}
    code = ExitCode.SUT_FAILED if "FAILED" in verdicts else ExitCode.INVALID if verdicts else ExitCode.FINE
    talk.end(document(code, calibration=asdict(found)), code)


def _transport(transport: Transport, form: Format, talk: Talk) -> "tuple[TransportChoice, Path | None]":
    """The transport with its options, and where the jars of its brokers are."""
    from streamgauge.model.transport import TransportChoice

    if transport is not Transport.KAFKA:
        if form is not Format.BINARY:
            raise Trouble("--format is that of Kafka's records: it needs --transport kafka")
        return TransportChoice(), None
    from streamgauge.cli.kafka import ready_for_kafka
    from streamgauge.transport.kafka.options import KafkaOptions

    cache = ready_for_kafka(talk.say)
    return TransportChoice("kafka", KafkaOptions(format=form.value).dumped()), cache


def runtime_folder() -> Path | None:
    """Where sockets go: $XDG_RUNTIME_DIR, if it is set."""
    named = os.environ.get("XDG_RUNTIME_DIR")
    return Path(named) if named else None
