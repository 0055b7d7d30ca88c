"""``streamgauge calibrate``: how far this harness can be believed on this machine."""

import os
import secrets
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.cli.options import RUNS, Json, Out
from streamgauge.cli.talk import Talk
from streamgauge.cli.trouble import Trouble


def command(
    *,
    out: Out = RUNS,
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores of the system under test, as engine.cores.")] = 1,
    json: Json = False,
) -> None:
    """Measure the driver itself: its ceilings, its schedule lag, and known capacities and delays."""
    talk = Talk(json)

    from streamgauge.cli.runs import open_store
    from streamgauge.model.units import format_duration
    from streamgauge.report.calibration import render_calibration
    from streamgauge.report.encode import document
    from streamgauge.run.calibrate import ABOUT, calibrate
    from streamgauge.run.environment import machine_name
    from streamgauge.run.exits import ExitCode
    from streamgauge.run.place import NotEnoughCores, place
    from streamgauge.store.calibrations import keep

    try:
        placement = place({"cores": cores})
    except NotEnoughCores as error:
        raise Trouble(str(error).replace("engine.cores", "--cores")) from None
    root = open_store(out).root
    talk.say(f"Calibrating takes about {format_duration(ABOUT)}; keep this machine quiet meanwhile.")
    found = calibrate(root, machine_name(), secrets.token_hex(3), placement, say=talk.say, runtime=runtime_folder())
    keep(root, found)
    talk.show(render_calibration(found))
    verdicts = {verdict for verdict, _ in found.problems()}
    code = ExitCode.SUT_FAILED if "FAILED" in verdicts else ExitCode.INVALID if verdicts else ExitCode.FINE
    talk.end(document(code, calibration=asdict(found)), code)


def runtime_folder() -> Path | None:
    """Where sockets go: $XDG_RUNTIME_DIR, if it is set."""
    named = os.environ.get("XDG_RUNTIME_DIR")
    return Path(named) if named else None
